"""Tables in memory that apply changes as Postgres would: a whole transaction, or nothing of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

from cdc_views.base.names import TableName
from cdc_views.errors import BadChange, BadValue, DuplicateKey, NoSuchRow, NullNotAllowed, UnknownTable
from cdc_views.host.clock import Clock
from cdc_views.source.catalog import SourceTable
from cdc_views.testing.changes import Change, Insert, Update, Values
from cdc_views.testing.memory.ddl import DeclaredColumn, DeclaredTable
from cdc_views.testing.memory.values import stored

Row: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class SourceChange:
    """One row before and after a change. An insert has no old row, a delete no new one."""

    table: SourceTable
    old: Row | None
    new: Row | None


class MemorySource:
    """The tables of a harness, with values as a mirror holds them."""

    def __init__(self, tables: Sequence[DeclaredTable], clock: Clock) -> None:
        self.tables = {table.name: table for table in tables}
        self._rows: dict[str, dict[Key, Row]] = {table.name: {} for table in tables}
        self._sequences: dict[tuple[str, str], int] = {}
        self._uuids = 0
        self._clock = clock

    def rows(self, table: str) -> list[Row]:
        """The rows of a table, in the order of their insertion."""
        return list(self._rows[self._table(table).name].values())

    def commit(self, changes: Iterable[Change]) -> list[SourceChange]:
        """Make the changes in order, in one transaction. If one fails, none is made.

        Raises UnknownTable, BadChange and its subclasses.
        """
        made: list[SourceChange] = []
        try:
            for change in changes:
                made.append(self._made(change))
                self._put(made[-1].table, made[-1].old, made[-1].new)
        except BaseException:
            for change_made in reversed(made):
                self._put(change_made.table, change_made.new, change_made.old)
            raise
        return made

    def _made(self, change: Change) -> SourceChange:
        if not isinstance(change, Insert | Update) and not hasattr(change, "old"):
            raise BadChange(f"found a {type(change).__name__}, wanted an Insert, Update or Delete")
        table = self._table(change.table)
        if isinstance(change, Insert):
            old, new = None, self._inserted(table, change.row)
        elif isinstance(change, Update):
            old = self._found(table, change.old)
            new = old | self._values(table, change.new)
        else:
            return SourceChange(table.source, self._found(table, change.old), None)
        self._check(table, old, new)
        return SourceChange(table.source, old, new)

    def _put(self, table: SourceTable, old: Row | None, new: Row | None) -> None:
        rows = self._rows[str(table.name)]
        if old is not None:
            del rows[_key(table, old)]
        if new is not None:
            rows[_key(table, new)] = new

    def _inserted(self, table: DeclaredTable, row: Values) -> Row:
        given = self._values(table, row)
        return {name: given[name] if name in given else self._default(table, name) for name in table.columns}

    def _default(self, table: DeclaredTable, name: str) -> Any:
        column = table.columns[name]
        if column.default is None:
            return None
        value = column.default.value
        if column.default.kind == "sequence":
            value = self._sequences[table.name, name] = self._sequences.get((table.name, name), 0) + 1
        elif column.default.kind == "now":
            value = self._clock.now()
        elif column.default.kind == "uuid":
            self._uuids += 1
            value = UUID(int=self._uuids, version=4)  # the same in every run
        return _stored(table, column, value)

    def _values(self, table: DeclaredTable, values: Values) -> Row:
        found = {}
        for name, value in values.items():
            column = table.columns[_column(table, name)]
            found[column.column.name] = _stored(table, column, value)
        return found

    def _found(self, table: DeclaredTable, wanted: Values) -> Row:
        values, rows, key = self._values(table, wanted), self._rows[table.name], table.source.key
        candidates: Iterable[Row] = rows.values()
        if set(key) <= values.keys():
            row = rows.get(tuple(values[column] for column in key))
            candidates = [] if row is None else [row]
        found = [row for row in candidates if all(row[name] == value for name, value in values.items())]
        if len(found) != 1:
            raise NoSuchRow(
                f'table "{table.name}" has {len(found)} rows with these values of {", ".join(values)}, wanted one',
                hint=f"the key is {', '.join(key)}",
            )
        return found[0]

    def _check(self, table: DeclaredTable, old: Row | None, new: Row) -> None:
        for name, column in table.columns.items():
            if new[name] is None and column.column.not_null:
                raise NullNotAllowed(f'table "{table.name}": column "{name}" is NULL, wanted a value')
        key = _key(table.source, new)
        if key in self._rows[table.name] and (old is None or key != _key(table.source, old)):
            raise DuplicateKey(
                f'table "{table.name}" has a row with this value of {", ".join(table.source.key)} already'
            )

    def _table(self, name: str) -> DeclaredTable:
        wanted = str(TableName.parse(name))
        if wanted not in self.tables:
            raise UnknownTable(f'unknown table "{name}"', hint=f"known tables: {', '.join(self.tables)}")
        return self.tables[wanted]


def _column(table: DeclaredTable, name: str) -> str:
    if name not in table.columns and name.lower() in table.columns:
        return name.lower()
    if name not in table.columns:
        raise BadChange(f'table "{table.name}" has no column "{name}"', hint=f"it has {', '.join(table.columns)}")
    return name


def _stored(table: DeclaredTable, declared: DeclaredColumn, value: Any) -> Any:
    column, place = declared.column, f'table "{table.name}": column "{declared.column.name}"'

    def one(item: Any) -> Any:
        if item is not None and declared.labels is not None and item not in declared.labels:
            raise BadValue(f"{place}: found a label that the enum does not have")
        return stored(item, column.element or column.type_name, column.typmod, place)

    if value is None or column.element is None:
        return one(value)
    return [one(item) for item in _items(value, place)]


def _items(value: Any, place: str) -> Sequence[Any]:
    if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
        inner = value[1:-1]
        if '"' in inner or "{" in inner:
            raise BadValue(f"{place}: an array as text, with quotes or more than one dimension", hint="give a list")
        return [None if item.upper() == "NULL" else item for item in inner.split(",")] if inner else []
    if not isinstance(value, list | tuple):
        raise BadValue(f"{place}: found a {type(value).__name__}, wanted a list")
    return value


def _key(table: SourceTable, row: Mapping[str, Any]) -> Key:
    return tuple(row[column] for column in table.key)
