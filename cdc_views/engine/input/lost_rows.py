"""Rows that the connector has left out of the log where it began again.

Rows of a COPY share the position of their page in the WAL, and both halves of a change of key share theirs. If
Debezium 3.7 is stopped or killed when only the first of them is stored, it goes on behind all of them, and no event
tells of the others. So whenever the connector began again, the source is asked for the rows beside the last one before
that. Those of its transaction, which is in the cut, must be in the mirror.

Rows that were written in a savepoint have a transaction of their own, and look like those that a later transaction has
written to the row and its page: which of the two it is, a later cut tells, which has all that the source had when it
was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from cdc_views.capture.envelope import Envelope, Key
from cdc_views.capture.printed import printed_rows
from cdc_views.capture.types import column_types
from cdc_views.engine.epoch.tables import Tables
from cdc_views.engine.input.quarantine import Counts
from cdc_views.errors import RowsLost
from cdc_views.log.cut import Cut, CutLog
from cdc_views.log.record import Place
from cdc_views.lsn import Lsn
from cdc_views.source.catalog import SourceTable
from cdc_views.source.connection import Connection
from cdc_views.source.pages import StoredRow, rows_beside
from cdc_views.source.position import wal_end

_BATCH_ROWS: Final = 10_000


@dataclass(frozen=True)
class _Written:
    """A change of a key, its transaction, and where the log says so."""

    table: SourceTable
    key: Key
    transaction: int
    place: Place


@dataclass(frozen=True)
class _Doubt:
    """Rows that a mirror lacks, and that everything before `position` has."""

    rows: frozenset[StoredRow]
    position: Lsn


class LostRows:
    """Looks for them at each epoch."""

    def __init__(self, source: Connection) -> None:
        self._source = source
        self._doubts: dict[Place, _Doubt] = {}

    def is_sure(self, log: CutLog, tables: Tables, cut: Cut, commits: Mapping[str, int], counts: Counts) -> bool:
        """Raise RowsLost unless the mirrors have all rows that the cut was to give them.

        `commits` are the versions that the cut's epoch has made, and that are not published yet. By `counts` tables are
        left out whose mirrors lack rows anyway. False: only a later cut can tell; it is asked for once for each start.
        """
        lost: dict[_Written, int] = {}
        is_sure = True
        for written in self._written(log, tables, cut, counts):
            missing = frozenset(self._missing(written, tables, commits))
            surely = {row for row in missing if row.transaction == written.transaction}
            doubt = self._doubts.get(written.place)
            if doubt is not None and doubt.position <= cut.complete_to:
                surely |= doubt.rows & missing
            if surely:
                lost[written] = len(surely)
            elif missing and doubt is None:
                self._doubts[written.place] = _Doubt(missing, wal_end(self._source))
                is_sure = False
        if lost:
            raise _rows_lost(lost)
        if is_sure:
            self._doubts.clear()
        return is_sure

    @staticmethod
    def _written(log: CutLog, tables: Tables, cut: Cut, counts: Counts) -> Iterator[_Written]:
        """The last changes before a start that may have had company at their position: not one that kept its key."""
        for record in log.changes_before_starts(cut):
            table = tables.sources[str(log.table_of(record.topic))]
            if record.value is None or counts.status(str(table.name)) != "live":
                continue
            change = Envelope(table).read(record)
            key = change.new_key if change.op == "d" else change.key if change.op == "c" else None
            if key is not None:
                yield _Written(table, key, record.value["source"]["txId"], record.place)

    def _missing(self, written: _Written, tables: Tables, commits: Mapping[str, int]) -> Iterator[StoredRow]:
        """The rows beside the written one that the mirror does not have."""
        table, name, types = written.table, str(written.table.name), column_types(written.table)
        key = [types[part].value(raw) for part, raw in zip(table.key, written.key, strict=True)]
        rows, version = (
            rows_beside(self._source, table, key, written.transaction),
            commits.get(name, tables.version(name)),
        )
        while batch := list(islice(rows, _BATCH_ROWS)):
            keys = printed_rows(table, table.key_columns, [row.key for row in batch])
            found = tables.warehouse.lookup(tables.specs[name], version, keys, table.key).select(keys.column_names)
            known = {tuple(each.values()) for each in found.to_pylist()}
            yield from (
                row for row, each in zip(batch, keys.to_pylist(), strict=True) if tuple(each.values()) not in known
            )


def _rows_lost(lost: Mapping[_Written, int]) -> RowsLost:
    found = [
        f'table "{written.table.name}": {count} rows of transaction {written.transaction} are in the source and not in '
        f"the log, wanted none; the connector began again behind {written.place}"
        for written, count in lost.items()
    ]
    names = " ".join(sorted({str(written.table.name) for written in lost}))
    return RowsLost(
        "; ".join(found),
        hint="of a page of a COPY, and of a change of key, Debezium 3.7 leaves out the rest if it is stopped behind "
        f'the first row: "cdc-views rebuild {names} --from snapshot --swap" puts it right',
    )
