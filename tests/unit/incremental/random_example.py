"""Random views over random tables with a random history, in memory: what several tests check in their own ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import duckdb
from hypothesis import note
from hypothesis import strategies as st

from cdc_views.errors import UnsupportedView
from cdc_views.plan.incremental.expressions.derived_table import StoredDerivedTable
from tests.unit.incremental.directed_views import first_rows, ordered_lists, totals
from tests.unit.incremental.memory import Memory, State, Table
from tests.unit.incremental.random_tables import Column, Draws, drawn, histories, tables
from tests.unit.incremental.random_views import Views

DEPTH: Final = 3


@dataclass(frozen=True)
class Example:
    """A project with views, parents first, and the states that its tables get.

    `used` counts the constructs of the view `v`, which may be of any form.
    """

    memory: Memory
    views: Mapping[str, str]
    states: Sequence[State]
    used: Counter[str]

    def epochs(self) -> Iterator[State]:
        """Play the history; yields each state when the views are maintained. Raises UnequalView."""
        for number, state in enumerate(self.states):
            self.memory.repeats = number == len(self.states) - 1
            self.memory.epoch(state)
            yield state

    def count(self, counts: Counter[str]) -> None:
        """Count how the views are maintained, and the constructs of a view that is not maintained by FULL."""
        counts.update(self.memory.views[name].plan.strategy for name in self.views)
        plan = self.memory.views["v"].plan
        if plan.strategy != "FULL":
            counts.update(self.used.keys())
            counts["stored derived table"] += any(isinstance(each, StoredDerivedTable) for each in plan.stored)
        counts["epochs"] += self.memory.by_keys


def example(data: st.DataObject) -> Example | None:
    """A random example; None if one of its views is refused."""
    draws = drawn(data.draw)
    all_tables = tables(draws)
    views, used = random_views(draws, all_tables)
    note(f"{views}\n{all_tables}")
    memory = Memory(all_tables, weak_hash=draws.chance(5))
    try:
        memory.declare(views)
    except (UnsupportedView, duckdb.BinderException):  # DuckDB finds names after USING ambiguous where Spark does not
        return None
    states = histories(draws, all_tables)
    note("\n".join(map(str, states)))
    return Example(memory, views, states, used)


def random_views(draws: Draws, all_tables: Sequence[Table]) -> tuple[dict[str, str], Counter[str]]:
    """A view of any form, sometimes another one over it, and one of the forms that ADD or PATCH keeps.

    Returns also the constructs of the first one.
    """
    sources = sources_of(all_tables)
    views = Views(draws, sources)
    first = views.view(draws.number(1, DEPTH))
    found = {"v": first.sql}
    if draws.chance(20):
        # Its new names are not those of the columns of `v`.
        found["above"] = Views(draws, [("v", first.columns), *sources], named=views.named).view(1).sql
    directed = draws.pick((totals, first_rows, ordered_lists))
    found["directed"] = directed(Views(draws, sources)).sql
    return found, views.used


def sources_of(all_tables: Sequence[Table]) -> list[tuple[str, tuple[Column, ...]]]:
    """The tables with their columns, as views name them."""
    return [
        (table.name, tuple(Column(name, name, kind) for name, kind in table.columns.items())) for table in all_tables
    ]
