"""Spark 4.2's operators that a view may use, and its functions that a view may not use, by class.

Expressions are named below org.apache.spark.sql.catalyst.expressions, operators below
org.apache.spark.sql.catalyst.plans.logical.
"""

from __future__ import annotations

from typing import Final

from cdc_views.plan import refusals
from cdc_views.plan.refusals import Refusal

UNKNOWN: Final = Refusal("is not known to give the same result each time", "use other functions of Spark SQL")


def names(classes: str) -> frozenset[str]:
    """The class names in a text."""
    return frozenset(classes.split())


def each(refused: Refusal, classes: str) -> dict[str, Refusal]:
    """The class names in a text, each with this reason."""
    return dict.fromkeys(names(classes), refused)


REFUSED_EXPRESSIONS: Final[dict[str, Refusal]] = {
    **each(refusals.CHANCE, "Rand Randn RandStr Uniform Uuid Shuffle AesEncrypt"),
    **each(refusals.CLOCK, "Now CurrentTimestamp CurrentDate CurrentTime LocalTimestamp CurrentBatchTimestamp"),
    **each(refusals.SESSION, "CurrentUser CurrentCatalog CurrentDatabase CurrentPath CurrentTimeZone SparkVersion"),
    **each(refusals.SESSION, "VariableReference"),
    **each(refusals.PHYSICAL, "MonotonicallyIncreasingID SparkPartitionID DirectShufflePartitionID"),
    **each(refusals.PHYSICAL, "InputFileName InputFileBlockStart InputFileBlockLength DistributedSequenceID"),
    **each(refusals.OUTSIDE, "CallMethodViaReflection TryReflect ScalaUDF PythonUDF PythonUDAF PythonUDTF"),
    **each(refusals.OUTSIDE, "PrettyPythonUDF PythonFuncExpression ApplyFunctionExpression TransformExpression"),
}
OPERATORS: Final = names(
    """
    Aggregate CTERelationDef CTERelationRef Distinct Except Expand Filter Generate GlobalLimit Intersect Join
    LateralJoin LocalLimit LocalRelation Offset OneRowRelation Project Range RebalancePartitions Repartition
    RepartitionByExpression ResolvedHint Sort SubqueryAlias Union UnionLoop UnionLoopRef Window WithCTE
    org.apache.spark.sql.catalyst.analysis.ResolvedInlineTable
    """
)
WINDOW_FUNCTIONS: Final = names("CumeDist DenseRank Lag Lead NTile NthValue PercentRank Rank RowNumber")
# May stand between LIMIT and the Sort that orders its rows.
KEEPS_ORDER: Final = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Project"})
