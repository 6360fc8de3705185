"""A strategy that ends by an error: the view is updated by the next one, which the log and the record say once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from cdc_views.engine import tables
from cdc_views.engine.views import choice, declare
from cdc_views.errors import DriverLost, StrictViewIsFull
from cdc_views.plan.incremental import maintenance
from cdc_views.testing import Delete, Insert, Update, ViewHarness
from tests.seed import drawn

TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, k bigint, v bigint)"
ADDED = "SELECT k, count(*) AS n, sum(v) AS total FROM t GROUP BY k"
PATCHED = (
    "SELECT id, k, place FROM (SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY v, id) AS place FROM t) "
    "WHERE place <= 2"
)


@pytest.fixture
def h(spark: SparkSession) -> Iterator[ViewHarness]:
    with ViewHarness(TABLE, spark, partitions=1) as harness:
        harness.apply([Insert("t", {"id": key, "k": key % 2, "v": key}) for key in range(4)])
        yield harness


def broken(error: Exception) -> object:
    """A function that raises the error."""

    def breaks(*arguments: object) -> None:
        raise error

    return breaks


def ways(h: ViewHarness) -> str:
    return str(h.records[-1].detail["ways"]["view"]["v"])


@pytest.mark.parametrize(("strategy", "step", "sql"), [("ADD", "add_groups", ADDED), ("PATCH", "patch", PATCHED)])
def test_error_of_add_or_patch_leaves_the_view_to_keys(
    h: ViewHarness,
    strategy: str,
    step: str,
    sql: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert h.create_view(f"CREATE MATERIALIZED VIEW v AS {sql}").strategy == strategy
    h.rows("v")
    monkeypatch.setattr(choice, step, broken(LookupError("secret")))
    with caplog.at_level(logging.ERROR):
        h.apply([Update("t", {"id": 3}, {"k": 0, "v": -1})])
    h.verify()
    assert ways(h) == "failed+keys"
    [message] = [each.getMessage() for each in caplog.records]
    assert message.startswith(f'view "v": updated by KEYS, after an error of {strategy}: ')
    assert "secret" not in message


def test_error_of_add_and_keys_leaves_the_view_to_full(h: ViewHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    h.create_view(f"CREATE MATERIALIZED VIEW v AS {ADDED}")
    h.rows("v")
    for step in ("add_groups", "keys"):
        monkeypatch.setattr(choice, step, broken(LookupError("it breaks")))
    h.apply([Update("t", {"id": 3}, {"k": 0, "v": -1})])
    h.verify()
    assert ways(h) == "failed+full"


def test_lost_driver_in_add_stops_the_epoch(h: ViewHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    h.create_view(f"CREATE MATERIALIZED VIEW v AS {ADDED}")
    h.rows("v")
    monkeypatch.setattr(choice, "add_groups", broken(DriverLost("the JVM ended")))
    with pytest.raises(DriverLost):
        h.apply([Update("t", {"id": 3}, {"k": 0})])


@pytest.mark.parametrize(("step", "sql"), [("group_plan", ADDED), ("patch_plan", PATCHED)])
def test_fault_in_the_planner_of_add_or_patch_leaves_the_view_to_keys(
    h: ViewHarness, step: str, sql: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(maintenance, step, broken(LookupError("it breaks")))
    planned = h.create_view(f"CREATE MATERIALIZED VIEW v AS {sql}")
    assert planned.strategy == "KEYS"
    assert "please report it" in planned.reason
    with caplog.at_level(logging.ERROR):
        h.rows("v")
        assert ways(h) == "failed+full"  # built
        h.apply([Update("t", {"id": 3}, {"k": 0, "v": -1})])
    h.verify()
    assert ways(h) == "keys"
    [message] = [each.getMessage() for each in caplog.records]
    assert 'view "v": planned as KEYS, after an error in the planner' in message


def test_strict_view_is_refused_where_the_tasks_of_spark_are_not_local(
    h: ViewHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declare, "are_possible", lambda spark: False)
    with pytest.raises(StrictViewIsFull, match="the Spark master is not local"):
        h.create_view(f"CREATE MATERIALIZED VIEW v WITH (strict) AS {ADDED}")
    h.create_view(f"CREATE MATERIALIZED VIEW v AS {ADDED}")
    h.verify()


PAIRS = "; ".join(f"CREATE TABLE {name} (id bigint PRIMARY KEY, x bigint, s text)" for name in ("a", "b"))


COMPARES_NULL = [
    "SELECT id FROM a WHERE (x, s) IN (SELECT x, s FROM b)",
    "SELECT id FROM a WHERE x IS NOT NULL AND NOT (x, id) IN (SELECT x, id FROM b WHERE x IS NOT NULL)",
    "SELECT a.id, b.id AS o FROM a LEFT JOIN b ON a.s <=> b.s AND a.x <=> b.x",
    "SELECT id, (SELECT count(*) FROM b WHERE b.s <=> a.s) AS n FROM a",
]


@pytest.mark.parametrize("select", drawn(2, COMPARES_NULL))
def test_null_beside_other_values_is_found_as_spark_compares_it(spark: SparkSession, select: str) -> None:
    with ViewHarness(PAIRS, spark, partitions=1) as harness:
        values = [(1, 1, "a"), (2, 1, None), (3, None, "a"), (4, None, None), (5, 2, "b")]
        harness.apply([Insert("a", {"id": key, "x": x, "s": s}) for key, x, s in values])
        assert harness.create_view(f"CREATE MATERIALIZED VIEW v AS {select}").strategy == "KEYS"
        harness.verify()
        harness.apply([Insert("b", {"id": key, "x": x, "s": s}) for key, x, s in values])
        harness.verify()
        assert ways(harness) == "keys"
        harness.apply([Update("b", {"id": 2}, {"s": "b"}), Update("b", {"id": 4}, {"x": 1}), Delete("b", {"id": 1})])
        harness.verify()
        assert ways(harness) == "keys"


NOT_IN = "CREATE MATERIALIZED VIEW v AS SELECT id FROM a WHERE id NOT IN (SELECT a_id FROM b)"
CHILDREN = "CREATE TABLE a (id bigint PRIMARY KEY); CREATE TABLE b (id bigint PRIMARY KEY, a_id bigint{})"


@pytest.mark.parametrize(("declared", "strategy"), [(" NOT NULL", "KEYS"), ("", "FULL")])
def test_not_in_is_kept_by_keys_if_the_source_declares_not_null(
    spark: SparkSession, declared: str, strategy: str
) -> None:
    with ViewHarness(CHILDREN.format(declared), spark, partitions=1) as harness:
        harness.apply([Insert("a", {"id": 1}), Insert("a", {"id": 2}), Insert("b", {"id": 1, "a_id": 1})])
        assert harness.create_view(NOT_IN).strategy == strategy
        harness.verify()
        harness.apply([Insert("a", {"id": 3}), Update("b", {"id": 1}, {"a_id": 2})])
        harness.verify()
        assert ways(harness) == strategy.lower()


def test_not_in_is_full_while_a_column_holds_null_in_spite_of_its_declaration(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As an engine knows the table that was started before DROP NOT NULL.
    mirror_spec = tables.mirror_spec
    monkeypatch.setattr(tables, "mirror_spec", lambda *of: replace(mirror_spec(*of), not_null=frozenset({"a_id"})))
    with ViewHarness(CHILDREN.format(""), spark, partitions=1) as harness:
        harness.apply([Insert("a", {"id": 1}), Insert("a", {"id": 2}), Insert("b", {"id": 1, "a_id": 1})])
        assert harness.create_view(NOT_IN).strategy == "KEYS"
        harness.verify()
        for change, way in (
            (Insert("b", {"id": 2, "a_id": None}), "full"),
            (Insert("a", {"id": 4}), "full"),
            (Delete("b", {"id": 2}), "full"),
            (Insert("b", {"id": 3, "a_id": 2}), "keys"),
        ):
            harness.apply([change])
            harness.verify()
            assert ways(harness) == way


STORED = {
    "SELECT upper(s) AS s FROM a": "keys",
    "SELECT upper(s) AS s FROM a UNION ALL SELECT lower(s) FROM b": "keys",
    "SELECT b.id, q.o FROM b JOIN (SELECT id AS o, x + id AS x FROM a) q ON q.x = b.x": "keys",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x + 1)": "keys",
    "SELECT id, (SELECT max(b.id) FROM b WHERE upper(b.s) = upper(a.s)) AS m FROM a": "keys",
    "SELECT id FROM a WHERE upper(s) IN (SELECT upper(s) FROM b)": "keys",
    "SELECT id, CASE WHEN id NOT IN (SELECT id FROM b WHERE x = 1) THEN s END AS s FROM a": "keys",
    "SELECT id, rank() OVER (PARTITION BY x ORDER BY id) AS r, count(*) OVER (PARTITION BY s) AS n FROM a": "keys",
    "SELECT a.id, a.x AS y, b.id AS o FROM a LEFT JOIN b ON b.x = a.x ORDER BY a.x DESC NULLS LAST LIMIT 3": "patch",
    "SELECT id, x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.s = a.s) ORDER BY x LIMIT 2": "patch",
    "SELECT id, x * (SELECT coalesce(max(x), 0) + 1 FROM b WHERE id = 6) AS y FROM a": "keys",
    "SELECT id, (SELECT concat(s, x) FROM b WHERE id = 4) AS y, x FROM a": "keys",
    "SELECT DISTINCT s FROM a ORDER BY s DESC LIMIT 2": "patch",
    "SELECT 'a' AS kind, id, x FROM a UNION ALL SELECT 'b', id, x FROM b ORDER BY x DESC, id LIMIT 3": "patch",
    "SELECT s, x FROM a ORDER BY x DESC, s LIMIT 3": "patch",
    "SELECT x, s FROM a EXCEPT SELECT x, s FROM b ORDER BY s DESC NULLS LAST, x LIMIT 2": "patch",
}


@pytest.mark.parametrize(("select", "way"), drawn(3, list(STORED.items())))
def test_view_follows_what_internal_views_store(spark: SparkSession, select: str, way: str) -> None:
    with ViewHarness(PAIRS, spark, partitions=1) as harness:
        values = [(1, 1, "a"), (2, 1, None), (3, None, "A"), (4, None, None), (5, 2, "b"), (6, 7, "c")]
        harness.apply([Insert(name, {"id": key, "x": x, "s": s}) for name in "ab" for key, x, s in values])
        assert harness.create_view(f"CREATE MATERIALIZED VIEW v AS {select}").strategy == way.upper()
        harness.verify()
        for changes in (
            [Insert("a", {"id": 7, "x": 3, "s": "d"}), Update("b", {"id": 2}, {"s": "d", "x": 3})],
            [Delete("a", {"id": 6}), Update("a", {"id": 1}, {"x": 4, "s": "B"}), Delete("b", {"id": 5})],
            [Update("a", {"id": 7}, {"x": None, "s": "e"}), Insert("b", {"id": 8, "x": 5, "s": "e"})],
        ):
            harness.apply(changes)
            harness.verify()
            assert ways(harness) == way
