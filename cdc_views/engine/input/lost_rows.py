"""Rows that the connector has skipped at a restart.

The rows of a COPY share the WAL position of their page, and the two halves of a primary-key update share theirs. If
Debezium 3.7 is stopped or killed when only the first of them is stored, it continues after all of them, and the others
have no event. So after each restart of the connector, the source is asked for the rows beside the last one before the
restart. Rows of the same transaction, which is in the cut, must be in the mirror.

A row that was written in a savepoint has a transaction of its own, and looks like a row that a later transaction has
written to the same page. Only a later cut, which has everything that the source had when it was asked, tells which of
the two it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from cdc_views.base.lsn import Lsn
from cdc_views.capture.envelope import Envelope, KeyValues
from cdc_views.capture.printed import printed_rows
from cdc_views.capture.types import column_types
from cdc_views.engine.input.quarantine_step import QuarantineCounts
from cdc_views.engine.intent import CutAgain
from cdc_views.engine.tables import Tables
from cdc_views.errors import RowsLost
from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.cuts.cut import Cut, CutLog
from cdc_views.source.catalog import SourceTable
from cdc_views.source.connection import Connection
from cdc_views.source.reading.pages import SourceRow, rows_beside
from cdc_views.source.reading.position import wal_end

_BATCH_ROWS: Final = 10_000


@dataclass(frozen=True)
class _WrittenKey:
    """A change of a key, with its transaction and its offset in the log."""

    table: SourceTable
    key: KeyValues
    transaction: int
    place: LogOffset


@dataclass(frozen=True)
class _Doubt:
    """Rows that a mirror lacks. A cut that is complete to `position` includes their transactions."""

    rows: frozenset[SourceRow]
    position: Lsn


class LostRows:
    """Looks for lost rows in each epoch."""

    def __init__(self, source: Connection) -> None:
        self._source = source
        self._doubts: dict[LogOffset, _Doubt] = {}

    def require_none(
        self, log: CutLog, tables: Tables, cut: Cut, commits: Mapping[str, int], counts: QuarantineCounts
    ) -> None:
        """Raise RowsLost unless the mirrors have all rows that the cut gives them.

        `commits` are the versions that the cut's epoch has committed and not published. Tables whose mirrors lack rows
        anyway, by `counts`, are skipped. Raises CutAgain if only a later cut can tell; at most once for each start of
        the connector.
        """
        lost: dict[_WrittenKey, int] = {}
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
        if not is_sure:
            raise CutAgain("only a later cut can tell whether the connector has skipped rows")
        self._doubts.clear()

    @staticmethod
    def _written(log: CutLog, tables: Tables, cut: Cut, counts: QuarantineCounts) -> Iterator[_WrittenKey]:
        """The last change before each start that may share its position: an insert, or half of a change of key."""
        for record in log.changes_before_starts(cut):
            table = tables.sources[str(log.table_of(record.topic))]
            if record.value is None or counts.status(str(table.name)) != "live":
                continue
            change = Envelope(table).read(record)
            key = change.new_key if change.op == "d" else change.key if change.op == "c" else None
            if key is not None:
                yield _WrittenKey(table, key, record.value["source"]["txId"], record.log_offset)

    def _missing(self, written: _WrittenKey, tables: Tables, commits: Mapping[str, int]) -> Iterator[SourceRow]:
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


def _rows_lost(lost: Mapping[_WrittenKey, int]) -> RowsLost:
    found = [
        f'table "{written.table.name}": {count} rows of transaction {written.transaction} are in the source and not in '
        f"the log, wanted none; the connector restarted after {written.place}"
        for written, count in lost.items()
    ]
    names = " ".join(sorted({str(written.table.name) for written in lost}))
    return RowsLost(
        "; ".join(found),
        hint="Debezium 3.7 can skip rows if it is stopped in the middle of a COPY or a primary-key update: "
        f'"cdc-views rebuild {names} --from snapshot --swap" restores them',
    )
