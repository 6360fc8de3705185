"""The last event of each key in a long piece of log: fewer events are decoded than were read, and column by column.

Only for a table whose events all hold the whole row. Of an event, only its key, its operation, its order and the row
after it are looked at. An event that is not exactly as expected is left to the fold, which names what is wrong. Both
give the same rows (tests/unit/test_capture_latest.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, Final

import orjson
import pyarrow as pa

from cdc_views.base.lsn import Lsn
from cdc_views.capture.fold import Fold, Folded
from cdc_views.capture.sift import first_error
from cdc_views.capture.types import column_types
from cdc_views.capture.unchanged import forms
from cdc_views.errors import EventError
from cdc_views.log.cuts.cut import discontinuity
from cdc_views.log.kafka.record import RawRecord, parse_record, parse_records
from cdc_views.source.catalog import SourceTable

# Inside a JSON string every quote is escaped: these are the envelope's own, whatever the values are.
_NO_ROW_BEFORE: Final = b'{"before":null,"after":'
_ROW_BEFORE: Final = b'{"before":{'
_ROW_AFTER: Final = b',"after":{'
_SOURCE: Final = b',"source":{'
_OPERATION: Final = b',"op":"'
_ORDER: Final = re.compile(rb'"sequence":"\[\\"(\d{1,20})\\",')
# The operation, and the quote that ends it.
_DELETE: Final = b'd"'
_UPDATE: Final = b'u"'
_WITH_ROW: Final = frozenset((b'c"', _UPDATE, b'r"'))

_Json = dict[str, Any]


class _OddEvent(Exception):
    """An event is not exactly as expected."""


class Latest:
    """The last event of each key among the events of one partition, which come in offset order.

    `floor` is the position of what is stored already: no event may be earlier than that, nor from a snapshot.
    """

    def __init__(self, table: SourceTable, floor: Lsn | None = None) -> None:
        self._floor = floor
        self._table = table
        self._types = column_types(table)
        self._placeholders = forms(table).in_json()
        self._has_full_identity = table.replica_identity == "full"
        # Otherwise the first one is the envelope's: no type of ours has an object with this name within a row.
        self._is_ambiguous = "after" in self._types
        self._records: dict[bytes | None, RawRecord] = {}
        self._most_bytes = 0

    def add(self, records: Sequence[RawRecord]) -> None:
        """Take in further events."""
        self._records.update(zip([record.key() for record in records], records, strict=True))
        self._most_bytes += sum(map(len, records))

    def is_larger_than(self, most_bytes: int) -> bool:
        """Whether the values that are held take more bytes than this."""
        if self._most_bytes > most_bytes:
            self._most_bytes = sum(map(len, self._records.values()))  # without those that were replaced
        return self._most_bytes > most_bytes

    def finish(self) -> Folded:
        """Return the rows and deleted keys that these events leave.

        Raises BadEvent, UnsupportedType, UnresolvedToast, LogDiscontinuity; each has the offset of the event.
        """
        if self._floor is not None:
            self._require_later(self._floor)
        with suppress(_OddEvent, ValueError, TypeError, LookupError, EventError):
            return self._decoded()
        in_order = sorted(self._records.values(), key=lambda record: record.offset())
        records, fold = parse_records(in_order), Fold(self._table)
        try:
            for record in records:
                fold.add(record)
            return fold.finish({})
        except EventError as error:
            raise first_error(self._table, records) or error from None

    def _decoded(self) -> Folded:
        stored, gone = self._parsed()
        of_key, of_event, of_row = itemgetter(*self._table.key), itemgetter(0), itemgetter(1)
        keys, rows = list(map(of_event, stored)), list(map(of_row, stored))
        found = list(map(of_key, keys))
        if found != list(map(of_key, rows)) or set(map(len, keys)) - {len(self._table.key)}:
            raise _OddEvent
        if len({*found, *map(of_key, gone)}) != len(self._records):
            raise _OddEvent  # one key, written in two ways
        return Folded(
            self._table, self._columns(rows, self._types), self._columns(gone, self._table.key), len(self._records)
        )

    def _parsed(self) -> tuple[list[tuple[_Json, _Json]], list[_Json]]:
        """The key and the row of every event that leaves a row, and the keys of those that leave none."""
        stored: list[tuple[_Json, _Json]] = []
        gone: list[_Json] = []
        texts: list[bytes] = []
        has_full_identity, loads = self._has_full_identity, orjson.loads
        # One pass, and no call that is not needed: a replay spends most of its time here.
        for key, record in self._records.items():
            if key is None:
                raise _OddEvent
            texts.append(key)
            value = record.value()
            if value is None:
                gone.append(loads(key))
                continue
            source = value.rfind(_SOURCE)
            at = value.find(_OPERATION, source) + len(_OPERATION)
            operation = value[at : at + 2]
            has_row_before = value.startswith(_ROW_BEFORE)
            if source < 0 or not (has_row_before or value.startswith(_NO_ROW_BEFORE)):
                raise _OddEvent
            if operation == _DELETE:
                gone.append(loads(key))
                continue
            if operation not in _WITH_ROW or (has_full_identity and operation == _UPDATE and not has_row_before):
                raise _OddEvent
            if not has_row_before:
                text = value[len(_NO_ROW_BEFORE) : source]
            elif self._is_ambiguous:
                text = orjson.dumps(loads(value[:source] + b"}")["after"])
            else:
                text = value[value.index(_ROW_AFTER, 0, source) + len(_ROW_AFTER) - 1 : source]
            texts.append(text)
            stored.append((loads(key), loads(text)))
        together = b"".join(texts)
        if any(placeholder in together for placeholder in self._placeholders):
            raise _OddEvent
        return stored, gone

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

    def _columns(self, rows: Sequence[dict[str, Any]], names: Collection[str]) -> pa.Table:
        if any(shape.symmetric_difference(names) for shape in map(set, {tuple(row) for row in rows})):
            raise _OddEvent
        columns = {name: self._types[name].decoded([row[name] for row in rows]) for name in names}
        if any(columns[name].null_count for name in self._table.key):
            raise _OddEvent
        return pa.table(columns)
