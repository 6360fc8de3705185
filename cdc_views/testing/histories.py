"""Random histories of two tables, for hypothesis: what a view must survive.

There are few rows and even fewer values, so duplicates, NULLs and ties are common. Keys change, rows are deleted and
inserted again with the same key, and the same join value changes in both tables within an epoch. A history has its own
model of the tables, which shares no code with the engine or the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from cdc_views.testing.changes import Change, Delete, Insert, Update
from cdc_views.testing.harness import ViewHarness
from cdc_views.testing.rows import assert_equal

Row: TypeAlias = dict[str, Any]
State: TypeAlias = Mapping[str, Sequence[Row]]
Transaction: TypeAlias = tuple[Change, ...]

# Postgres types, and the values for their columns, as a mirror returns them.
VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    "smallint": (1, 2, -32768),
    "integer": (1, 2, 3),
    "bigint": (1, 2, 2**62),
    "numeric(12,2)": (Decimal("0.00"), Decimal("1.50"), Decimal("-2.05")),
    "double precision": (0.0, 0.5, 1e17, -3.25),
    "text": ("", "a", "ä b", "a'\"\\\n"),
    "varchar(5)": ("a", "b", "Ab"),
    "char(3)": ("a", "ab", "abc"),
    "boolean": (True, False),
    "real": (0.5, -3.25),
    "numeric": ("1.0", "1.00", "-0.5"),
    "numeric(38,0)": (Decimal(10**37), Decimal(-1)),
    "time": ("09:00:00", "23:59:59.999999"),
    "timetz": ("09:00:00+00",),
    "interval": ("1 day", "1 mon"),
    "json": ('{"a":1}', "null"),
    "inet": ("10.0.0.1", "::1"),
    "citext": ("A", "a"),
    "text[]": ([], ["a", None], ["", "a,b"]),
    "date[]": ([date(2026, 1, 1)], []),
    "date": (date(2026, 1, 1), date(1969, 12, 31)),
    "timestamp": (datetime(2026, 1, 1, 12, 0, 0, 123456, UTC), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
    "timestamptz": (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, 0, 0, 0, 1, UTC)),
    "bytea": (b"", b"\x00\xff"),
    "integer[]": ([], [1, None], [2, 2]),
    "jsonb": ("{}", '{"a": [1, null]}'),
    "uuid": ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"),
}
JOIN_TYPES: Final = (
    *("bigint", "smallint", "text", "varchar(5)", "char(3)", "date", "numeric(12,2)"),
    *("timestamp", "timestamptz", "boolean"),
)
GROUP_TYPES: Final = (
    *("integer", "bigint", "text", "varchar(5)", "boolean", "date", "timestamp", "timestamptz", "numeric(12,2)"),
    "double precision",
)
NUMBER_TYPES: Final = ("smallint", "integer", "numeric(12,2)", "double precision")
KEY_TYPES: Final = ("bigint", "integer", "text")
TABLES: Final = ("l", "r")

_MOST_ROWS: Final = 12


@dataclass(frozen=True)
class Schema:
    """The column types of both tables: `id` (key), `j` (for joins), `g` (for groups), `n` (for sums), and `extra`."""

    key: str
    join: str
    group: str
    number: str
    extra: str

    @property
    def columns(self) -> dict[str, str]:
        """Types by column; `part` is the second key column of table `r`."""
        return {"id": self.key, "part": "integer", "j": self.join, "g": self.group, "n": self.number, "x": self.extra}

    def key_of(self, table: str) -> tuple[str, ...]:
        """The key columns of a table."""
        return ("id", "part") if table == "r" else ("id",)

    def ddl(self) -> list[str]:
        """The statements that create the tables."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return [f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({', '.join(self.key_of(table))}))" for table in TABLES]


@dataclass(frozen=True)
class RandomHistory:
    """Epochs of transactions. `states` has the rows of both tables after each epoch."""

    schema: Schema
    epochs: tuple[tuple[Transaction, ...], ...]
    states: tuple[State, ...]


def play(harness: ViewHarness, history: RandomHistory) -> Iterator[State]:
    """Apply one epoch after the other. Yields the expected state of the tables after each.

    Raises UnequalRows if the mirrors differ from it.
    """
    for epoch, state in zip(history.epochs, history.states, strict=True):
        harness.apply_transactions(epoch)
        for table, rows in state.items():
            assert_equal(harness.rows(table), [tuple(row.values()) for row in rows], f'mirror "{table}"')
        yield state


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """Two tables with the same columns of random types."""
    choose = [st.sampled_from(types) for types in (KEY_TYPES, JOIN_TYPES, GROUP_TYPES, NUMBER_TYPES, sorted(VALUES))]
    return Schema(*(draw(each) for each in choose))


@st.composite
def histories(draw: st.DrawFn, *, least: int = 1, epochs: int = 3, schema: Schema | None = None) -> RandomHistory:
    """A history of `least` to `epochs` epochs, of one to three transactions each."""
    model = _Model(schema or draw(schemas()), draw)
    made: list[tuple[Transaction, ...]] = []
    states: list[State] = []
    for _ in range(draw(st.integers(least, epochs))):
        made.append(tuple(model.transaction() for _ in range(draw(st.integers(1, 3)))))
        states.append({table: [dict(row) for row in rows.values()] for table, rows in model.rows.items()})
    return RandomHistory(model.schema, tuple(made), tuple(states))


class _Model:
    """The tables after the changes so far."""

    def __init__(self, schema: Schema, draw: st.DrawFn) -> None:
        self.schema = schema
        self.rows: dict[str, dict[tuple[Any, ...], Row]] = {table: {} for table in TABLES}
        self._draw = draw
        self._steps: Sequence[Callable[[str], list[Change]]] = (
            self._insert, self._insert, self._update, self._change_key, self._delete, self._replace, self._join,
            self._clear, self._copy,
        )  # fmt: skip

    def transaction(self) -> Transaction:
        changes: list[Change] = []
        for _ in range(self._draw(st.integers(1, 4))):
            step = self._draw(st.sampled_from(self._steps))
            changes += step(self._draw(st.sampled_from(TABLES)))
        return tuple(changes)

    def _insert(self, table: str) -> list[Change]:
        return self._insert_row(table, self._row(table))

    def _insert_row(self, table: str, row: Row) -> list[Change]:
        if self._key(table, row) in self.rows[table] or len(self.rows[table]) >= _MOST_ROWS:
            return []
        self.rows[table][self._key(table, row)] = row
        return [Insert(table, dict(row))]

    def _update(self, table: str) -> list[Change]:
        row = self._some(table)
        if row is None:
            return []
        column = self._draw(st.sampled_from(("j", "g", "n", "x")))
        row[column] = self._value(column)
        return [Update(table, self._where(table, row), {column: row[column]})]

    def _change_key(self, table: str) -> list[Change]:
        row = self._some(table)
        if row is None:
            return []
        new = row | {column: self._row(table)[column] for column in self.schema.key_of(table)}
        if self._key(table, new) in self.rows[table]:
            return []
        del self.rows[table][self._key(table, row)]
        self.rows[table][self._key(table, new)] = new
        return [Update(table, self._where(table, row), dict(new))]

    def _delete(self, table: str) -> list[Change]:
        row = self._some(table)
        if row is None:
            return []
        del self.rows[table][self._key(table, row)]
        return [Delete(table, self._where(table, row))]

    def _replace(self, table: str) -> list[Change]:
        """Delete a key and insert it again."""
        deleted = self._delete(table)
        if not deleted:
            return []
        assert isinstance(deleted[0], Delete)
        return [*deleted, *self._insert_row(table, {**self._row(table), **deleted[0].old})]

    def _join(self, table: str) -> list[Change]:
        """Set the same join value in both tables."""
        value = self._value("j")
        return [change for each in TABLES for change in self._insert_row(each, self._row(each) | {"j": value})]

    def _clear(self, table: str) -> list[Change]:
        """Delete every row, so that the table becomes empty."""
        return [change for _ in list(self.rows[table]) for change in self._delete(table)]

    def _copy(self, table: str) -> list[Change]:
        """Insert a copy of a row with another key: a duplicate, and a tie in every order."""
        row = self._some(table)
        if row is None:
            return []
        return self._insert_row(table, {**row, **{name: self._row(table)[name] for name in self.schema.key_of(table)}})

    def _some(self, table: str) -> Row | None:
        return self._draw(st.sampled_from(list(self.rows[table].values()))) if self.rows[table] else None

    def _row(self, table: str) -> Row:
        number = self._draw(st.integers(1, 8))
        key = f"k{number}" if self.schema.key == "text" else number
        part = {"part": self._draw(st.integers(1, 2))} if table == "r" else {"part": self._value("part")}
        return {"id": key, **part, **{name: self._value(name) for name in ("j", "g", "n", "x")}}

    def _value(self, column: str) -> Any:
        return self._draw(st.sampled_from((None, *VALUES[self.schema.columns[column]])))

    def _where(self, table: str, row: Row) -> Row:
        return {column: row[column] for column in self.schema.key_of(table)}

    def _key(self, table: str, row: Row) -> tuple[Any, ...]:
        return tuple(row[column] for column in self.schema.key_of(table))
