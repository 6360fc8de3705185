"""The data, the SQL and the figures of the benchmark of views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from bench.views.baselines import Recomputed, select_for
from bench.views.data import Data, demo_tables
from bench.views.figures import Measured, draw, figures
from bench.views.stage import OWN_VIEWS, Epoch, measured_views
from bench.views.tables import TABLES
from cdc_views.capture.types import arrow_schema
from cdc_views.demo.project import VIEWS
from cdc_views.views.definition import ViewDefinition
from cdc_views.views.graph import ViewGraph

SOURCES = demo_tables()
ROWS = 10_000


def made(rows: int) -> Data:
    return Data(rows, SOURCES, {name: arrow_schema(table) for name, table in SOURCES.items()})


@pytest.fixture(scope="module")
def data() -> Iterator[Data]:
    """For tests that read what is there at the beginning."""
    with closing(made(ROWS)) as found:
        yield found


@pytest.fixture(scope="module")
def larger() -> Iterator[Data]:
    with closing(made(4 * ROWS)) as found:
        yield found


@pytest.fixture
def changing() -> Iterator[Data]:
    with closing(made(ROWS)) as found:
        yield found


def rows_of(data: Data, table: str) -> list[dict[str, Any]]:
    return pa.concat_tables(data.base(table)).to_pylist()


def key_of(table: str, row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[column] for column in SOURCES[table].key)


def test_rows_of_all_tables_are_as_many_as_wanted(data: Data) -> None:
    assert set(data.size) == set(SOURCES) == set(TABLES)
    assert sum(len(rows_of(data, table)) for table in TABLES) == sum(data.size.values()) == ROWS


@pytest.mark.parametrize("table", TABLES)
def test_rows_of_a_table_have_different_keys(data: Data, table: str) -> None:
    rows = rows_of(data, table)
    assert len({key_of(table, row) for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("table", "column"),
    [("orders", "user_id"), ("posts", "author_id"), ("follows", "follower_id"), ("order_items", "order_id")],
)
def test_groups_keep_their_size_when_tables_grow(data: Data, larger: Data, table: str, column: str) -> None:
    sizes = [Counter(Counter(row[column] for row in rows_of(each, table)).values()) for each in (data, larger)]
    assert {size: 4 * groups for size, groups in sizes[0].items()} == sizes[1]


def test_changes_start_from_the_present_rows_and_keep_keys_unique(changing: Data) -> None:
    present = {table: {key_of(table, row): row for row in rows_of(changing, table)} for table in TABLES}
    for change in [change for _ in range(2) for change in changing.changes(600)]:
        table = change.table.name.table
        if change.old is not None:
            assert present[table].pop(key_of(table, change.old)) == change.old
        if change.new is not None:
            assert key_of(table, change.new) not in present[table]
            present[table][key_of(table, change.new)] = change.new
    assert all(present.values())


def test_changes_are_spread_over_the_tables_in_turns(changing: Data) -> None:
    singles = [changing.changes(1)[0].table.name.table for _ in TABLES]
    assert singles == list(TABLES)
    assert Counter(change.table.name.table for change in changing.changes(160)) == dict.fromkeys(TABLES, 20)


def test_changes_have_updates_inserts_and_deletes(changing: Data) -> None:
    kinds = Counter((change.old is None, change.new is None) for change in changing.changes(1600))
    assert kinds[False, False] > kinds[True, False] > kinds[False, True] > 0


def bench_views() -> dict[str, ViewDefinition]:
    return {view.name: view for view in measured_views((VIEWS, OWN_VIEWS))}


def test_measured_views_of_the_demo_are_those_of_the_goals() -> None:
    names = ["bank_total", "home_timeline", "order_totals", "post_search", "product_cache"]
    assert [view.name for view in measured_views([VIEWS])] == names


@pytest.mark.parametrize("baseline", ["duckdb", "postgres"])
def test_every_select_of_a_baseline_is_of_a_view(baseline: str) -> None:
    assert {file.stem for file in OWN_VIEWS.with_name(baseline).glob("*.sql")} < bench_views().keys()


def test_duckdb_runs_every_view(data: Data) -> None:
    with duckdb.connect() as database:
        for table in TABLES:
            database.register(table, pa.concat_tables(data.base(table)))
        for level in ViewGraph([*bench_views().values()], [source.name for source in SOURCES.values()]).levels:
            for view in level:
                database.execute(f"CREATE TABLE {view.name} AS {select_for('duckdb', view)}")
                assert database.table(view.name).limit(1).fetchall()


def test_every_select_for_postgres_has_only_clauses_of_postgres() -> None:
    for view in bench_views().values():
        select = parse_one(select_for("postgres", view), dialect="postgres")
        assert isinstance(select, exp.Select)
        assert select.find(exp.Qualify) is None, view.name


def measured(rows: int, views_ms: float) -> Measured:
    work = {"rows_read": 10, "strategy": "KEYS"}
    epochs = [
        Epoch(views_ms, frozenset({"a"}), {"a": work}),
        Epoch(views_ms + 2, frozenset({"a", "b"}), {"a": {**work, "rows_read": 20}, "b": work}),
        Epoch(views_ms + 4, frozenset({"a", "b"}), {"a": {**work, "strategy": "FULL"}}),
    ]
    return Measured(rows, 100.0, {1: epochs}, {"a": 5, "b": 6}, {"duckdb": Recomputed({"a": 30.0, "b": 70.0}, {})})


def test_ratio_counts_the_views_above_the_changed_tables() -> None:
    found = figures([measured(1000, 8.0), measured(4000, 18.0)])
    assert found["views_1000_changes_1_ms"] == 10.0
    assert found["duckdb_1000_all_ms"] == 100.0
    assert found["duckdb_1000_changes_1_ms"] == 100.0
    assert found["duckdb_4000_changes_1_ratio"] == 5.0
    assert found["flat_changes_1_ratio"] == 2.0


def test_figures_of_a_view_have_medians_and_the_strategies_taken() -> None:
    found = figures([measured(1000, 8.0)])["views"]["1000"]
    assert found["a"]["rows"] == 5
    assert found["a"]["duckdb_ms"] == 30.0
    assert found["a"]["changes_1"] == {"epochs": 3, "rows_read": 10, "strategy": "FULL+KEYS"}
    assert found["b"]["changes_1"]["epochs"] == 1


def test_picture_has_a_line_for_each_number_of_changes_and_baseline(tmp_path: Path) -> None:
    draw([measured(1000, 8.0), measured(4000, 18.0)], tmp_path)
    text = (tmp_path / "views-sizes.svg").read_text()
    assert "1 change<" in text
    assert "all views recomputed by duckdb" in text
