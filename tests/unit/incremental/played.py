"""Views that are maintained through states of their tables, and the negative controls of such histories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from cdc_views.plan.explain import explain
from tests.unit.incremental.memory import Memory, State, Table, UnequalView
from tests.unit.incremental.random_tables import Draws, histories


def declared(tables: Sequence[Table], sql: str) -> Memory:
    """The view `v` over empty tables."""
    memory = Memory(tables)
    memory.declare({"v": sql})
    return memory


def played(memory: Memory, states: Sequence[State]) -> Memory:
    """The same after these states of its tables; a table that a state does not name is empty. The last one repeats."""
    for state in states:
        memory.repeats = state is states[-1]
        memory.epoch({table.name: state.get(table.name, ()) for table in memory.tables})
    return memory


def kept_by(strategy: str, tables: Sequence[Table], sql: str, *states: State) -> Memory:
    """A view that is maintained by this strategy through these states of the tables."""
    memory = declared(tables, sql)
    assert memory.views["v"].plan.strategy == strategy, memory.views["v"].plan.reason
    return played(memory, states)


def random_states(tables: Sequence[Table], seed: int | str, count: int = 1) -> list[State]:
    """The states of some random histories, one after the other."""
    random = Random(seed)
    return [state for _ in range(count) for state in histories(Draws(random.randrange), tables)]


def is_kept(memory: Memory) -> bool:
    """An epoch was maintained by its changes, unless none of the few that were played has changed a row."""
    return memory.by_keys > 0 or memory.in_full == 0


def counting_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each query reads that is run from now on over looked-up rows."""
    read, run = list[int](), Memory.run

    def counting(self: Memory, query: Any, tables: Any, *rest: Any) -> pa.Table:
        read.append(sum(table.num_rows for table in tables.values()))
        return run(self, query, tables, *rest)

    monkeypatch.setattr(Memory, "run", counting)
    return read


def explained_lookups(tables: Sequence[Table], sql: str) -> list[str]:
    """What `explain` says is looked up for a view."""
    view = declared(tables, sql).views["v"]
    lines = [line.strip() for line in explain(view.compiled, view.plan).lines()]
    return lines[lines.index("lookups:") + 1 : lines.index("sql:")]


def check_fails(check: Callable[[int], object], seeds: int, first: int = 0) -> None:
    """The check must notice an unequal view with one of the seeds.

    `first` is tried before the others: a seed that is known to be noticed saves their time.
    """

    def check_all() -> None:
        for seed in (first, *range(seeds)):
            check(seed)

    with pytest.raises(UnequalView):
        check_all()
