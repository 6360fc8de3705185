"""Random views under Spark: after every epoch of a random history, each equals its SQL, run from scratch.

The views are those of tests/unit/incremental, with the constructs that only Spark has. A failure names the seed that
gives the same examples again. CDC_VIEWS_EXAMPLES says how many views there are; more of them: `just nightly`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cdc_views.errors import BadView, UnsupportedView
from cdc_views.testing import Change, Delete, Insert, Update, ViewHarness
from tests.seed import naming_the_seed, randomly
from tests.unit.incremental.directed_views import first_rows, totals
from tests.unit.incremental.memory import Row, State, Table
from tests.unit.incremental.random_example import DEPTH, sources_of
from tests.unit.incremental.random_tables import Draws, drawn, histories, tables
from tests.unit.incremental.random_views import Views

VIEWS: Final = int(os.environ.get("CDC_VIEWS_EXAMPLES", "25"))
OF_A_PROJECT: Final = 5  # whose tables and history they share
PROJECTS: Final = -(-VIEWS // OF_A_PROJECT)
ENOUGH: Final = 2000  # views, for each construct that only Spark has to occur
ONLY_SPARK: Final = {
    "explode",
    "LATERAL VIEW",
    "time window",
    "session_window",
    "ROLLUP",
    "CUBE",
    "sets behind their columns",
}
POSTGRES_TYPES: Final = {
    "int": "integer",
    "bigint": "bigint",
    "text": "text",
    "decimal": "numeric(8, 2)",
    "date": "date",
    "bool": "boolean",
    "double": "double precision",
    "time": "timestamptz",
}


@dataclass(frozen=True)
class Project:
    """Tables, views over them with parents first, and the states that the tables get.

    `used` has the constructs of some views.
    """

    tables: Sequence[Table]
    views: Mapping[str, str]
    states: Sequence[State]
    used: Mapping[str, Collection[str]]


def project(draws: Draws) -> Project:
    """Three views of any form, one of which may read another, and one each that ADD and PATCH keep."""
    all_tables = tables(draws, of_spark=True)
    sources = sources_of(all_tables)
    composed = [Views(draws, sources, of_spark=True) for _ in range(OF_A_PROJECT - 2)]
    first, *others = (views.view(draws.number(1, DEPTH)) for views in composed[:-1])
    composed[-1].tables = [("first", first.columns), *sources]
    composed[-1].named = composed[0].named  # so that its new names are not those of the columns of `first`
    found = [("first", first), *((f"other_{number}", query) for number, query in enumerate(others))]
    found += [("above", composed[-1].view(1)), ("totals", totals(Views(draws, sources, of_spark=True)))]
    found += [("first_rows", first_rows(Views(draws, sources, of_spark=True)))]
    states = [without_nan(state) for state in histories(draws, all_tables)]
    used = {name: views.used.keys() for (name, _), views in zip(found, composed, strict=False)}
    return Project(all_tables, {name: query.sql for name, query in found}, states, used)


def without_nan(state: State) -> State:
    """The rows with NULL instead of NaN, which a mirror refuses."""
    return {
        name: [tuple(None if value != value else value for value in row) for row in rows]
        for name, rows in state.items()
    }


def ddl(table: Table) -> str:
    columns = ", ".join(f"{name} {POSTGRES_TYPES[kind]}" for name, kind in table.columns.items())
    return f"CREATE TABLE {table.name} ({columns}, PRIMARY KEY ({', '.join(table.key)}))"


def changes(table: Table, before: Sequence[Row], after: Sequence[Row]) -> Iterator[Change]:
    """The changes of a table from some rows to others."""
    old, new = (_by_key(table, rows) for rows in (before, after))
    for key in old.keys() - new.keys():
        yield Delete(table.name, dict(zip(table.key, key, strict=True)))
    for key, row in new.items():
        if key not in old:
            yield Insert(table.name, row)
        elif row != old[key]:
            yield Update(table.name, dict(zip(table.key, key, strict=True)), row)


def _by_key(table: Table, rows: Sequence[Row]) -> dict[Row, dict[str, Any]]:
    named = [dict(zip(table.columns, row, strict=True)) for row in rows]
    return {tuple(row[name] for name in table.key): row for row in named}


def declare(harness: ViewHarness, views: Mapping[str, str]) -> dict[str, str]:
    """Declare the views that are not refused; returns their strategies. A view that reads a refused one is refused."""
    found = {}
    for name, sql in views.items():
        with suppress(BadView, UnsupportedView):
            found[name] = harness.create_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}").strategy
    return found


def check(spark: SparkSession, drawn_project: Project, counts: Counter[str]) -> None:
    """Play the history; after every epoch all views are right. Raises UnequalRows."""
    all_tables = drawn_project.tables
    with ViewHarness(map(ddl, all_tables), spark, partitions=1) as harness:
        for name, strategy in declare(harness, drawn_project.views).items():
            counts["views"] += 1
            counts.update(drawn_project.used.get(name, ()) if strategy != "FULL" else ())
        before: State = {table.name: () for table in all_tables}
        for state in drawn_project.states:
            harness.apply(
                change for table in all_tables for change in changes(table, before[table.name], state[table.name])
            )
            harness.verify()
            counts.update(harness.records[-1].detail.get("ways", {}).get("view", {}).values())
            before = state


@pytest.mark.timeout(max(600, 3 * VIEWS))
def test_every_random_view_is_right_after_every_epoch(spark: SparkSession) -> None:
    counts: Counter[str] = Counter()

    @randomly(PROJECTS)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        drawn_project = project(drawn(data.draw))
        note(f"{drawn_project}")
        check(spark, drawn_project, counts)

    with naming_the_seed(f"CDC_VIEWS_EXAMPLES={VIEWS}"):
        run()
        assert counts["views"] > VIEWS / 2, counts
        assert counts.keys() >= {"keys", "add", "patch"}, counts
        if VIEWS >= ENOUGH:
            assert counts.keys() >= ONLY_SPARK, counts
