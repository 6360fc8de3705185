"""How Spark reads a text, against sqlglot: how it groups operators without parentheses, its aggregates, and its names.

The planner may trust no reading that differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import pytest
import sqlglot
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from sqlglot import exp
from sqlglot.errors import SqlglotError

from cdc_views.plan.facts.keys import MAY_AGGREGATE
from cdc_views.plan.incremental.precedence import require_same_grouping
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.views.selected import given_name

COMPARISONS: Final = ("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=")
BETWEEN_TWO: Final = (
    *("OR", "AND", *COMPARISONS, "IS DISTINCT FROM", "IS NOT DISTINCT FROM"),
    *("LIKE", "NOT LIKE", "ILIKE", "RLIKE", "NOT RLIKE", "REGEXP"),
    *("|", "^", "&", "<<", ">>", "||", "+", "-", "*", "/", "%", "DIV"),
)
AFTER: Final = (
    *("IN (c)", "NOT IN (c)", "BETWEEN c AND d", "NOT BETWEEN c AND d", "LIKE c ESCAPE '!'", "IS NULL", "IS NOT NULL"),
    *("IS TRUE", "COLLATE c", ":: int", "[c]"),
)
BEFORE: Final = ("NOT", "!", "-", "~")
# Of these, and of + and - beside them, the planner looks at the text as a whole only.
TEXT_ONLY: Final = frozenset(("|", "^", "&", "<<", ">>", "||", "COLLATE"))


def texts() -> Iterator[tuple[str, str, str]]:
    """Each text with two operators, and with parentheses around the first and around the second of them."""
    for one, other in product(BETWEEN_TWO, BETWEEN_TWO):
        yield f"a {one} b {other} c", f"(a {one} b) {other} c", f"a {one} (b {other} c)"
    for one, after in product(BETWEEN_TWO, AFTER):
        yield f"a {one} b {after}", f"(a {one} b) {after}", f"a {one} (b {after})"
    for before, other in product(BEFORE, BETWEEN_TWO):
        yield f"{before} a {other} b", f"({before} a) {other} b", f"{before} (a {other} b)"
    for before, after in product(BEFORE, AFTER):
        yield f"{before} a {after}", f"({before} a) {after}", f"{before} (a {after})"
    for other in BETWEEN_TWO:
        yield f"a IN (b) {other} c", f"(a IN (b)) {other} c", ""
        yield f"a BETWEEN d AND b {other} c", f"(a BETWEEN d AND b) {other} c", f"a BETWEEN d AND (b {other} c)"


def tree_of(text: str) -> exp.Expr:
    return sqlglot.parse_one(f"SELECT {text}", dialect="spark").expressions[0]


def without_parentheses(text: str) -> exp.Expr | None:
    if not text:
        return None
    try:
        return tree_of(text).transform(lambda node: node.unnest() if isinstance(node, exp.Paren) else node)
    except SqlglotError:
        return None


class Readings:
    """Which of the two operators of a text is grouped first, by each parser; None where a text is refused."""

    def __init__(self, spark: SparkSession) -> None:
        self._parser: Any = spark._jsparkSession.sessionState().sqlParser()

    def of_spark(self, text: str, left: str, right: str) -> str | None:
        found = self._parsed(text)
        return None if found is None else self._first(found.equals, self._parsed(left), self._parsed(right))

    def of_sqlglot(self, text: str, left: str, right: str) -> str | None:
        found = without_parentheses(text)
        return None if found is None else self._first(found.__eq__, *map(without_parentheses, (left, right)))

    def _parsed(self, text: str) -> Any:
        try:
            return self._parser.parseExpression(text) if text else None
        except ParseException:
            return None

    @staticmethod
    def _first(is_same: Any, left: Any, right: Any) -> str:
        return "left" if left is not None and is_same(left) else "right" if is_same(right) else "unknown"


def is_refused(text: str) -> bool:
    try:
        require_same_grouping(tree_of(text))
    except NotIncremental:
        return True
    return False


@pytest.fixture(scope="module")
def readings(spark: SparkSession) -> dict[str, tuple[str | None, str | None]]:
    """Each text that Spark parses, with its own reading and that of sqlglot."""
    asked = Readings(spark)
    found = {each[0]: (asked.of_spark(*each), asked.of_sqlglot(*each)) for each in texts()}
    return {text: both for text, both in found.items() if both[0] is not None}


def test_planner_refuses_each_comparison_that_the_parsers_group_differently(
    readings: dict[str, tuple[str | None, str | None]],
) -> None:
    differing = [text for text, (spark, other) in readings.items() if spark != other and other is not None]
    trusted = [text for text in differing if not TEXT_ONLY & set(text.split()) and not is_refused(text)]
    assert trusted == []
    assert {"a = b < c", "a = b IN (c)", "a <=> b LIKE c", "a LIKE b = c", "a BETWEEN d AND b = c"} <= set(differing)


def test_planner_refuses_no_text_that_the_parsers_group_alike(
    readings: dict[str, tuple[str | None, str | None]],
) -> None:
    # A tree does not tell IS NOT DISTINCT FROM from <=>, which the parsers group differently.
    alike = [text for text, (spark, other) in readings.items() if spark == other and "IS NOT DISTINCT" not in text]
    assert [text for text in alike if is_refused(text)] == []


def test_text_that_spark_cannot_group_is_not_among_those_compared(
    readings: dict[str, tuple[str | None, str | None]],
) -> None:
    assert [text for text, (spark, _) in readings.items() if spark == "unknown"] == []


TABLES: Final = (("a", "(1), (2)", "x"), ("b", "(7), (8)", "y"), ("c", "(1), (3)", "x"), ("d", "(1)", "z"))
ROWS: Final = (
    "WITH t AS (SELECT * FROM VALUES (1, true, true), (2, false, false), (3, true, false), (4, false, true) "
    "AS t(id, a, b)), u AS (SELECT * FROM VALUES (true), (false) AS u(c))"
)


def selected(spark: SparkSession, condition: str) -> list[int]:
    return [row.id for row in spark.sql(f"{ROWS} SELECT id FROM t WHERE {condition} ORDER BY id").collect()]


def test_in_of_spark_applies_to_the_comparison_before_it(spark: SparkSession) -> None:
    found = selected(spark, "a = b IN (SELECT c FROM u)")
    assert found == selected(spark, "(a = b) IN (SELECT c FROM u)") == [1, 2, 3, 4]
    assert selected(spark, "a = (b IN (SELECT c FROM u))") == [1, 3]


@pytest.mark.parametrize(
    "join",
    [
        "NATURAL JOIN c",
        "JOIN c USING (x)",
        "JOIN c ON a.x = c.x",
        "RIGHT JOIN c ON a.x = c.x",
        "ANTI JOIN d ON d.z = a.x",
    ],
)
def test_comma_binds_as_tightly_as_a_join(spark: SparkSession, join: str) -> None:
    # Postgres would join `b` and `c` first. sqlglot has a list of joins, which the planner takes from left to right.
    tables = ", ".join(f"{name} AS (SELECT * FROM VALUES {rows} AS {name}({column}))" for name, rows, column in TABLES)
    selects = (f"WITH {tables} SELECT a.x, b.y FROM a{comma} b {join} ORDER BY 1, 2" for comma in (",", " CROSS JOIN"))
    with_comma, with_cross_join = (spark.sql(each).collect() for each in selects)
    assert with_comma == with_cross_join


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("{0} UNION ALL {1} INTERSECT {2}", "{0} UNION ALL ({1} INTERSECT {2})"),
        ("{0} EXCEPT {1} INTERSECT ALL {2}", "{0} EXCEPT ({1} INTERSECT ALL {2})"),
        ("{0} INTERSECT {1} UNION ALL {2}", "({0} INTERSECT {1}) UNION ALL {2}"),
        ("{0} EXCEPT ALL {1} UNION {2}", "({0} EXCEPT ALL {1}) UNION {2}"),
    ],
)
def test_both_parsers_group_set_operations_alike(spark: SparkSession, text: str, grouped: str) -> None:
    selects = [f"SELECT {column} FROM t" for column in "abc"]
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    assert parser.parsePlan(text.format(*selects)).equals(parser.parsePlan(grouped.format(*selects)))
    trees = [sqlglot.parse_one(each.format(*selects), dialect="spark") for each in (text, grouped)]
    assert len({each.transform(_bare).sql("spark") for each in trees}) == 1


def _bare(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Subquery) else node


def test_each_aggregate_of_spark_may_be_one_to_the_planner(spark: SparkSession) -> None:
    registry: Any = spark._jsparkSession.sessionState().functionRegistry()
    infos = map(registry.lookupFunction, _all_of(registry.listFunction()))
    names = [info.get().getName() for info in infos if info.isDefined() and info.get().getGroup() == "agg_funcs"]
    assert {"any", "mean", "try_sum", "sum", "max_by"} <= {*names}
    assert [name for name in names if not isinstance(_call_of(name), MAY_AGGREGATE)] == []


def _all_of(found: Any) -> list[Any]:
    return [found.apply(number) for number in range(found.size())]


def _call_of(function: str) -> exp.Expr | None:
    """The call with the first number of arguments that sqlglot accepts."""
    for arguments in ("a", "a, b", "a, b, c"):
        try:
            return tree_of(f"{function}({arguments})")
        except SqlglotError:
            continue
    return None


@pytest.mark.parametrize("value", ["string(a)", "CAST(a AS string)", "(a)", "CAST((t.a) AS string)", "DATE(a)"])
def test_spark_may_call_a_value_without_a_name_like_a_column(spark: SparkSession, value: str) -> None:
    assert given_name(tree_of(value)) == ""
    assert spark.sql(f"SELECT {value} FROM VALUES ('2024-01-01') AS t(a)").columns == ["a"]
