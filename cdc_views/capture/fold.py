"""The fold: all changes of one table in one epoch, per key and column, to upserts and deletes.

Within a partition, offset order is the order of a key's changes, so the last change of a key wins. But an update writes
a placeholder for a value that is stored out of line and was not changed. With REPLICA IDENTITY FULL it does not: there
a placeholder shows that the identity was changed, and is an error. For other tables such a cell is a reference to where
the value is:
  - to the key's previous cell, which is followed at once, or to the mirror's row of the key;
  - for the create of a change of key, to the row of the old key just before its delete of the same order.
    Partitions come in any order, so that reference is followed when all records are in.
A tombstone directly after a delete has no further effect; one without a delete is a delete. Values stay raw until
`finish`, which decodes only what is written, column by column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa

from cdc_views.capture.envelope import NEEDS_WHOLE_ROWS, Envelope, KeyChange, KeyValues
from cdc_views.capture.types import column_types
from cdc_views.capture.unchanged import IDENTITY_HINT, require_no_placeholder, unchangeable, unmarked
from cdc_views.errors import EventError, UnresolvedToast, WrongReplicaIdentity
from cdc_views.log.kafka.record import Order, Record, bad_event
from cdc_views.source.catalog import SourceTable


@dataclass(frozen=True)
class Folded:
    """What a mirror must write: rows to upsert, keys to delete; no key is in both.

    All rows that get from the log into a mirror pass through here, whether the driver or a Spark task has read them.
    Raises UnresolvedToast for a row that holds the placeholder.
    """

    table: SourceTable
    upserts: pa.Table
    deletes: pa.Table
    events: int

    def __post_init__(self) -> None:
        require_no_placeholder(self.table, self.upserts)


class _Cell(NamedTuple):
    """Where an unchanged value is: in the row of `key` at the start of the epoch, or just before `departure`."""

    key: KeyValues
    departure: Order | None


class _PartialRow(dict[str, Any]):
    """A row with cells that are `_Cell` or `_NOWHERE`."""

    __slots__ = ()


_NOWHERE: Final = object()  # a cell whose row had been deleted
_STORED: Final = _PartialRow()  # stands for the mirror's row

_Row = dict[str, Any] | None  # None: deleted
Stored = Mapping[KeyValues, Mapping[str, Any]]  # rows of the mirror, by decoded key


class Fold:
    """Folds the records of one table in one epoch.

    Records of one partition come in offset order, partitions in any order. `add` raises BadEvent and UnresolvedToast;
    `finish` raises these and UnsupportedType.
    """

    def __init__(self, table: SourceTable) -> None:
        self.records = 0
        self.snapshot_rows = 0
        self.events = 0
        self._table = table
        self._types = column_types(table)
        self._read = Envelope(table).read
        self._rows: dict[KeyValues, _Row] = {}
        self._departed: dict[tuple[KeyValues, Order | None], _Row] = {}
        self._decoded_keys: dict[KeyValues, KeyValues] = {}
        self._lost: set[KeyValues] = set()
        self._unchangeable = unchangeable(table)
        self._unmarked = unmarked(table)
        self._has_full_identity = table.replica_identity == "full"

    def add(self, record: Record) -> None:
        """Take in the next record of a partition; a record that raises changes nothing."""
        change = self._read(record)
        op, key = change.op, change.key
        if op == "r":
            self.snapshot_rows += 1
            self._rows[key] = change.after
        elif op == "d" or op == "t":
            self._delete(change)
        else:
            row = change.after
            if op == "u" or change.old_key is not None:
                if self._has_full_identity:
                    self._require_full_identity(change, record)
                elif self._unchangeable:
                    row = self._completed(change, record)
            self._rows[key] = row
            self.events += 1
        self.records += 1
        if self._lost:
            self._lost.discard(key)

    def lose(self, key: KeyValues) -> None:
        """Take note that a change of this key is skipped: a later "unchanged" value of the key can no longer be
        resolved.
        """
        self._lost.add(key)

    def is_lost(self, key: KeyValues) -> bool:
        """Whether the last change of the key was skipped."""
        return key in self._lost

    def lookups(self) -> set[KeyValues]:
        """Return the decoded keys whose rows in the mirror are needed to fill unchanged values."""
        wanted: set[KeyValues] = set()
        for row in self._rows.values():
            if type(row) is _PartialRow:
                for column in self._unchangeable:
                    cell = row[column]
                    if type(cell) is _Cell and type(source := self._followed(cell, column)) is _Cell:
                        wanted.add(source.key)
        return set(self._decode_keys(list(wanted)))

    @property
    def looked_up(self) -> Collection[str]:
        """The columns of these rows that are needed, in addition to the key."""
        return self._unchangeable.keys()

    def finish(self, stored: Stored) -> Folded:
        """Return what to write; `stored` has the mirror's rows of `lookups()`, as they were before the epoch.

        An error does not say which record caused it: see `failing`.
        """
        rows = [row for row in self._rows.values() if row is not None]
        gone = [key for key, row in self._rows.items() if row is None]
        partial = [number for number, row in enumerate(rows) if type(row) is _PartialRow]
        schema = pa.schema([pa.field(name, kind.arrow) for name, kind in self._types.items()])
        arrays = [self._array(name, rows, partial, stored) for name in self._types]
        key_schema = pa.schema([schema.field(name) for name in self._table.key])
        key_columns = zip(*gone, strict=True) if gone else [()] * len(key_schema)
        deletes = []
        for name, raw in zip(key_schema.names, key_columns, strict=True):
            deletes.append(self._types[name].decoded(raw))
        return Folded(self._table, pa.table(arrays, schema=schema), pa.table(deletes, schema=key_schema), self.events)

    def failing(self, stored: Stored) -> dict[KeyValues, EventError]:
        """Return the keys whose row cannot be written, with the error. Tries them one by one: many times slower than
        `finish`.
        """
        found: dict[KeyValues, EventError] = {}
        for key, row in self._rows.items():
            try:
                self.check_key(key)
                if row is not None:
                    partial = [0] if type(row) is _PartialRow else []
                    arrays = [self._array(name, [row], partial, stored) for name in self._types]
                    require_no_placeholder(self._table, pa.table(arrays, list(self._types)))
            except EventError as error:
                found[key] = error
        return found

    def check_key(self, key: KeyValues) -> None:
        """Raise BadEvent or UnsupportedType if a key cannot be decoded."""
        for name, raw in zip(self._table.key, key, strict=True):
            self._types[name].decoded([raw])

    def is_partial(self, change: KeyChange) -> bool:
        """Whether a change omits a value that an earlier change has."""
        return any(self._is_left_out(change, name) for name in self._unchangeable)

    def bad_columns(self, change: KeyChange, before: Collection[str]) -> set[str]:
        """Return the columns whose values cannot be decoded after a change; `before` are those before it."""
        if change.after is None:
            return set()
        return {name for name in self._types
                if (name in before if self._is_left_out(change, name) else not self._is_good(name, change.after[name]))
                }  # fmt: skip

    def _is_left_out(self, change: KeyChange, name: str) -> bool:
        is_update = change.op == "u" or change.old_key is not None
        return is_update and change.after is not None and change.after[name] in self._unchangeable.get(name, ())

    def _is_good(self, name: str, raw: Any) -> bool:
        try:
            self._types[name].decoded([raw])
        except EventError:
            return False
        return True

    def _delete(self, change: KeyChange) -> None:
        key = change.key
        if change.op == "d":
            if change.new_key is None:
                self.events += 1  # of a change of key, the create is counted
            elif self._unchangeable and not self._has_full_identity:
                self._departed[key, change.order] = None if key in self._lost else self._rows.get(key, _STORED)
        self._rows[key] = None

    def _require_full_identity(self, change: KeyChange, record: Record) -> None:
        """Raise WrongReplicaIdentity for an event that Postgres does not write with REPLICA IDENTITY FULL.

        The mirror's value must not be used: the log may have been compacted, so it need not be the previous value.
        """
        after = change.after
        assert after is not None
        for name, placeholders in self._unchangeable.items():
            if after[name] in placeholders:
                raise self._wrong_identity(f'column "{name}" was left unchanged by an update, whose event', name)
        # The update may also have changed the key: with an index as identity, the event does not show that.
        if change.op == "u" and not _has_old_row(record):
            raise self._wrong_identity("an update's event", None)

    def _wrong_identity(self, what: str, column: str | None) -> WrongReplicaIdentity:
        return WrongReplicaIdentity(
            f'table "{self._table.name}": {what} does not hold the whole row, wanted REPLICA IDENTITY FULL',
            hint=IDENTITY_HINT,
            table=str(self._table.name),
            column=column,
        )

    def _completed(self, change: KeyChange, record: Record) -> _Row:
        """The row after an update or a change of key, with references in place of its unchanged values."""
        after = change.after
        assert after is not None
        for name in self._unmarked:
            if after[name] is None:  # or a value that was not changed, for which Debezium has no placeholder
                raise self._unresolved(name)
        missing = [name for name, values in self._unchangeable.items() if after[name] in values]
        if not missing:
            return after
        row = _PartialRow(after)
        if change.old_key is not None:
            if change.order is None:
                raise bad_event(record, "a change of key without an order")
            row.update(dict.fromkeys(missing, _Cell(change.old_key, change.order)))
            return row
        previous = None if change.key in self._lost else self._rows.get(change.key, _STORED)
        for name in missing:
            row[name] = _cell_of(previous, change.key, name)
        return row

    def _array(self, name: str, rows: Sequence[dict[str, Any]], partial: Sequence[int], stored: Stored) -> pa.Array:
        kind = self._types[name]
        raw = [row[name] for row in rows]
        if not partial or name not in self._unchangeable:
            return kind.decoded(raw)
        fills: dict[int, Any] = {}
        for number in partial:
            cell = raw[number]
            if type(cell) is _Cell:
                cell = raw[number] = self._followed(cell, name)
            if type(cell) is _Cell:
                fills[number], raw[number] = self._stored_value(cell, name, stored), None
            elif cell is _NOWHERE:
                raise self._unresolved(name)
        values = list(kind.values(raw))
        for number, value in fills.items():
            values[number] = value
        return kind.array(values)

    def _followed(self, cell: _Cell, column: str) -> Any:
        """The raw value that a cell refers to; a `_Cell` without departure if the mirror has it."""
        found: Any = cell
        for _ in range(len(self._departed) + 1):
            if type(found) is not _Cell or found.departure is None:
                return found
            found = self._before_departure(found, column)
        return found if type(found) is not _Cell or found.departure is None else _NOWHERE

    def _before_departure(self, cell: _Cell, column: str) -> Any:
        if (cell.key, cell.departure) in self._departed:
            return _cell_of(self._departed[cell.key, cell.departure], cell.key, column)
        # The delete of the old key is not in the log. If this epoch has nothing else of that key, the row that moved is
        # its row in the mirror; otherwise it cannot be known which of its rows it was.
        return _NOWHERE if cell.key in self._rows or cell.key in self._lost else _Cell(cell.key, None)

    def _stored_value(self, cell: _Cell, name: str, stored: Stored) -> Any:
        value = stored.get(self._decoded(cell.key), {}).get(name)
        if value is None:
            # A value that is stored out of line is not NULL, so the mirror holds another row than the source did.
            raise self._unresolved(name)
        return value

    def _unresolved(self, column: str) -> UnresolvedToast:
        return UnresolvedToast(
            f'table "{self._table.name}": column "{column}" was left unchanged by an update, and neither the log '
            "nor the mirror has its value",
            hint=NEEDS_WHOLE_ROWS,
            table=str(self._table.name),
            column=column,
        )

    def _decoded(self, key: KeyValues) -> KeyValues:
        found = self._decoded_keys.get(key)
        return self._decode_keys([key])[0] if found is None else found

    def _decode_keys(self, keys: Sequence[KeyValues]) -> list[KeyValues]:
        types = [self._types[name] for name in self._table.key]
        columns = [kind.values(raw) for kind, raw in zip(types, zip(*keys, strict=True), strict=False)]
        decoded = list(zip(*columns, strict=True))
        self._decoded_keys.update(zip(keys, decoded, strict=True))
        return decoded


def _cell_of(row: _Row, key: KeyValues, column: str) -> Any:
    """The cell of a row, for a later row in which it is unchanged."""
    if row is None:
        return _NOWHERE
    return _Cell(key, None) if row is _STORED else row[column]


def _has_old_row(record: Record) -> bool:
    return record.value is not None and record.value.get("before") is not None
