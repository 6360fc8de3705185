"""Random histories of the tables: epochs of transactions of changes, all of which Postgres would accept.

A history has its own model of the tables, which shares no code with the engine or the harness. It depends on nothing
but the given source of chance, so a seed gives the same history again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from random import Random
from typing import Any, Final, TypeAlias

from cdc_views.testing import Change, Delete, Insert, Update
from tests.view_shapes.tables import TABLES, Table

Transaction: TypeAlias = list[Change]
Epoch: TypeAlias = list[Transaction]
Row: TypeAlias = dict[str, Any]

# The columns that shapes join by: both sides change within one transaction.
LINKS: Final = (
    (("orders", "user_id"), ("users", "id")),
    (("order_items", "order_id"), ("orders", "id")),
    (("order_items", "product_id"), ("products", "id")),
    (("follows", "followee_id"), ("posts", "author_id")),
    (("follows", "follower_id"), ("follows", "followee_id")),
    (("users", "manager_id"), ("users", "id")),
    (("prices", "product_id"), ("order_items", "product_id")),
    (("accounts", "id"), ("savings", "id")),
    (("posts", "author_id"), ("users", "id")),
)

_MOST_ROWS: Final = 8  # of a table
_NULLS: Final = 0.15  # the share of NULLs in columns that may have them


def history(chance: Random, epochs: int, names: Collection[str] = TABLES.keys()) -> list[Epoch]:
    """At least three epochs: the first fills the tables, or only some; the last deletes every row.

    `names` are the tables that change: those below a view, for a history of that view alone.
    """
    model = _Model(chance, names)
    return [model.filled(), *(model.epoch() for _ in range(epochs - 2)), model.emptied()]


class _Model:
    """The rows of the tables after the changes so far, by table and key."""

    def __init__(self, chance: Random, names: Collection[str]) -> None:
        self._chance = chance
        self._tables = [table for table in TABLES.values() if table.name in names]
        self._links = [link for link in LINKS if all(name in names for name, _ in link)]
        self._rows: dict[str, dict[tuple[Any, ...], Row]] = {name: {} for name in TABLES}
        self._steps: Sequence[Callable[[Table], Iterator[Change]]] = (
            *(self._insert, self._insert, self._update, self._update, self._update, self._change_key, self._delete),
            *(self._replace, self._return, self._pass_by, self._copy, self._touch, self._clear),
        )
        self._link_steps = (self._join, self._part, self._move)

    def filled(self) -> Epoch:
        """Inserts into every table, or into each with an even chance: then views are built over empty tables."""
        share = self._chance.choice((0.5, 1, 1, 1))
        chosen = [table for table in self._tables if self._chance.random() < share]
        return [[change for table in chosen for _ in range(_MOST_ROWS - 2) for change in self._insert(table)]]

    def epoch(self) -> Epoch:
        """One to three transactions that change one table, a few tables, or any."""
        number = self._chance.choice((1, 3, len(self._tables)))
        tables = self._chance.sample(self._tables, min(number, len(self._tables)))
        return [self._transaction(tables) for _ in range(self._chance.randint(1, 3))]

    def emptied(self) -> Epoch:
        """Deletes every row of every table, in one transaction."""
        return [[change for table in self._tables for change in self._clear(table)]]

    def _transaction(self, tables: Sequence[Table]) -> Transaction:
        changes: Transaction = []
        names = {table.name for table in tables}
        links = [link for link in self._links if any(name in names for name, _ in link)]
        for _ in range(self._chance.randint(1, 2 + len(tables))):
            if links and self._chance.random() < 0.2:
                changes += self._chance.choice(self._link_steps)(*self._chance.choice(links))
            else:
                changes += self._chance.choice(self._steps)(self._chance.choice(tables))
        return changes

    # ---- changes of one row

    def _insert(self, table: Table) -> Iterator[Change]:
        yield from self._insert_row(table, self._random_row(table))

    def _insert_row(self, table: Table, row: Row) -> Iterator[Change]:
        rows = self._rows[table.name]
        if _key(table, row) not in rows and len(rows) < _MOST_ROWS:
            rows[_key(table, row)] = row
            yield Insert(table.name, dict(row))

    def _update(self, table: Table) -> Iterator[Change]:
        for row in self._some(table):
            others = [name for name in table.columns if name not in table.key]
            names = self._chance.sample(others, self._chance.randint(1, len(others)))
            yield from self._set(table, row, {name: self._value(table, name) for name in names})

    def _set(self, table: Table, row: Row, values: Row) -> Iterator[Change]:
        """Set values of a row, unless another row has the new key."""
        rows, key, new = self._rows[table.name], _key(table, row), row | values
        if _key(table, new) == key or _key(table, new) not in rows:
            del rows[key]
            rows[_key(table, new)] = new
            yield Update(table.name, _where(table, row), dict(values))

    def _change_key(self, table: Table) -> Iterator[Change]:
        for row in self._some(table):
            yield from self._set(table, row, {name: self._value(table, name) for name in table.key})

    def _delete(self, table: Table) -> Iterator[Change]:
        for row in self._some(table):
            yield self._delete_row(table, row)

    def _delete_row(self, table: Table, row: Row) -> Change:
        del self._rows[table.name][_key(table, row)]
        return Delete(table.name, _where(table, row))

    # ---- several changes of one row

    def _replace(self, table: Table) -> Iterator[Change]:
        """Delete a row, and insert another one with its key."""
        for row in self._some(table):
            yield self._delete_row(table, row)
            yield from self._insert_row(table, self._random_row(table) | _where(table, row))

    def _return(self, table: Table) -> Iterator[Change]:
        """Change a row and change it back: nothing has changed at the end of the transaction."""
        for row in self._some(table):
            name = self._chance.choice([name for name in table.columns if name not in table.key])
            where = _where(table, row)
            yield Update(table.name, where, {name: self._value(table, name)})
            yield Update(table.name, where, {name: row[name]})

    def _pass_by(self, table: Table) -> Iterator[Change]:
        """Insert a row and delete it at once."""
        row = self._random_row(table)
        for change in list(self._insert_row(table, row)):
            yield change
            yield self._delete_row(table, row)

    def _touch(self, table: Table) -> Iterator[Change]:
        """Update a row without changing it."""
        for row in self._some(table):
            yield Update(table.name, _where(table, row), dict(row))

    # ---- changes of several rows

    def _copy(self, table: Table) -> Iterator[Change]:
        """Insert a copy of a row with another key: a duplicate, and a tie in every order."""
        for row in self._some(table):
            yield from self._insert_row(table, row | {name: self._value(table, name) for name in table.key})

    def _clear(self, table: Table) -> Iterator[Change]:
        """Delete every row of a table."""
        for row in list(self._rows[table.name].values()):
            yield self._delete_row(table, row)

    def _join(self, *sides: tuple[str, str]) -> Iterator[Change]:
        """Insert rows with the same join value on both sides."""
        value = self._value(TABLES[sides[0][0]], sides[0][1])
        for name, column in sides:
            table = TABLES[name]
            if value is not None and value in table.columns[column].values:
                yield from self._insert_row(table, self._random_row(table) | {column: value})

    def _part(self, *sides: tuple[str, str]) -> Iterator[Change]:
        """Delete the rows of a join value on both sides."""
        for value in {row[sides[0][1]] for row in self._some(TABLES[sides[0][0]])}:
            for name, column in sides:
                for row in list(self._rows[name].values()):
                    if row[column] == value:
                        yield self._delete_row(TABLES[name], row)

    def _move(self, *sides: tuple[str, str]) -> Iterator[Change]:
        """Change the join value of a row on both sides."""
        for name, column in sides:
            table = TABLES[name]
            for row in self._some(table):
                yield from self._set(table, row, {column: self._value(table, column)})

    # ---- chance

    def _some(self, table: Table) -> list[Row]:
        """A row of the table, if it has any."""
        rows = list(self._rows[table.name].values())
        return [self._chance.choice(rows)] if rows else []

    def _random_row(self, table: Table) -> Row:
        return {name: self._value(table, name) for name in table.columns}

    def _value(self, table: Table, name: str) -> Any:
        if name not in table.key and self._chance.random() < _NULLS:
            return None
        return self._chance.choice(table.columns[name].values)


def _key(table: Table, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in table.key)


def _where(table: Table, row: Row) -> Row:
    return {name: row[name] for name in table.key}
