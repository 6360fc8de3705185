"""The last event of each key of a long piece of log: fewer are decoded than were read, and those column by column.

Only for a table whose every event holds the whole row. Of an event nothing is looked at but its key, its operation,
its order and the row after it; what is not just as expected is left to the fold, which names what is wrong. Both give
the same rows (tests/unit/test_capture_latest.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, Final

import orjson
import pyarrow as pa

from cdc_views.capture.fold import UNAPPLICABLE, Fold, Folded
from cdc_views.capture.sift import first_error
from cdc_views.capture.types import column_types
from cdc_views.capture.unchanged import PLACEHOLDER, unchangeable, unmarked
from cdc_views.log.cut import discontinuity
from cdc_views.log.record import RawRecord, parse_record, parse_records
from cdc_views.lsn import Lsn
from cdc_views.source.catalog import SourceTable

# Inside a JSON text every quote is escaped: these are the envelope's own, whatever the values are.
_NO_ROW_BEFORE: Final = b'{"before":null,"after":'
_ROW_BEFORE: Final = b'{"before":{'
_ROW_AFTER: Final = b',"after":{'
_SOURCE: Final = b',"source":{'
_OPERATION: Final = b',"op":"'
_ORDER: Final = re.compile(rb'"sequence":"\[\\"(\d{1,20})\\",')
_WITH_ROW: Final = frozenset((b"c", b"u", b"r"))
_PLACEHOLDER: Final = PLACEHOLDER.encode()


class _OddEvent(Exception):
    """An event is not just as expected."""


class Latest:
    """The last event of each key among those of one partition, which come in offset order.

    Where something is stored already, none may be of before its position, `floor`, nor of a snapshot.
    """

    def __init__(self, table: SourceTable, floor: Lsn | None = None) -> None:
        self.size_bytes = 0
        self._floor = floor
        self._table = table
        self._types = column_types(table)
        variants = [value for values in unchangeable(table).values() for value in values]
        # Those of lists of numbers; all others hold the placeholder itself.
        self._further_marks = tuple({orjson.dumps(value) for value in variants if type(value) is list})
        self._has_unmarked = bool(unmarked(table))
        # Else the first one is the envelope's: no type of ours has an object with this name in a row's own.
        self._is_ambiguous = "after" in self._types
        self._records: dict[bytes | None, RawRecord] = {}

    def add(self, records: Iterable[RawRecord]) -> None:
        """Take in further events."""
        latest = self._records
        for record in records:
            key = record.key()
            # One that comes again goes to the end, so that what is left is in offset order.
            replaced = latest.pop(key, None)
            latest[key] = record
            self.size_bytes += len(record) - (0 if replaced is None else len(replaced))

    def finish(self) -> Folded:
        """The rows and deleted keys that these events leave.

        Raises BadEvent, UnsupportedType, UnresolvedToast, LogDiscontinuity; each names the event's place.
        """
        if self._floor is not None:
            self._require_later(self._floor)
        with suppress(_OddEvent, ValueError, TypeError, LookupError, *UNAPPLICABLE):
            return self._decoded()
        records, fold = parse_records(self._records.values()), Fold(self._table)
        try:
            for record in records:
                fold.add(record)
            return fold.finish({})
        except UNAPPLICABLE as error:
            raise first_error(self._table, records) or error from None

    def _decoded(self) -> Folded:
        rows: list[dict[str, Any]] = []
        gone: list[dict[str, Any]] = []
        seen: set[Any] = set()
        columns, of_key = len(self._table.key), itemgetter(*self._table.key)
        for key, record in self._records.items():
            if key is None or _PLACEHOLDER in key:
                raise _OddEvent
            value, fields = record.value(), orjson.loads(key)
            row = None if value is None else self._row_after(value)
            found = of_key(fields)
            seen.add(found)
            if row is None:
                gone.append(fields)
            elif found == of_key(row) and len(fields) == columns:
                rows.append(row)
            else:
                raise _OddEvent
        if len(seen) != len(self._records):
            raise _OddEvent  # one key, written in two ways
        return Folded(
            self._table, self._columns(rows, self._types), self._columns(gone, self._table.key), len(self._records)
        )

    def _require_later(self, floor: Lsn) -> None:
        for record in self._records.values():
            value = record.value()
            if value is None:
                continue
            found = _ORDER.search(value, max(value.rfind(_SOURCE), 0))
            if found is not None and int(found[1]) >= floor:
                continue
            parsed = parse_record(record)
            if parsed.problem is None and (parsed.order is None or (parsed.order.commit or 0) < floor):
                raise discontinuity(parsed, floor)

    def _row_after(self, value: bytes) -> dict[str, Any] | None:
        """The row after an event; None for a delete."""
        has_row_before = value.startswith(_ROW_BEFORE)
        if not has_row_before and not value.startswith(_NO_ROW_BEFORE):
            raise _OddEvent
        source = value.rfind(_SOURCE)
        at = value.find(_OPERATION, source) + len(_OPERATION)
        operation = value[at : value.find(b'"', at)]
        if operation == b"d":
            return None
        is_partial = self._has_unmarked and operation == b"u" and not has_row_before
        if source < 0 or operation not in _WITH_ROW or is_partial or _PLACEHOLDER in value:
            raise _OddEvent
        if self._further_marks and any(mark in value for mark in self._further_marks):
            raise _OddEvent
        if not has_row_before:
            after = orjson.loads(value[len(_NO_ROW_BEFORE) : source])
        elif self._is_ambiguous:
            after = orjson.loads(value[:source] + b"}")["after"]
        else:
            after = orjson.loads(value[value.index(_ROW_AFTER, 0, source) + len(_ROW_AFTER) - 1 : source])
        if type(after) is not dict:
            raise _OddEvent
        return after

    def _columns(self, rows: Sequence[dict[str, Any]], names: Collection[str]) -> pa.Table:
        if any(shape.symmetric_difference(names) for shape in map(set, {tuple(row) for row in rows})):
            raise _OddEvent
        columns = {name: self._types[name].decoded([row[name] for row in rows]) for name in names}
        if any(columns[name].null_count for name in self._table.key):
            raise _OddEvent
        return pa.table(columns)
