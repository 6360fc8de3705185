"""Rows that the connector has left out of the log where it began again.

Rows of a COPY share the position of their page in the WAL, and both halves of a change of key share theirs. If Debezium
3.7 is stopped or killed when only the first of them is stored, it goes on behind all of them, and no event tells of the
others. So whenever the connector began again, the source is asked for the rows beside the last one before that. What is
there was written by that row's transaction, which is in the cut: the mirror must have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from cdc_views.capture.envelope import Envelope, Key
from cdc_views.capture.printed import printed_rows
from cdc_views.capture.types import column_types
from cdc_views.engine.quarantine import NAME as QUARANTINE
from cdc_views.engine.quarantine import PARKED
from cdc_views.engine.tables import Tables
from cdc_views.errors import RowsLost
from cdc_views.log.cut import Cut, CutLog
from cdc_views.log.record import Place, Record
from cdc_views.lsn import Lsn
from cdc_views.source.catalog import SourceTable
from cdc_views.source.connection import Connection
from cdc_views.source.pages import StoredRow, rows_beside
from cdc_views.source.position import wal_end

_BATCH_ROWS: Final = 10_000


@dataclass(frozen=True)
class _Written:
    """A change of a key, its transaction, and the record that says so."""

    record: Record
    table: SourceTable
    key: Key
    transaction: int


@dataclass(frozen=True)
class _Doubt:
    """Rows that a mirror lacks and whose transaction may be a later one: whether, a cut at `position` can tell."""

    rows: frozenset[StoredRow]
    position: Lsn


class LostRows:
    """Looks for them at each epoch. Tables that have parked events are left out: their mirrors lack rows anyway."""

    def __init__(self, source: Connection) -> None:
        self._source = source
        self._doubts: dict[Place, _Doubt] = {}

    def is_sure(self, log: CutLog, tables: Tables, cut: Cut, versions: Mapping[str, int]) -> bool:
        """Raise RowsLost unless the mirrors have all rows that the cut was to give them.

        `versions` are those that the cut's epoch has committed; it is not published yet. False: rows that were written
        in a savepoint look like those of a later transaction, and only a later cut can tell, once.
        """
        doubts, self._doubts = self._doubts, {}
        for record in log.changes_before_starts(cut):
            table = tables.sources[str(log.table_of(record.topic))]
            if not _has_parked(table, tables, versions) and (written := _written(table, record)) is not None:
                self._look(written, tables, cut, versions, doubts.get(record.place))
        return not self._doubts

    def _look(
        self, written: _Written, tables: Tables, cut: Cut, versions: Mapping[str, int], doubt: _Doubt | None
    ) -> None:
        missing = list(self._missing(written, tables, versions))
        lost = {row for row in missing if row.transaction == written.transaction}
        if doubt is not None and doubt.position <= cut.position:
            lost |= doubt.rows.intersection(missing)
        if lost:
            raise _rows_lost(written, len(lost))
        if missing and doubt is None:
            self._doubts[written.record.place] = _Doubt(frozenset(missing), wal_end(self._source))

    def _missing(self, written: _Written, tables: Tables, versions: Mapping[str, int]) -> Iterator[StoredRow]:
        """The rows beside the written one that the mirror does not have."""
        table, name = written.table, str(written.table.name)
        key = [column for part in table.key for column in table.columns if column.name == part]
        decoded = [column_types(table)[part].value(raw) for part, raw in zip(table.key, written.key, strict=True)]
        rows = rows_beside(self._source, table, decoded, written.transaction)
        while batch := list(islice(rows, _BATCH_ROWS)):
            keys = printed_rows(table, key, [row.key for row in batch])
            version = versions.get(name, tables.version(name))
            found = tables.warehouse.lookup(tables.specs[name], version, keys, table.key).select(keys.column_names)
            known = {tuple(each.values()) for each in found.to_pylist()}
            yield from (
                row for row, each in zip(batch, keys.to_pylist(), strict=True) if tuple(each.values()) not in known
            )


def _written(table: SourceTable, record: Record) -> _Written | None:
    """What may have company at its position; a row that stays where it is has none."""
    assert record.value is not None
    change = Envelope(table).read(record)
    key = change.new_key if change.op == "d" else change.key if change.op == "c" else None
    return None if key is None else _Written(record, table, key, record.value["source"]["txId"])


def _has_parked(table: SourceTable, tables: Tables, versions: Mapping[str, int]) -> bool:
    if tables.quarantine is None:
        return False
    entries = tables.quarantine.at(versions.get(QUARANTINE, tables.version(QUARANTINE)))
    return any(entry.table == str(table.name) and entry.state in PARKED for entry in entries)


def _rows_lost(written: _Written, count: int) -> RowsLost:
    name = written.table.name
    return RowsLost(
        f'table "{name}": {count} rows of transaction {written.transaction} are in the source and not in the log, '
        f"wanted none; the connector began again behind {written.record.place}",
        hint="of a page of a COPY, and of a change of key, Debezium 3.7 leaves out the rest if it is stopped behind "
        f'the first row: "cdc-views rebuild {name} --from snapshot --swap" puts it right',
    )
