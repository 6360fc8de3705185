"""Random views over random histories: what KEYS maintains equals the view's SQL run from scratch, after every epoch.

Each run takes other examples; a failure names the seed that gives the same ones again, and then makes them smaller.
CDC_VIEWS_EXAMPLES says how many (tests/samples.py).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import randrange
from typing import Any, Final

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis import strategies as st

from cdc_views.errors import UnsupportedView
from cdc_views.plan.incremental.expressions.derived_table import StoredTable
from tests.samples import EXAMPLES
from tests.unit.incremental.memory import Memory
from tests.unit.incremental.random_tables import Column, drawn, histories, tables
from tests.unit.incremental.random_views import Views

SEED: Final = int(os.environ.get("CDC_VIEWS_SEED") or randrange(2**32))
ENOUGH: Final = 2000  # examples, for each operator to occur
DEPTH: Final = 3
OPERATORS: Final = {
    "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "comma", "USING", "NATURAL", "ON with more", "LATERAL", "EXISTS",
    "NOT EXISTS", "IN", "scalar subquery", "GROUP BY", "HAVING", "FILTER", "count(DISTINCT)", "DISTINCT", "UNION",
    "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "window row_number", "window rank",
    "window sum", "window lag", "CTE", "derived table", "stored derived table", "star",
}  # fmt: skip


def randomly(examples: int, *phases: Phase) -> Callable[[Any], Any]:
    """Other examples in every run."""
    chosen = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=phases,
        print_blob=False,
        report_multiple_bugs=False,
    )
    return lambda test: seed(SEED)(chosen(test))


@contextmanager
def naming_the_seed() -> Iterator[None]:
    """Say in a failure how to have the same examples again."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"the same examples: CDC_VIEWS_SEED={SEED} CDC_VIEWS_EXAMPLES={EXAMPLES}")
        raise


def check(data: st.DataObject, counts: Counter[str]) -> None:
    """One example: a view, sometimes another one over it, and a history of some epochs."""
    draws = drawn(data.draw)
    all_tables = tables(draws)
    sources = [
        (table.name, tuple(Column(name, name, kind) for name, kind in table.columns.items())) for table in all_tables
    ]
    views = Views(draws, sources)
    first = views.view(draws.number(1, DEPTH))
    declared = {"v": first.sql}
    if draws.chance(20):
        views.tables = [("v", first.columns), *sources]
        views.ctes.clear()
        declared["above"] = views.view(1).sql
    memory = Memory(all_tables, weak_hash=draws.chance(5))
    try:
        memory.declare(declared)
    except (UnsupportedView, duckdb.BinderException):  # DuckDB finds names after USING ambiguous where Spark does not
        counts["refused"] += 1
        return
    states = histories(draws, all_tables)
    note(f"{declared}\n{all_tables}\n" + "\n".join(map(str, states)))
    for number, state in enumerate(states):
        memory.repeats = number == len(states) - 1
        memory.epoch(state)
    plan = memory.views["v"].plan
    counts[plan.strategy] += 1
    if plan.strategy == "KEYS":
        counts.update(views.used.keys())
        counts["stored derived table"] += any(isinstance(each, StoredTable) for each in plan.stored)
    counts["epochs"] += memory.by_keys


@pytest.mark.timeout(max(600, EXAMPLES))
def test_view_that_is_maintained_by_keys_equals_its_sql_after_every_epoch() -> None:
    counts: Counter[str] = Counter()
    phases = [Phase.generate, Phase.shrink] if "CDC_VIEWS_SEED" in os.environ else [Phase.generate]

    @randomly(EXAMPLES, *phases)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        check(data, counts)

    with naming_the_seed():
        run()
        assert counts["KEYS"] > EXAMPLES / 4, counts
        if EXAMPLES >= ENOUGH:
            assert {name for name, count in counts.items() if count} >= OPERATORS
