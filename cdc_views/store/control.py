"""The control log: the Delta table `_epochs`, in which the writer puts every decision, in order.

A record is committed at exactly the last seen version plus one, put if absent, never rebased and
never retried, so record number and version of the table are the same number. Whoever finds its
version taken is no longer the writer. No JVM: it is read by delta-rs; records are written here, since
delta-rs does not bring what it has written to the disk.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError

from cdc_views.clock import SYSTEM_CLOCK, Clock
from cdc_views.errors import Fenced, ForeignCommit, NothingPublished
from cdc_views.lsn import Lsn
from cdc_views.store import durable
from cdc_views.store.data_files import space_for, write_rows
from cdc_views.store.entries import ENGINE, LOG_FOLDER, VersionTaken, entry_file, put_entry
from cdc_views.store.records import KINDS, PUBLISHING, SCHEMA, ControlRecord, Kind, TableVersion, record_of

__all__ = [
    "PUBLISHING",
    "ControlLog",
    "ControlRecord",
    "Kind",
    "TableVersion",
    "last_published",
    "last_takeover",
    "read_control",
]

FOLDER: Final = "_epochs"

_CHECKPOINT_EVERY: Final = 100
_TAIL: Final = 64


class ControlLog:
    """The writer's side. `open` reads everything; nothing may be appended before `take_over`."""

    def __init__(self, root: Path, writer: str, version: int, records: list[ControlRecord], clock: Clock) -> None:
        self._folder = root / FOLDER
        self._writer = writer
        self._version = version
        self._term = 0
        self._epoch = max((record.epoch for record in records), default=0)
        self._attempt = max((record.attempt for record in records), default=0)
        self.clock = clock
        self.records = records

    @classmethod
    def open(cls, root: Path, writer: str, clock: Clock = SYSTEM_CLOCK) -> ControlLog:
        """Read the whole log; makes it if there is none. Raises ForeignCommit."""
        table = _open_or_create(root / FOLDER)
        return cls(root, writer, table.version(), _checked(_records(table, 0), table.version()), clock)

    def take_over(self, generation: str | None = None, detail: Mapping[str, Any] | None = None) -> ControlRecord:
        """Become the writer: a new term, a fresh attempt. Raises Fenced if somebody was faster."""
        self._term = max((record.term for record in self.records), default=0) + 1
        published = self.last_published
        return self.append(
            kind="takeover",
            epoch=published.epoch if published else 0,
            attempt=self.new_attempt(),
            generation=generation or (published.generation if published else None),
            detail=detail,
        )

    def append(
        self,
        *,
        kind: Kind,
        epoch: int,
        attempt: int,
        generation: str | None = None,
        position: Lsn | None = None,
        complete_to: Lsn | None = None,
        committed_at: datetime | None = None,
        offsets: Mapping[str, int] | None = None,
        tables: Mapping[str, TableVersion] | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> ControlRecord:
        """Put the next record. Raises Fenced if another writer has put one, DiskFull."""
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind}")
        if not self._term:
            raise Fenced(f'writer "{self._writer}" has not taken over', hint="take over before the first record")
        record = ControlRecord(
            seq=self._version + 1,
            term=self._term,
            writer=self._writer,
            kind=kind,
            epoch=epoch,
            attempt=attempt,
            generation=generation,
            position=position,
            complete_to=complete_to,
            committed_at=committed_at,
            published_at=self.clock.now() if kind in PUBLISHING else None,
            offsets=dict(offsets or {}),
            tables=dict(tables or {}),
            detail=dict(detail or {}),
        )
        self._put(record)
        self._epoch, self._attempt = max(self._epoch, epoch), max(self._attempt, attempt)
        self.records.append(record)
        return record

    def new_epoch(self) -> int:
        """An epoch number that was never used and is never given again."""
        self._epoch += 1
        return self._epoch

    def new_attempt(self) -> int:
        """An attempt number that was never used and is never given again."""
        self._attempt += 1
        return self._attempt

    @property
    def last_published(self) -> ControlRecord | None:
        """What readers see."""
        return next((record for record in reversed(self.records) if record.kind in PUBLISHING), None)

    @property
    def open_intent(self) -> ControlRecord | None:
        """The last intent, unless its epoch was published or abandoned since."""
        for record in reversed(self.records):
            if record.kind in PUBLISHING or record.kind == "abandon":
                return None
            if record.kind == "intent":
                return record
        return None

    def _put(self, record: ControlRecord) -> None:
        with space_for(self._folder):
            file = write_rows(self._folder, record.row(), ["seq"])
            durable.sync(self._folder)
        try:
            put_entry(self._folder, record.seq, [{"commitInfo": _info(record)}, {"add": file}])
        except VersionTaken:
            self._fenced(record)
        self._version = record.seq
        if record.seq % _CHECKPOINT_EVERY == 0:
            # Only for speed; a disk without space shows itself at the next record.
            with suppress(DeltaError, OSError):
                DeltaTable(str(self._folder)).create_checkpoint()

    def _fenced(self, record: ControlRecord) -> NoReturn:
        found = next((other for other in reversed(read_control(self._folder.parent)) if other.seq >= record.seq), None)
        by = f'by writer "{found.writer}" of term {found.term}' if found else "by somebody unknown"
        raise Fenced(
            f'control log: record {record.seq} was taken {by}, wanted by "{record.writer}" of term {record.term}',
            hint="another engine has taken over; this one has stopped and published nothing more",
        )


def read_control(root: Path) -> list[ControlRecord]:
    """Every record, oldest first; empty if there is no control log yet. Raises ForeignCommit."""
    try:
        table = DeltaTable(str(root / FOLDER))
    except TableNotFoundError:
        return []
    return _checked(_records(table, 0), table.version())


def last_takeover(records: Sequence[ControlRecord]) -> ControlRecord | None:
    """The record with which the last writer began; None if there was none yet."""
    return next((record for record in reversed(records) if record.kind == "takeover"), None)


def last_published(root: Path) -> ControlRecord:
    """The newest published record, by reading the tail of the log. Raises NothingPublished."""
    try:
        table = DeltaTable(str(root / FOLDER))
    except TableNotFoundError:
        table = None
    first = None if table is None else table.version() + 1
    tail = _TAIL
    while table is not None and first is not None and first > 0:
        first = max(0, table.version() + 1 - tail)
        published = [record for record in _records(table, first) if record.kind in PUBLISHING]
        if published:
            return published[-1]
        tail *= 8
    raise NothingPublished(
        f'nothing is published yet in "{root}"',
        hint='start the engine with "cdc-views run" and wait for its first epoch',
    )


def _open_or_create(folder: Path) -> DeltaTable:
    try:
        return DeltaTable(str(folder))
    except TableNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
    # "ignore": the first two engines of a new warehouse may both come here.
    table = DeltaTable.create(
        str(folder),
        Schema.from_arrow(SCHEMA),
        mode="ignore",
        configuration={"delta.dataSkippingStatsColumns": "seq", "delta.appendOnly": "true"},
    )
    for file in (entry_file(folder, 0), folder / LOG_FOLDER, folder, folder.parent):
        durable.sync(file)
    return table


def _info(record: ControlRecord) -> dict[str, Any]:
    parameters = {"mode": "Append", "kind": record.kind}
    return {"timestamp": time.time_ns() // 1_000_000, "operation": "WRITE", "operationParameters": parameters,
            "readVersion": record.seq - 1, "isBlindAppend": False, "engineInfo": ENGINE}  # fmt: skip


def _records(table: DeltaTable, first: int) -> list[ControlRecord]:
    predicate = f"seq >= {first}" if first else None
    rows = pa.table(table.scan(predicate=predicate)).to_pylist(maps_as_pydicts=None)
    return [record_of(row) for row in sorted(rows, key=lambda row: row["seq"] or 0)]


def _checked(records: list[ControlRecord], version: int) -> list[ControlRecord]:
    """Every version above the first is one record of ours: a further version is somebody else's."""
    unknown = next((record for record in records if record.kind not in KINDS), None)
    if unknown is not None:
        raise _foreign(f'found a record of kind "{unknown.kind}" at {unknown.seq}')
    if [record.seq for record in records] != list(range(1, version + 1)):
        raise _foreign(f"found {len(records)} records at version {version}, wanted one of each number up to it")
    return records


def _foreign(what: str) -> ForeignCommit:
    return ForeignCommit(
        f"control log: {what}",
        hint=f'something else writes to "{FOLDER}": stop it, and restore the table to the last version of the engine',
    )
