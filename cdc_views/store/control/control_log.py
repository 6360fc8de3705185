"""The control log: the Delta table `_epochs`, to which the writer commits every decision, in order.

A record is committed at exactly the last seen version plus one, put if absent, never rebased and never retried, so the
number of a record is the version of the table. A writer that finds its version taken is no longer the writer. No JVM:
delta-rs reads the table; records are written here, since delta-rs does not fsync what it writes.

Old records are dropped by a record of kind `upkeep`, whose version rearranges the files without them. Its detail has
the number from which on every record is there (`first`), and those of the earlier records that stay (`kept`).
"""

from __future__ import annotations

import errno
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError

from cdc_views.base.lsn import Lsn
from cdc_views.errors import Fenced, ForeignCommit, NothingPublished, TableUnavailable, WarehouseUnusable
from cdc_views.host.clock import SYSTEM_CLOCK, Clock
from cdc_views.store.control.records import KINDS, PUBLISHING, SCHEMA, ControlRecord, Kind, TableVersion, record_of
from cdc_views.store.delta_log.entries import (
    ENGINE,
    LOG_FOLDER,
    NO_TABLE,
    Action,
    VersionTaken,
    commit_info,
    entry_file,
    newest_version,
    put_entry,
    read_entry,
)
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.files.data_files import write_rows
from cdc_views.store.storage import durable
from cdc_views.store.storage.disk import require_folder, touching, unusable, unusable_by

__all__ = [
    "PUBLISHING",
    "ControlLog",
    "ControlRecord",
    "Kind",
    "TableVersion",
    "known_attempts",
    "last_published",
    "last_published_of",
    "last_reset",
    "last_takeover",
    "open_intent",
    "published_after",
    "read_control",
    "written_at",
]

FOLDER: Final = "_epochs"
SPEC: Final = TableSpec(FOLDER, FOLDER, SCHEMA, ("seq",))
FIRST: Final = "first"  # in the detail of a record of upkeep: every record from this number on is there
KEPT: Final = "kept"  # in the same detail: the numbers of earlier published records that stay, for their epochs

_TAIL: Final = 64
_KIND: Final = "kind"


class ControlLog:
    """The log for its writer. `open` reads all records; `take_over` comes before the first `append`."""

    def __init__(
        self,
        root: Path,
        writer: str,
        version: int,
        records: list[ControlRecord],
        clock: Clock,
        upgrade: Sequence[Action] = (),
    ) -> None:
        """`upgrade` are the actions that give the table the columns of this version of cdc_views."""
        self._folder = root / FOLDER
        self._writer = writer
        self._version = version
        self._upgrade = upgrade
        self._term = 0
        self._epoch = max((record.epoch for record in records), default=0)
        self._attempt = max((record.attempt for record in records), default=0)
        self._recorded = self._attempt
        self.clock = clock
        self.records = records

    @classmethod
    def open(cls, root: Path, writer: str, clock: Clock = SYSTEM_CLOCK) -> ControlLog:
        """Read the whole log, created if there is none. Raises ForeignCommit, WarehouseUnusable, DiskFull."""
        require_folder(root)
        with touching(root / FOLDER):
            table = _open_or_create(root / FOLDER)
        records = _checked(_records(table), table.version())
        return cls(root, writer, table.version(), records, clock, _upgrade(table))

    def take_over(self, generation: str | None = None, detail: Mapping[str, Any] | None = None) -> ControlRecord:
        """Become the writer, with a new term and a new attempt. Raises Fenced if another writer was faster."""
        self._term = max((record.term for record in self.records), default=0) + 1
        published = self.last_published
        return self.append(
            kind="takeover",
            epoch=published.epoch if published else 0,
            attempt=self.new_attempt(),
            generation=generation or (published.generation if published else None),
            detail=detail,
            rearranged=self._upgrade,
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
        rearranged: Sequence[Action] = (),
        repeated: Sequence[ControlRecord] = (),
    ) -> ControlRecord:
        """Append the next record. Raises Fenced if another writer has appended one, DiskFull.

        The version of the record also applies the `rearranged` actions to the files of the log. Its file repeats
        records of removed files that must stay.
        """
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
        self._put(record, rearranged, repeated)
        self._epoch, self._attempt = max(self._epoch, epoch), max(self._attempt, attempt)
        self._recorded = max(self._recorded, attempt)
        self.records.append(record)
        return record

    def new_epoch(self) -> int:
        """An epoch number that was never used and is never given out again."""
        self._epoch += 1
        return self._epoch

    def new_attempt(self) -> int:
        """An attempt number that was never used and is never given out again."""
        self._attempt += 1
        return self._attempt

    @property
    def last_published(self) -> ControlRecord | None:
        """What readers see."""
        return next((record for record in reversed(self.records) if record.kind in PUBLISHING), None)

    def published_in(self, generation: str | None) -> ControlRecord | None:
        """What readers see, if it is of this generation; an engine continues from nothing else."""
        published = self.last_published
        return published if published is not None and published.generation == generation else None

    @property
    def open_intent(self) -> ControlRecord | None:
        """The last intent, unless its epoch was published or abandoned since."""
        return open_intent(self.records)

    @property
    def version(self) -> int:
        """The number of the last record, which is also the version of the table."""
        return self._version

    @property
    def first(self) -> int:
        """The number from which on no record is missing."""
        return _first(self.records)

    @property
    def last_attempt(self) -> int:
        """The highest attempt of any record; versions of tables may carry it."""
        return self._recorded

    @property
    def last_epoch(self) -> int:
        """The highest epoch of any record."""
        return max((record.epoch for record in self.records[-_TAIL:]), default=0)

    def require_writer(self) -> None:
        """Check that this is still the writer, before an action that cannot be undone.

        Raises Fenced, ForeignCommit if something other than an engine wrote to the log, WarehouseUnusable if the log
        is gone.
        """
        newest = newest_version(self._folder)
        if newest < self._version:
            raise unusable(errno.ENOENT, self._folder)
        if newest > self._version:
            self._fenced(self._version + 1)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raise Fenced instead of any other error once another writer has taken over. For all work of the writer.

        After a takeover this one may find foreign versions, or miss files that the other writer has removed.
        """
        try:
            yield
        except Fenced:
            raise
        except Exception as error:
            if not self._term:
                raise
            try:
                self.require_writer()
            except Fenced as fenced:
                raise fenced from error
            except WarehouseUnusable:
                pass  # the original error says more
            raise

    def forget_before(self, first: int) -> None:
        """Drop the records before this number from memory, except the permanent ones."""
        self.records = _since(self.records, first)

    def _put(self, record: ControlRecord, rearranged: Sequence[Action], repeated: Sequence[ControlRecord]) -> None:
        with touching(self._folder):
            rows = pa.concat_tables([each.row() for each in (*repeated, record)])
            file = write_rows(self._folder, rows, SPEC.key)
            durable.sync(self._folder)
        try:
            put_entry(self._folder, record.seq, [{"commitInfo": _info(record)}, *rearranged, {"add": file}])
        except VersionTaken:
            self._fenced(record.seq)
        self._version = record.seq

    def _fenced(self, seq: int) -> NoReturn:
        found = next((other for other in reversed(read_control(self._folder.parent)) if other.seq >= seq), None)
        by = f'by writer "{found.writer}" of term {found.term}' if found else "by an unknown writer"
        raise Fenced(
            f'control log: record {seq} was taken {by}, wanted by "{self._writer}" of term {self._term}',
            hint="another engine has taken over; this one has stopped and published nothing more",
        )


def read_control(root: Path) -> list[ControlRecord]:
    """Every record, oldest first; empty if there is no control log yet. Raises ForeignCommit, WarehouseUnusable."""
    require_folder(root)
    with touching(root):
        if newest_version(root / FOLDER) == NO_TABLE:
            return []
        table = DeltaTable(str(root / FOLDER))
        return _checked(_records(table), table.version())


def written_at(root: Path, record: ControlRecord) -> datetime | None:
    """When a record was written; None if its log entry is gone. Raises WarehouseUnusable."""
    try:
        info = commit_info(read_entry(root / FOLDER, record.seq))
    except TableUnavailable:
        return None
    return datetime.fromtimestamp(info["timestamp"] / 1000, UTC) if "timestamp" in info else None


def open_intent(records: Sequence[ControlRecord]) -> ControlRecord | None:
    """The last intent, unless its epoch was published or abandoned since."""
    for record in reversed(records):
        if record.kind in PUBLISHING or record.kind == "abandon":
            return None
        if record.kind == "intent":
            return record
    return None


def last_takeover(records: Sequence[ControlRecord]) -> ControlRecord | None:
    """The record with which the last writer began; None if there is none yet."""
    return next((record for record in reversed(records) if record.kind == "takeover"), None)


def last_reset(records: Sequence[ControlRecord]) -> ControlRecord | None:
    """The last record of kind `reset`; None if there was no reset."""
    return next((record for record in reversed(records) if record.kind == "reset"), None)


def permanent(records: Sequence[ControlRecord]) -> list[ControlRecord]:
    """Records that are never dropped: they say what the mirrors were made from, and which capture is current."""
    return [record for record in (last_takeover(records), last_reset(records)) if record is not None]


def known_attempts(records: Sequence[ControlRecord]) -> Container[int]:
    """Every attempt that was ever given out: those of the records, and all lower ones."""
    first = _first(records)
    later = {record.attempt for record in records if record.seq >= first}
    return _Attempts(min(later, default=1), later)


class _Attempts:
    """The numbers from 1 up to before `first`, and those in `later`."""

    def __init__(self, first: int, later: set[int]) -> None:
        self._first = first
        self._later = later

    def __contains__(self, attempt: object) -> bool:
        return isinstance(attempt, int) and (0 < attempt < self._first or attempt in self._later)


def last_published(root: Path) -> ControlRecord:
    """The newest published record, read from the end of the log. Raises NothingPublished, WarehouseUnusable."""
    require_folder(root)
    for record in _newest(root / FOLDER):
        if record.kind in PUBLISHING:
            return record
    return last_published_of(read_control(root), root)


def last_published_of(records: Sequence[ControlRecord], root: Path) -> ControlRecord:
    """The last published one of the records of a warehouse. Raises NothingPublished."""
    for record in reversed(records):
        if record.kind in PUBLISHING:
            return record
    raise NothingPublished(
        f'nothing is published yet in "{root}"',
        hint='start the engine with "cdc-views run" and wait for its first epoch',
    )


def published_after(root: Path, epoch: int) -> list[ControlRecord]:
    """The published records of later epochs, oldest first, as far as the log has them.

    Raises ForeignCommit, WarehouseUnusable.
    """
    require_folder(root)
    found: list[ControlRecord] = []
    for record in _newest(root / FOLDER):
        if record.epoch <= epoch:
            return found[::-1]
        if record.kind in PUBLISHING:
            found.append(record)
    return [record for record in read_control(root) if record.kind in PUBLISHING and record.epoch > epoch]


def _newest(folder: Path) -> Iterator[ControlRecord]:
    """The newest published records, newest first, each from the file of its own version, while these files exist."""
    newest = newest_version(folder)
    for version in range(newest, max(NO_TABLE, newest - _TAIL), -1):
        try:
            actions = read_entry(folder, version)
            if commit_info(actions).get("operationParameters", {}).get(_KIND, "publish") not in PUBLISHING:
                continue
            for add in (action["add"] for action in actions if "add" in action):
                rows = _rows_of(folder / add["path"])
                yield from (record_of(row) for row in rows if row["seq"] == version)
        except (TableUnavailable, FileNotFoundError):
            return


def _rows_of(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of the log. Raises FileNotFoundError, WarehouseUnusable."""
    try:
        with pq.ParquetFile(file, pre_buffer=False) as opened:
            return opened.read(use_threads=False).to_pylist()  # type: ignore[no-any-return]
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unusable_by(error, file) or error from error


def _open_or_create(folder: Path) -> DeltaTable:
    try:
        return DeltaTable(str(folder))
    except TableNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
    # "ignore", since two engines may open a new warehouse at the same time.
    table = DeltaTable.create(
        str(folder),
        Schema.from_arrow(SCHEMA),
        mode="ignore",
        configuration={
            "delta.dataSkippingStatsColumns": "seq",
            "delta.deletedFileRetentionDuration": "interval 1 hour",
            "delta.enableExpiredLogCleanup": "false",
        },
    )
    for file in (entry_file(folder, 0), folder / LOG_FOLDER, folder, folder.parent):
        durable.sync(file)
    return table


def _upgrade(table: DeltaTable) -> list[Action]:
    """The new metadata of a table that an earlier version of cdc_views created; empty if it has all columns."""
    if {field.name for field in table.schema().fields} >= {*SCHEMA.names}:
        return []
    known = table.metadata()
    metadata = {"id": str(known.id), "format": {"provider": "parquet", "options": {}},
                "schemaString": Schema.from_arrow(SCHEMA).to_json(), "partitionColumns": [],
                "configuration": known.configuration, "createdTime": known.created_time}  # fmt: skip
    return [{"metaData": metadata}]


def _info(record: ControlRecord) -> dict[str, Any]:
    parameters = {"mode": "Append", _KIND: record.kind}
    return {"timestamp": time.time_ns() // 1_000_000, "operation": "WRITE", "operationParameters": parameters,
            "readVersion": record.seq - 1, "isBlindAppend": False, "engineInfo": ENGINE}  # fmt: skip


def _records(table: DeltaTable) -> list[ControlRecord]:
    rows = pa.table(table.scan()).to_pylist()
    return [record_of(row) for row in sorted(rows, key=lambda row: row["seq"] or 0)]


def _checked(records: list[ControlRecord], version: int) -> list[ControlRecord]:
    """The records, once it is certain that each version has one, except those that upkeep has dropped."""
    unknown = next((record for record in records if record.kind not in KINDS), None)
    if unknown is not None:
        raise _foreign(f'found a record of kind "{unknown.kind}" at {unknown.seq}')
    first = _first(records)
    if [record.seq for record in records if record.seq >= first] != list(range(first, version + 1)):
        raise _foreign(
            f"found {len(records)} records at version {version}, wanted one of each number from {first} up to it"
        )
    return _since(records, first)


def _first(records: Sequence[ControlRecord]) -> int:
    """The record from which on all are there."""
    return int(_last_upkeep(records).get(FIRST, 1))


def _last_upkeep(records: Sequence[ControlRecord]) -> Mapping[str, Any]:
    """The detail of the last record that dropped earlier ones; empty if there is none."""
    return next((record.detail for record in reversed(records) if FIRST in record.detail), {})


def _since(records: Sequence[ControlRecord], first: int) -> list[ControlRecord]:
    """The records from this one on, and those that stay."""
    kept = {record.seq for record in permanent(records)} | {*_last_upkeep(records).get(KEPT, ())}
    return [record for record in records if record.seq >= first or record.seq in kept]


def _foreign(what: str) -> ForeignCommit:
    return ForeignCommit(
        f"control log: {what}",
        hint=f'something else writes to "{FOLDER}": stop it, and restore the table to the last version of the engine',
    )
