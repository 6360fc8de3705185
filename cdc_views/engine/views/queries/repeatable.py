"""Makes a planned query one that can be run again, over whatever its files then hold.

What Spark keeps between two runs of one plan would be the rows of an earlier run: files of an exchange, a broadcast,
the result of a subquery. So only a plan is run again whose operators are all known to keep nothing. An exchange that
puts all rows into one partition is replaced by reading the partitions one after the other, in the task that needs them.
That keeps nothing, and saves the files and the stage.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame

from cdc_views.engine.spark.catalyst import class_of, each_of

_EXECUTION: Final = "org.apache.spark.sql.execution."
_EXCHANGE: Final = "exchange.ShuffleExchangeExec"
_KEEPS_NOTHING: Final = frozenset(
    {
        *("ExpandExec", "FilterExec", "GenerateExec", "ProjectExec", "RangeExec", "SortExec", "UnionExec"),
        *("aggregate.HashAggregateExec", "aggregate.ObjectHashAggregateExec", "aggregate.SortAggregateExec"),
        *("joins.SortMergeJoinExec", "python.MapInArrowExec", "window.WindowExec", "window.WindowGroupLimitExec"),
    }
)


def repeatable(planned: DataFrame) -> DataFrame | None:
    """The same query, which computes everything again each time it runs; None if its plan would keep something.

    The rewritten plan becomes the RDD of a new DataFrame, since Spark plans the query of a DataFrame by itself.
    """
    session: Any = planned.sparkSession._jsparkSession
    jvm: Any = planned.sparkSession._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session)  # operators read its settings when made
    plan = _without_exchanges(jvm, planned._jdf.queryExecution().executedPlan())
    if plan is None:
        return None
    rows = session.internalCreateDataFrame(plan.execute(), planned._jdf.schema(), False)
    return DataFrame(rows, planned.sparkSession)


def _without_exchanges(jvm: Any, node: Any) -> Any:
    """The plan without exchanges into one partition; None if it has an operator that may keep something."""
    children = [_without_exchanges(jvm, child) for child in each_of(node.children())]
    if None in children or not node.subqueries().isEmpty():
        return None
    name = class_of(node).removeprefix(_EXECUTION)
    if name == _EXCHANGE and node.outputPartitioning().numPartitions() == 1:
        return jvm.org.apache.spark.sql.execution.CoalesceExec(1, children[0])
    if name not in _KEEPS_NOTHING:
        return None
    return node.withNewChildren(jvm.org.apache.spark.api.python.PythonUtils.toSeq(children)) if children else node
