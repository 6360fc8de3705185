"""Views that group by an expression: the internal view that stores it is kept, hidden, and never needed to be right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from cdc_views.engine.views.declare import declare_internal_views, mirrored_text_columns
from cdc_views.errors import BadView, ViewFailed
from cdc_views.plan.facts import grouping_sets
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.store.control import PublishedDetail
from cdc_views.testing import Delete, Insert, Update, ViewHarness

TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, v bigint, s text)"
BY_NUMBER = "CAST(s AS INT) AS number, count(DISTINCT id) AS n FROM t WHERE s RLIKE '^[0-9]+$' GROUP BY CAST(s AS INT)"
BY_UPPER = "SELECT upper(s) AS s, count(DISTINCT id) AS n, sum(v) AS total FROM t GROUP BY upper(s)"
INTERNAL = "_cv_grouped_1"


@pytest.fixture
def h(spark: SparkSession) -> Iterator[ViewHarness]:
    with ViewHarness(TABLE, spark, partitions=1) as harness:
        harness.apply([Insert("t", {"id": 1, "v": 1, "s": "1"}), Insert("t", {"id": 2, "v": 2, "s": "b"})])
        yield harness


def created(h: ViewHarness, select: str) -> str:
    """The strategy of the view."""
    return h.create_view(f"CREATE MATERIALIZED VIEW grouped AS {select}").strategy


def ways(h: ViewHarness) -> dict[str, str]:
    return dict(PublishedDetail.read(h.records[-1]).ways["view"])


def test_expression_that_fails_where_the_table_stands_alone_makes_the_view_full(h: ViewHarness) -> None:
    assert created(h, f"SELECT {BY_NUMBER}") == "KEYS"
    h.verify()  # "b" is no number
    assert h.records[-1].tables[INTERNAL].status == "failed"
    h.apply([Insert("t", {"id": 3, "v": 3, "s": "1"})])
    h.verify()
    assert ways(h)["grouped"] == "full"
    h.apply([Delete("t", {"id": 2})])
    h.verify()
    assert h.records[-1].tables[INTERNAL].status == "live"
    h.apply([Update("t", {"id": 3}, {"s": "4"})])
    h.verify()
    assert ways(h) == {INTERNAL: "keys", "grouped": "keys"}


def test_crash_between_the_internal_view_and_its_view_is_repeated_once(h: ViewHarness) -> None:
    created(h, BY_UPPER)
    with h.crash_at("views.after_first_commit"):
        h.apply([Update("t", {"id": 2}, {"s": "c"}), Insert("t", {"id": 3, "v": 3, "s": None})])
    h.restart()
    h.verify()
    h.apply([Update("t", {"id": 3}, {"s": "C"})])
    h.verify()
    assert ways(h) == {INTERNAL: "keys", "grouped": "keys"}


AFTER_OTHERS = "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 2 OFFSET 1"
LARGEST = "SELECT s, sum(v) AS total, count(v) AS m, count(*) AS n FROM t GROUP BY s ORDER BY total DESC, s LIMIT 2"


def test_first_groups_follow_from_all_groups(h: ViewHarness) -> None:
    assert created(h, LARGEST) == "PATCH"
    assert h.rows("grouped") == [("b", 2, 1, 1), ("1", 1, 1, 1)]
    h.apply([Insert("t", {"id": 3, "v": 9, "s": "c"}), Update("t", {"id": 1}, {"v": 3})])
    h.verify()
    assert (ways(h), h.rows("grouped")) == ({INTERNAL: "add", "grouped": "patch"}, [("c", 9, 1, 1), ("1", 3, 1, 1)])
    with h.crash_at("views.after_first_commit"):
        h.apply([Delete("t", {"id": 3})])
    h.restart()
    h.verify()
    assert h.rows("grouped") == [("1", 3, 1, 1), ("b", 2, 1, 1)]
    h.apply([Update("t", {"id": 2}, {"v": 5})])
    h.verify()
    assert ways(h) == {INTERNAL: "add", "grouped": "patch"}


@pytest.mark.parametrize("select", [LARGEST.replace("LIMIT 2", "LIMIT 1 OFFSET 1"), AFTER_OTHERS])
def test_rows_after_others_are_those_of_the_whole_query(h: ViewHarness, select: str) -> None:
    assert created(h, select) == "PATCH"
    h.apply([Insert("t", {"id": key, "v": key, "s": str(key)}) for key in range(3, 9)])
    h.verify()
    h.apply([Delete("t", {"id": 7}), Update("t", {"id": 5}, {"v": 20})])
    h.verify()
    assert ways(h)["grouped"] == "patch"
    with h.crash_at("views.after_first_commit"):
        h.apply([Insert("t", {"id": 9, "v": 19, "s": "9"})])
    h.restart()
    h.verify()


BELOW = "CREATE MATERIALIZED VIEW below AS SELECT id, upper(s) AS s, v FROM t WHERE v > 0"


def test_internal_views_over_a_view_are_kept_after_it(h: ViewHarness) -> None:
    h.create_view(BELOW)
    assert created(h, "SELECT id, v FROM t WHERE v < (SELECT count(*) + 9 FROM below)") == "KEYS"
    h.create_view(f"CREATE MATERIALIZED VIEW largest AS {LARGEST.replace('FROM t', 'FROM below')}")
    h.verify()
    h.apply([Insert("t", {"id": 3, "v": -1, "s": "c"}), Update("t", {"id": 1}, {"s": "B"})])
    h.verify()
    internal = {INTERNAL: "add", "_cv_largest_1": "add"}
    assert ways(h) == {"below": "keys", "grouped": "keys", "largest": "patch", **internal}
    with h.crash_at("views.after_first_commit"):
        h.apply([Insert("t", {"id": 4, "v": 5, "s": "d"}), Delete("t", {"id": 2})])
    h.restart()
    h.verify()
    h.apply([Update("t", {"id": 3}, {"v": 20})])
    h.verify()
    assert sorted(h.rows("largest")) == [("C", 20, 1, 1), ("D", 5, 1, 1)]
    assert ways(h)["grouped"] == "full"  # one more row below
    assert h.rows("grouped") == [(1, 1), (4, 5)]


def test_internal_view_over_a_view_with_another_text_has_another_table(h: ViewHarness) -> None:
    paths = []
    for below in (BELOW, BELOW.replace("v > 0", "v > 1")):
        h.create_view(below)
        created(h, LARGEST.replace("FROM t", "FROM below"))
        h.verify()
        paths.append(h.records[-1].tables[INTERNAL].path)
        h.drop_view("grouped")
        h.drop_view("below")
    assert paths[0] != paths[1]


SETS = (
    "SELECT s, count(*) + 1 AS n, coalesce(max(v), -1) AS v, sum(v) / count(v) AS mean FROM t GROUP BY ROLLUP (s, id) "
    "HAVING n > 2 AND (grouping(s) = 1 OR s <> 'x') AND sum(t.v) FILTER (WHERE t.id > 0) > 0"
)


def test_grouping_sets_with_having_follow_from_all_groups(h: ViewHarness) -> None:
    assert created(h, SETS) == "KEYS"
    assert h.rows("grouped") == [(None, 3, 2, 1.5)]
    h.apply(
        [Insert("t", {"id": key, "v": key, "s": s}) for key, s in ((3, "b"), (4, "x"), (5, "x"), (6, None), (7, None))]
    )
    h.verify()
    assert ways(h) == {INTERNAL: "add", "grouped": "keys"}
    assert sorted(h.rows("grouped"), key=repr) == [("b", 3, 3, 2.5), (None, 8, 7, 4.0)]
    with h.crash_at("views.after_first_commit"):
        h.apply([Update("t", {"id": 3}, {"s": None}), Update("t", {"id": 4}, {"s": "1"})])
    h.restart()
    h.verify()
    h.apply([Delete("t", {"id": key}) for key in range(1, 8)])
    h.verify()
    assert h.rows("grouped") == []
    h.apply([Insert("t", {"id": 1, "v": 1, "s": "1"})])
    h.verify()


FIRST_BELOW = (
    "SELECT p.s, q.id, q.v FROM (SELECT s, v FROM t WHERE v > 0 ORDER BY v DESC LIMIT 2) p JOIN t q ON q.s = p.s "
    "WHERE q.id NOT IN (SELECT id FROM t WHERE v = 7)"
)


@pytest.mark.parametrize("select", [FIRST_BELOW, "SELECT id, s FROM t WHERE v IN (SELECT v FROM t ORDER BY v LIMIT 2)"])
def test_first_rows_below_are_stored_with_their_key(h: ViewHarness, select: str) -> None:
    assert created(h, select) == "KEYS"
    h.apply([Insert("t", {"id": key, "v": 3, "s": s}) for key, s in ((3, "b"), (4, "c"), (5, "c"))])
    h.verify()
    h.apply([Delete("t", {"id": 3}), Update("t", {"id": 2}, {"v": 9})])
    h.verify()
    assert ways(h)["grouped"] == "keys"
    with h.crash_at("views.after_first_commit"):
        h.apply([Update("t", {"id": 5}, {"v": 20}), Insert("t", {"id": 6, "v": -1, "s": None})])
    h.restart()
    h.verify()
    h.apply([Delete("t", {"id": key}) for key in (1, 2, 4, 5, 6)])
    h.verify()
    assert h.rows("grouped") == []


def test_first_groups_below_are_those_of_two_internal_views(h: ViewHarness) -> None:
    largest = "SELECT s, count(*) AS n, sum(v) AS total, count(v) AS m FROM t GROUP BY s ORDER BY total DESC, s LIMIT 2"
    assert created(h, f"SELECT p.s, p.total, t.id FROM ({largest}) p JOIN t ON t.s = p.s") == "KEYS"
    assert h.internal_views("grouped") == ["_cv__cv_grouped_1_1", INTERNAL]
    h.apply([Insert("t", {"id": 3, "v": 9, "s": "c"}), Insert("t", {"id": 4, "v": 1, "s": "c"})])
    h.verify()
    assert ways(h) == {"_cv__cv_grouped_1_1": "add", INTERNAL: "patch", "grouped": "keys"}
    assert sorted(h.rows("grouped")) == [("b", 2, 2), ("c", 10, 3), ("c", 10, 4)]
    with h.crash_at("views.after_first_commit"):
        h.apply([Delete("t", {"id": 3}), Delete("t", {"id": 4})])
    h.restart()
    h.verify()
    h.apply([Update("t", {"id": 1}, {"s": "b"})])
    h.verify()
    assert ways(h) == {"_cv__cv_grouped_1_1": "add", INTERNAL: "patch", "grouped": "keys"}
    h.drop_view("grouped")
    h.run_epoch()
    assert h.records[-1].tables.keys() == {"public.t"}


@pytest.mark.parametrize(
    ("select", "strategy"),
    [
        ("SELECT upper(s) AS u, v % 2 AS e, count(*) AS n FROM t GROUP BY ROLLUP (u, v % 2)", "FULL"),
        ("SELECT upper(s) AS u, mod(v, 2) AS e, count(*) AS n FROM t GROUP BY ROLLUP (u, mod(v, 2))", "KEYS"),
        ("SELECT upper(s) AS u, grouping_id(upper(s)) AS g, count(*) AS n FROM t GROUP BY upper(s) WITH CUBE", "ADD"),
        (
            "SELECT date_trunc('YEAR', timestamp_seconds(v)) AS y, CAST(timestamp_seconds(v) AS DATE) AS d, "
            "grouping_id() AS g, count(*) AS n, sum(v) AS total, count(v) AS m FROM t "
            "GROUP BY GROUPING SETS ((y, d), (y), ())",
            "ADD",
        ),
    ],
)
def test_computed_groups_of_sets_are_added_up(h: ViewHarness, select: str, strategy: str) -> None:
    assert created(h, select) == strategy
    h.apply([Insert("t", {"id": key, "v": 10**8 * key, "s": s}) for key, s in ((3, "B"), (4, "c"), (5, None))])
    h.verify()
    h.apply([Delete("t", {"id": 3}), Update("t", {"id": 2}, {"s": None}), Update("t", {"id": 4}, {"v": None})])
    h.verify()
    assert ways(h)["grouped"] == strategy.lower()
    h.apply([Delete("t", {"id": key}) for key in (1, 2, 4, 5)])
    h.verify()
    assert h.rows("grouped") == []


OF_GROUPS = {
    "in_having": "SELECT upper(s) AS p, s, count(*) AS n FROM t GROUP BY ROLLUP (upper(s), s) "
    "HAVING upper(s) IS NOT NULL",
    "written_in_full": "SELECT upper(s) AS p, s AS q, count(*) AS n FROM t GROUP BY ROLLUP (upper(t.s), s)",
    "with_another_name": "SELECT ucase(s) AS p, s AS q, count(*) AS n FROM t GROUP BY ROLLUP (upper(s), s)",
    "cast": "SELECT v::STRING AS p, v AS q, count(*) AS n FROM t GROUP BY ROLLUP (CAST(v AS STRING), v)",
    "operator": "SELECT v % 2 AS p, v AS q, count(*) AS n FROM t GROUP BY ROLLUP (mod(v, 2), v)",
    "turned": "SELECT greatest(v, id) AS p, v, id, count(*) AS n FROM t GROUP BY CUBE (greatest(id, v), v, id)",
    "not": "SELECT NOT (v > 1) AS a, s, count(*) AS n, NOT (v > 1) IS NULL AS b FROM t "
    "GROUP BY ROLLUP (NOT (v > 1), s, v)",
    "minus": "SELECT -(v) AS a, id -(v) AS b, id, count(*) AS n FROM t GROUP BY ROLLUP (-(v), id, v)",
    "day": "SELECT day(date_from_unix_date(v)) AS p, dayofmonth(date_from_unix_date(v)) AS q, grouping_id() AS l, "
    "count(*) AS n FROM t GROUP BY CUBE (day(date_from_unix_date(v)), dayofmonth(date_from_unix_date(v)))",
    "rounded": "SELECT round(v) AS a, round(v, 0) AS b, grouping_id() AS g, count(*) + 1 AS n FROM t "
    "GROUP BY ROLLUP (round(v), round(v, 0))",
    "padded": "SELECT lpad(s, 3) AS a, lpad(s, 3, ' ') AS b, grouping_id() AS g, count(*) AS n FROM t "
    "GROUP BY ROLLUP (lpad(s, 3), lpad(s, 3, ' '))",
    "two_casts": "SELECT CAST(v AS DECIMAL) AS a, CAST(v AS DECIMAL(10, 0)) AS b, grouping_id() AS g, count(*) AS n "
    "FROM t GROUP BY ROLLUP (CAST(v AS DECIMAL), CAST(v AS DECIMAL(10, 0)))",
    "literals": "SELECT coalesce(v, 1) AS a, coalesce(v, 01) AS b, grouping_id() AS g, count(*) AS n FROM t "
    "GROUP BY ROLLUP (coalesce(v, 1), coalesce(v, 01))",
    "units": "SELECT date_trunc('YEAR', timestamp_seconds(v)) AS a, date_trunc('year', timestamp_seconds(v)) AS b, "
    "grouping_id() AS g, count(*) AS n FROM t "
    "GROUP BY ROLLUP (date_trunc('YEAR', timestamp_seconds(v)), date_trunc('year', timestamp_seconds(v)))",
    "from_first": "WITH q AS (SELECT s, v FROM t) FROM q SELECT s, count(*) - 1 AS n GROUP BY ROLLUP (s)",
    "by_alias": "SELECT u.id, (SELECT v AS id FROM t ORDER BY id LIMIT 1) AS x FROM t u",
    "under_its_name": "SELECT p.t, u.id FROM (SELECT v AS t, s FROM t ORDER BY length(s) LIMIT 1) p "
    "JOIN t u ON u.v = p.t",
}


def test_expressions_that_spark_may_read_as_groups_are_what_spark_makes_of_them(h: ViewHarness) -> None:
    for name, select in OF_GROUPS.items():
        h.create_view(f"CREATE MATERIALIZED VIEW {name} AS {select}")
    h.apply(
        [
            Insert("t", {"id": key, "v": v, "s": s})
            for key, v, s in ((3, 1, "a"), (4, 3, "A"), (5, 2, None), (6, 0, "b"))
        ]
    )
    h.verify()
    h.apply([Delete("t", {"id": 1}), Update("t", {"id": 4}, {"s": "a"}), Insert("t", {"id": 7, "v": None, "s": "b"})])
    h.verify()
    h.apply([Update("t", {"id": 6}, {"v": 9, "s": "B"}), Delete("t", {"id": 3})])
    h.verify()
    assert {table.status for table in h.records[-1].tables.values()} == {"live"}


def test_groups_of_sets_that_are_the_same_to_spark_alone_fail_the_view_by_name(
    h: ViewHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sets are one to Spark, so each group is there twice with the same key: the planner knows such functions."""
    monkeypatch.setattr(grouping_sets, "_differ", lambda calls: True)
    day = "to_date(timestamp_seconds(v))"
    select = f"SELECT year({day}) AS a, date_part('YEAR', {day}) AS b, grouping_id() AS g, count(*) AS n FROM t "
    h.apply([Delete("t", {"id": key}) for key in (1, 2)])
    created(h, f"{select} GROUP BY ROLLUP (year({day}), date_part('YEAR', {day}))")
    h.run_epoch()
    assert h.records[-1].tables["grouped"].status == "live"
    h.apply([Insert("t", {"id": 3, "v": 1, "s": None})])
    with pytest.raises(ViewFailed, match="is not unique"):
        h.rows("grouped")


@pytest.mark.parametrize(
    "select",
    [
        "SELECT struct(count(*) + 1 AS n) AS s FROM t",
        "SELECT t.id, array(q.n) AS l FROM t CROSS JOIN (SELECT count(*) AS n FROM t) q",
        "SELECT id, q.g, struct(q.n) AS s FROM t JOIN (SELECT s AS g, count(*) AS n FROM t GROUP BY s) q ON q.n = t.v",
    ],
)
def test_nested_value_that_is_never_null_is_not_computed_from_stored_values(h: ViewHarness, select: str) -> None:
    """Its type says so, and that of the same value over a stored table does not."""
    assert created(h, select) == "FULL"
    h.apply([Insert("t", {"id": 3, "v": 1, "s": "c"})])
    h.verify()
    assert ways(h)["grouped"] == "full"


def test_list_beside_a_stored_value_is_kept(h: ViewHarness) -> None:
    """Its elements are never NULL, but it is not computed from the stored value, which may be."""
    select = "SELECT s, sort_array(collect_list(id)) AS l FROM t WHERE v <= (SELECT max(v) + 7 FROM t) GROUP BY s"
    assert created(h, select) == "KEYS"
    h.apply([Insert("t", {"id": 3, "v": 1, "s": "b"})])
    h.verify()
    assert ways(h)["grouped"] == "keys"


MEANT_BY_THE_TEXT = {
    "fields": "SELECT to_json(struct(max(v), min(v))) AS j, count(*) AS n FROM t",
    "fields_of_a_tuple": "SELECT s, to_json((s, v)) AS j, count(*) AS n FROM t GROUP BY CUBE (s, v)",
    "lambda": "SELECT to_json(transform(array(1, 2), value_1 -> value_1 + max(v))) AS l FROM t",
    "lambda_in_having": "SELECT s, count(*) AS n FROM t GROUP BY ROLLUP (s) HAVING exists(array(1, 2), S -> s > 1)",
    "star": "SELECT s, v, concat_ws(',', *) AS g, count(*) AS n FROM (SELECT s, v FROM t) q GROUP BY CUBE (s, v)",
    "star_alone": "SELECT id, v, s, greatest(*) AS g, count(*) AS n FROM t GROUP BY ROLLUP (id, v, s)",
    "fields_of_a_subquery": "SELECT id, (SELECT to_json(struct(max(v), count(*))) FROM t) AS j FROM t",
    "lambda_of_a_subquery": "SELECT id, (SELECT to_json(transform(array(1), value_1 -> value_1 + max(v))) FROM t) AS j "
    "FROM t",
    "named_fields": "SELECT s, to_json(named_struct('n', count(*), 's', s)) AS j FROM t GROUP BY ROLLUP (s)",
}


def test_words_that_mean_something_else_over_stored_columns_are_not_written_over_them(h: ViewHarness) -> None:
    found = {}
    for name, select in MEANT_BY_THE_TEXT.items():
        try:
            found[name] = h.create_view(f"CREATE MATERIALIZED VIEW {name} AS {select}").strategy
        except BadView:
            found[name] = "refused by Spark"
    assert found.pop("named_fields") == "KEYS"
    assert set(found.values()) <= {"FULL", "refused by Spark"}, found
    assert found["fields"] == found["lambda"] == found["fields_of_a_subquery"] == "FULL"
    for changes in ([Insert("t", {"id": 3, "v": 9, "s": "c"})], [Update("t", {"id": 1}, {"v": 3})]):
        h.apply(changes)
        h.verify()


def test_rows_of_sets_with_null_in_other_columns_have_other_hashes(h: ViewHarness) -> None:
    created(h, "SELECT id, v, 1 AS x, count(*) AS n FROM t GROUP BY CUBE (id, v)")
    h.apply([Update("t", {"id": 1}, {"v": 1})])
    h.verify()
    h.apply([Insert("t", {"id": 5, "v": 1, "s": None}), Update("t", {"id": 2}, {"v": 5})])
    h.verify()
    assert ways(h)["grouped"] == "keys"


def test_having_looks_for_a_name_in_the_select_first(h: ViewHarness) -> None:
    """So a name that may be one of both is not rewritten."""
    assert created(h, "SELECT s, max(id) * 10 AS v FROM t GROUP BY ROLLUP (s) HAVING v > 9") == "FULL"
    assert sorted(h.rows("grouped"), key=repr) == [("1", 10), ("b", 20), (None, 20)]


def test_first_groups_in_the_order_of_a_collation_are_those_of_the_whole_query(h: ViewHarness) -> None:
    sql = "SELECT s COLLATE UTF8_LCASE AS folded, s, count(*) AS n FROM t GROUP BY s ORDER BY folded, s LIMIT 2"
    assert created(h, sql) == "FULL"
    h.apply([Insert("t", {"id": 3, "v": 3, "s": "A"}), Insert("t", {"id": 4, "v": 3, "s": "B"})])
    h.verify()


def test_readers_see_no_internal_view(h: ViewHarness) -> None:
    created(h, BY_UPPER)
    h.rows("grouped")
    assert INTERNAL in h.records[-1].tables
    assert set(PublishedEpoch.latest(h.warehouse).tables) == {"public.t", "grouped"}
    h.drop_view("grouped")
    h.apply([Insert("t", {"id": 3, "v": 3, "s": "c"})])
    assert INTERNAL not in h.records[-1].tables


def test_edited_expression_has_another_internal_table(h: ViewHarness) -> None:
    created(h, BY_UPPER)
    h.rows("grouped")
    before = h.records[-1].tables[INTERNAL].path
    h.drop_view("grouped")
    assert created(h, BY_UPPER.replace("upper(s)", "reverse(s)")) == "KEYS"
    h.verify()
    assert h.records[-1].tables[INTERNAL].path != before
    h.apply([Update("t", {"id": 2}, {"s": "cd"})])
    h.verify()


def test_expression_whose_type_cannot_be_looked_up_has_no_internal_view(h: ViewHarness) -> None:
    assert created(h, "SELECT array(v) AS a, count(*) AS n FROM t GROUP BY array(v)") == "FULL"
    h.verify()
    assert INTERNAL not in h.records[-1].tables


@pytest.mark.parametrize("value", ["v / 2", "CAST(v AS DOUBLE)", "-CAST(v AS FLOAT) * 0"])
def test_floating_point_values_are_stored_in_an_internal_view(h: ViewHarness, value: str) -> None:
    assert created(h, f"SELECT {value} AS x, count(*) AS n FROM t GROUP BY {value}") == "KEYS"
    h.verify()
    h.apply([Update("t", {"id": 2}, {"v": 9}), Delete("t", {"id": 1})])
    h.verify()


def test_engine_declares_internal_views_of_views_that_have_not_failed(spark: SparkSession, h: ViewHarness) -> None:
    created(h, BY_UPPER)
    view = h._views["grouped"].compiled
    h._tables.remove(INTERNAL)
    texts = mirrored_text_columns(h._tables)
    assert declare_internal_views(spark, h._tables, [[view]], {"grouped": "it fails"}, texts) == [[view]]
    [[internal], [other]] = declare_internal_views(spark, h._tables, [[view]], {}, texts)
    assert (internal.definition.name, other) == (INTERNAL, view)
    assert h._tables.specs[INTERNAL].key == ("id",)


def test_one_row_of_from_is_stored_with_all_of_its_values(h: ViewHarness) -> None:
    one_row = "(SELECT avg(v) AS mean, max(v) AS `most of all`, sum(CAST(v AS DECIMAL(9, 2))) AS total FROM t) q"
    columns = "t.id, q.mean, total, t.v <=> q.`most of all` AS is_most"
    select = f"SELECT {columns} FROM t CROSS JOIN {one_row} WHERE t.v <= q.mean + 1"
    assert created(h, select) == "FULL"  # ADD keeps no average of 64 bits
    h.drop_view("grouped")
    assert created(h, select.replace("avg(v)", "avg(CAST(v AS INT))")) == "KEYS"
    h.verify()
    h.apply([Update("t", {"id": 2}, {"s": "c"})])
    h.verify()
    assert ways(h)["grouped"] == "keys"
    h.apply([Insert("t", {"id": 3, "v": 7, "s": None})])
    h.verify()
    assert ways(h)["grouped"] == "full"


def test_exists_that_does_not_depend_on_the_row_is_full_only_when_it_changes(h: ViewHarness) -> None:
    assert created(h, "SELECT id, EXISTS (SELECT 1 FROM t WHERE s = 'stop') AS has FROM t WHERE v > 0") == "KEYS"
    h.verify()
    for change, way in (
        (Insert("t", {"id": 3, "v": 3, "s": "stop"}), "full"),
        (Insert("t", {"id": 4, "v": 4, "s": "stop"}), "keys"),
        (Delete("t", {"id": 3}), "keys"),
        (Update("t", {"id": 4}, {"s": None}), "full"),
    ):
        h.apply([change])
        h.verify()
        assert ways(h)["grouped"] == way
