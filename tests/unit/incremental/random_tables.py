"""Random tables and histories, as Hypothesis draws them. The values are few, so that joins, groups and ties happen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from tests.unit.incremental.memory import Row, State, Table

T = TypeVar("T")

VALUES: Final[dict[str, list[Any]]] = {
    "int": [0, 1, 2, None],
    "bigint": [0, 1, 2, None],
    "text": ["a", "b", "", None],
    "decimal": [Decimal("0.50"), Decimal("1.00"), Decimal("2.00"), None],
    "date": [date(2026, 1, 1), date(2026, 1, 2), None],
    "bool": [True, False, None],
    "float": [0.0, -0.0, 1.5, float("nan"), None],
    "double": [0.0, -0.0, 1.5, float("nan"), None],
    "time": [
        *(datetime(2026, 1, 1, 0, minute, tzinfo=UTC) for minute in (0, 25, 50)),
        datetime(2026, 1, 2, tzinfo=UTC),
    ],
}
NUMBERS: Final = ("int", "bigint")
MOST_IDS: Final = 4


@cache
def _below(number: int) -> st.SearchStrategy[int]:
    return st.integers(0, number - 1)


def drawn(draw: st.DrawFn) -> Draws:
    """Choices that Hypothesis makes, and makes smaller."""
    return Draws(lambda number: draw(_below(number)))


@dataclass(frozen=True)
class Column:
    """A column: how expressions write it, its own name (empty if it is computed), its type.

    `is_plain`: its values are those of a table's column in all rows, so it is likely that rows are found by it.
    """

    text: str
    name: str
    type: str
    is_plain: bool = True


@dataclass
class Draws:
    """Choices; the first alternative is the simplest. `below` returns a number from 0 to its argument minus 1."""

    below: Callable[[int], int]

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))] if len(choices) > 1 else choices[0]

    def number(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent

    def column(self, columns: Sequence[Column]) -> Column:
        """A column, mostly a plain one."""
        plain = [each for each in columns if each.is_plain]
        return self.pick(plain if plain and self.chance(85) else columns)

    def some(self, choices: Sequence[T], least: int, most: int) -> list[T]:
        """Different choices, in any order."""
        rest, found = list(choices), []
        for _ in range(min(self.number(least, most), len(rest))):
            found.append(rest.pop(self.below(len(rest)) if len(rest) > 1 else 0))
        return found


# ---- tables and histories


def tables(draws: Draws, *, of_spark: bool = False) -> list[Table]:
    """Two or three tables, whose columns mostly have the same names and sometimes the same types.

    `of_spark`: all have keys, and some have times.
    """
    found = []
    for name in ("t", "u", "w")[: draws.number(2, 3)]:
        columns = {"id": draws.pick(NUMBERS), "k": draws.pick(NUMBERS), "g": draws.pick(("int", "bigint", "text"))}
        others = {"h": "int", "s": "text", "d": "decimal", "x": "date", "b": "bool", "f": "double"}
        if of_spark:
            others["at"] = "time"
        columns |= {other: others[other] for other in draws.some(list(others), 0, 2)}
        keys: list[tuple[str, ...]] = [("id",), ("id", "k"), ("id",)]
        found.append(Table(name, columns, draws.pick(keys if of_spark else [*keys, ()])))
    return found


def histories(draws: Draws, all_tables: Sequence[Table]) -> list[State]:
    """The rows of the tables after each epoch."""
    state: dict[str, dict[Any, Row]] = {table.name: {} for table in all_tables}
    found: list[State] = []
    for number in range(draws.number(2, 3)):
        kind = draws.pick(("changes", "changes", "changes", "changes", "all", "nothing")) if number else "all"
        for table in all_tables:
            if kind == "nothing":
                state[table.name].clear()
                continue
            for _ in range(draws.number(0, 2 if kind == "changes" else 5)):
                row = _row(draws, table)
                if kind == "changes" and draws.chance(30) and state[table.name]:
                    del state[table.name][draws.pick(list(state[table.name]))]
                else:
                    state[table.name][_key(table, row)] = row
        found.append({name: list(rows.values()) for name, rows in state.items()})
    return found


def small_changes(draws: Draws, all_tables: Sequence[Table], epochs: int) -> list[State]:
    """A long history: some rows in each table, and then one to three changed rows in each epoch."""
    state: dict[str, dict[Any, Row]] = {table.name: {} for table in all_tables}
    found: list[State] = []
    for epoch in range(epochs):
        for _ in range(draws.number(1, 3) if epoch else 10):
            table = draws.pick(all_tables)
            row = _row(draws, table)
            if _key(table, row) in state[table.name] and draws.chance(40):
                del state[table.name][_key(table, row)]
            else:
                state[table.name][_key(table, row)] = row
        found.append({name: list(rows.values()) for name, rows in state.items()})
    return found


def _row(draws: Draws, table: Table) -> Row:
    values = []
    for name, kind in table.columns.items():
        if name == "id":
            values.append(draws.number(1, MOST_IDS))
            continue
        choices = [value for value in VALUES[kind] if value is not None or name not in table.key]
        values.append(draws.pick(choices))
    return tuple(values)


def _key(table: Table, row: Row) -> Row:
    return tuple(value for name, value in zip(table.columns, row, strict=True) if name in table.key) or row
