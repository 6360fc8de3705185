"""Random histories through the harness: a view equals its SQL by Spark, and by DuckDB over the history's own rows.

The second answer shares no code with the engine and does not read its mirrors, so a lost event cannot hide. Each run
takes other examples; a failure names the seed that gives the same ones again. More of them: `just nightly`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cdc_views.engine.views.strategies import STRATEGIES, Recompute
from cdc_views.errors import UnequalRows
from cdc_views.log.cuts.cut import Cut
from cdc_views.store.delta_log.entries import commit_info, read_entry
from cdc_views.store.warehouse import Changes
from cdc_views.testing import Insert, Update, ViewHarness, assert_equal
from cdc_views.testing.histories import TABLES, RandomHistory, Schema, State, histories, play
from cdc_views.testing.memory.memory_log import MemoryLog
from tests.full_only import recompute_in_full
from tests.seed import SEED, naming_the_seed, randomly

EXAMPLES: Final = int(os.environ.get("CDC_VIEWS_EXAMPLES", "12"))
LIMIT_S: Final = max(600, 5 * EXAMPLES)
VARIABLES: Final = f"CDC_VIEWS_EXAMPLES={EXAMPLES}"
VIEWS_AT_ONCE: Final = 3  # of an example, beside those that they read

# The shapes of views; SQL that means the same to Spark and DuckDB.
ZOO: Final[Mapping[str, str]] = {
    "filtered": "SELECT id, n, x FROM l WHERE g IS NOT NULL",
    "no_key": "SELECT g, j FROM l",
    "bag": "SELECT x, part FROM l UNION ALL SELECT x, part FROM r",
    "carried": "SELECT l.id, r.id AS other, r.part, r.x FROM l LEFT JOIN r ON l.j = r.j",
    "inner_join": "SELECT l.id, r.id AS other, r.part, l.n FROM l JOIN r ON l.j = r.j",
    "left_join": "SELECT l.id, r.id AS other, r.part, r.g FROM l LEFT JOIN r ON l.j = r.j AND r.part = 1",
    "full_join": "SELECT l.id, r.id AS other, r.part FROM l FULL JOIN r ON l.j = r.j",
    "self_join": "SELECT a.id, b.id AS other FROM l a JOIN l b ON a.g = b.g AND a.id < b.id",
    "grouped": "SELECT g, count(*) AS c, sum(CAST(n AS DECIMAL(20, 2))) AS s, min(j) AS least, count(DISTINCT j) AS d"
               " FROM l GROUP BY g",
    "joined_groups": "SELECT l.g, count(*) AS c, max(r.n) AS m FROM l JOIN r ON l.j = r.j GROUP BY l.g"
                     " HAVING count(*) > 1",
    "total": "SELECT count(*) AS c, count(n) AS n FROM r",
    "distinct_rows": "SELECT DISTINCT j, g FROM r",
    "latest": "SELECT id, g, place FROM (SELECT id, g, row_number() OVER (PARTITION BY g"
              " ORDER BY n DESC NULLS LAST, id) AS place FROM l) t WHERE place <= 2",
    "ranked": "SELECT id, rank() OVER (PARTITION BY g ORDER BY j NULLS FIRST) AS place FROM l",
    "union_all": "SELECT j, g FROM l UNION ALL SELECT j, g FROM r",
    "union_rows": "SELECT j FROM l UNION SELECT j FROM r",
    "except_rows": "SELECT j, g FROM l EXCEPT SELECT j, g FROM r",
    "intersect_rows": "SELECT j FROM l INTERSECT SELECT j FROM r",
    "met": "SELECT id FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.j = l.j)",
    "lonely": "SELECT id, j FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.j = l.j AND r.part = 2)",
    "counted": "SELECT id, (SELECT count(*) FROM r WHERE r.j = l.j) AS c FROM l",
    "above_all": "SELECT id FROM l WHERE n >= (SELECT max(n) FROM r)",
    "over_view": "SELECT c, count(*) AS many FROM grouped GROUP BY c",
    "over_two": "SELECT f.id, f.n, g.c FROM filtered f JOIN grouped g ON f.id = g.c",
}  # fmt: skip
# Declared when there are rows already.
LATE: Final = ("no_key", "full_join", "over_view", "over_two")
# For the slow way: a key, a bag, a join, groups, a view over a view.
FEW: Final = ("no_key", "full_join", "grouped", "over_view")

# Of the types that a mirror holds as a text, and of others that DuckDB calls otherwise.
TEXTS: Final = ("json", "jsonb", "uuid", "char(3)", "numeric", "time", "timetz", "interval", "inet", "citext")
DUCKDB_TYPES: Final = {"bytea": "BLOB", "timestamp": "TIMESTAMPTZ", **dict.fromkeys(TEXTS, "VARCHAR")}


def answers(schema: Schema, state: State, views: Mapping[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    """What the views must hold, by DuckDB over the model's rows."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        columns = ", ".join(f"{name} {DUCKDB_TYPES.get(kind, kind)}" for name, kind in schema.columns.items())
        for table, rows in state.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
            for row in rows:
                database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", list(row.values()))
        found = {}
        for name, sql in views.items():
            database.execute(f"CREATE VIEW {name} AS {sql}")
            result: pa.Table = database.sql(f"SELECT * FROM {name}").to_arrow_table()
            found[name] = list(zip(*(column.to_pylist() for column in result.columns), strict=True))
    return found


@st.composite
def choices(draw: st.DrawFn, schema: Schema) -> dict[str, str]:
    """Some views of the zoo, those that they read, and none that compares a text with a number."""
    possible = [name for name in ZOO if schema.key != "text" or name != "over_two"]
    chosen = draw(st.sets(st.sampled_from(possible), min_size=VIEWS_AT_ONCE, max_size=VIEWS_AT_ONCE))
    needed = [name for name in ZOO if any(f" {name} " in ZOO[above] for above in chosen)]
    return {name: sql for name, sql in ZOO.items() if name in chosen or name in needed}


def check(harness: ViewHarness, history: RandomHistory, views: Mapping[str, str]) -> None:
    """Declare the views before or after the first epoch; after each epoch all are right."""
    declare(harness, {name: sql for name, sql in views.items() if name not in LATE})
    for state in play(harness, history):
        declare(harness, {name: sql for name, sql in views.items() if name not in harness.views})
        for name, wanted in answers(history.schema, state, views).items():
            assert_equal(harness.rows(name), wanted, f'view "{name}" by DuckDB')
    harness.verify()


def declare(harness: ViewHarness, views: Mapping[str, str]) -> None:
    for name, sql in views.items():
        harness.create_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}")


def engines(harness: ViewHarness) -> set[str]:
    """Who wrote the commits of the tables: ours, or Spark's Delta."""
    tables = harness.records[-1].tables.values()
    infos = [commit_info(read_entry(harness.warehouse / table.path, version))
             for table in tables for version in range(1, table.version + 1)]  # fmt: skip
    return {info["engineInfo"].split("/")[0] for info in infos if info["operation"] != "FENCE"}


@pytest.mark.timeout(LIMIT_S)
def test_every_view_is_right_after_every_epoch(spark: SparkSession) -> None:
    ways: set[str] = set()

    @randomly(EXAMPLES)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        history = data.draw(histories(least=2))
        views = data.draw(choices(history.schema))
        with ViewHarness(history.schema.ddl(), spark, partitions=1) as harness:
            check(harness, history, views)
            ways.update(engines(harness))

    with naming_the_seed(VARIABLES):
        run()
    assert "cdc-views" in ways


def test_failure_names_the_seed() -> None:
    with pytest.raises(ValueError, match="wrong") as failed, naming_the_seed(VARIABLES):
        raise ValueError("wrong")
    assert failed.value.__notes__ == [f"the same examples: CDC_VIEWS_SEED={SEED} CDC_VIEWS_EXAMPLES={EXAMPLES}"]


@pytest.mark.timeout(LIMIT_S)
def test_history_has_the_same_rows_whether_we_or_spark_read_and_commit(spark: SparkSession) -> None:
    views = {name: ZOO[name] for name in FEW}

    @randomly((EXAMPLES + 49) // 50)
    @given(histories(least=2, epochs=2))
    def run(history: RandomHistory) -> None:
        with (
            ViewHarness(history.schema.ddl(), spark) as direct,
            ViewHarness(history.schema.ddl(), spark, allow_direct=False) as by_spark,
        ):
            ways = {"cdc-views": direct, "Apache-Spark": by_spark}
            for harness in ways.values():
                declare(harness, {name: sql for name, sql in views.items() if name not in LATE})
            for state, _ in zip(play(direct, history), play(by_spark, history), strict=True):
                for harness in ways.values():
                    declare(harness, {name: sql for name, sql in views.items() if name not in harness.views})
                for name, wanted in answers(history.schema, state, views).items():
                    assert_equal(direct.rows(name), wanted, f'view "{name}" by DuckDB')
                    assert_equal(by_spark.rows(name), direct.rows(name), f'view "{name}" by the other way')
            has_rows = any(rows for state in history.states for rows in state.values())
            for way, harness in ways.items():
                assert engines(harness) in ([{way}] if has_rows else [{way}, set()])

    with naming_the_seed(VARIABLES):
        run()


# ---- negative controls: each breaks one thing, and the same check must fail

SCHEMA: Final = Schema("bigint", "text", "integer", "numeric(12,2)", "date")
CONTROLS: Final = ("grouped", "no_key")


def row(key: int, g: int) -> dict[str, Any]:
    return {"id": key, "part": 1, "j": "a", "g": g, "n": 1, "x": date(2026, 1, 1)}


def history() -> RandomHistory:
    first = [row(1, 1), row(2, 1)]
    second = [row(1, 2), row(2, 3)]
    inserts = tuple(Insert("l", values) for values in first)
    updates = (Update("l", {"id": 1}, {"g": 2}), Update("l", {"id": 2}, {"g": 3}))
    return RandomHistory(SCHEMA, ((inserts,), (updates,)), ({"l": first, "r": []}, {"l": second, "r": []}))


@pytest.fixture
def check_fails(spark: SparkSession) -> Callable[[str], None]:
    def fails(problem: str) -> None:
        with ViewHarness(SCHEMA.ddl(), spark, partitions=1) as harness, pytest.raises(UnequalRows, match=problem):
            check(harness, history(), {name: ZOO[name] for name in CONTROLS})

    return fails


def test_check_passes_where_nothing_is_broken(spark: SparkSession) -> None:
    with ViewHarness(SCHEMA.ddl(), spark, partitions=1) as harness:
        check(harness, history(), {name: ZOO[name] for name in CONTROLS})


def test_dropped_event_makes_the_check_fail(
    check_fails: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    records = MemoryLog.records

    def without_the_last(log: MemoryLog, cut: Cut) -> Any:
        return list(records(log, cut))[:-1]

    monkeypatch.setattr(MemoryLog, "records", without_the_last)
    check_fails('mirror "l"')


def test_wrong_row_makes_the_check_fail(check_fails: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    full = STRATEGIES["FULL"]

    def one_too_many(work: Recompute) -> Changes | None:
        changes = full(work)
        if work.view.definition.name != "grouped" or changes is None or not isinstance(changes.rows, pa.Table):
            return changes
        counts = pa.array([count + 1 for count in changes.rows["c"].to_pylist()], pa.int64())
        rows = changes.rows.set_column(changes.rows.column_names.index("c"), "c", counts)
        return Changes(changes.deleted, rows, changes.all_new)

    recompute_in_full(monkeypatch)
    monkeypatch.setitem(STRATEGIES, "FULL", one_too_many)
    check_fails('view "grouped"')


def test_torn_transaction_makes_the_check_fail(
    check_fails: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = MemoryLog.cut

    def torn(log: MemoryLog, *arguments: Any) -> Cut:
        whole = cut(log, *arguments)
        ends = {each: end - 1 if end - whole.start[each] > 1 else end for each, end in whole.end.items()}
        return Cut(whole.position, whole.complete_to, whole.committed_at, whole.start, ends)

    monkeypatch.setattr(MemoryLog, "cut", torn)
    check_fails('mirror "l"')


def test_zoo_reads_both_tables() -> None:
    assert all(any(f" {table}" in sql for sql in ZOO.values()) for table in TABLES)
