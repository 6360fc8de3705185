"""The initial snapshot, as Debezium's notifications report it: all of it, or nothing.

A snapshot that was interrupted and started again leaves rows in the log that no longer exist in the source, and nothing
ever deletes them. So a second start is an error, never a second try.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from cdc_views.base.names import TableName
from cdc_views.config import LogSettings
from cdc_views.errors import RESET, CdcViewsError, ConnectorFailed, NotRunning, SnapshotInterrupted
from cdc_views.log.debezium.connect import ConnectClient, require_not_failed
from cdc_views.log.debezium.notifications import notification_partition, read_notification
from cdc_views.log.kafka.reader import Reader
from cdc_views.log.kafka.record import TopicPartition
from cdc_views.log.kafka.topics import (
    REQUEST_TIMEOUT_S,
    admin_client,
    begin_offsets,
    end_offsets,
    topic_facts,
    topic_name,
)

_WAIT_S: Final = 0.2
_WATCH_INTERVAL_S: Final = 2.0
_COUNT_INTERVAL_S: Final = 2.0
_INITIAL: Final = "Initial Snapshot"


@dataclass(frozen=True)
class SnapshotProgress:
    """The progress of the snapshot: tables done, rows of those tables, and the table that is being read.

    `rows_in_log` counts the rows of all tables that can be read from their topics, `rows_per_second` is their rate
    since they were first counted. Only a `wait_snapshot` that is given the tables fills both.
    """

    tables_done: int = 0
    rows: int = 0
    table: str | None = None
    started: bool = False
    completed: bool = False
    skipped: bool = False
    rows_in_log: int = 0
    rows_per_second: float = 0.0

    def after(self, notification: dict[str, Any]) -> SnapshotProgress:
        """Take in the next notification. Raises SnapshotInterrupted."""
        if notification.get("aggregate_type") != _INITIAL:
            return self
        kind, data = notification.get("type"), notification.get("additional_data") or {}
        if kind == "ABORTED" or (kind == "STARTED" and self.started):
            raise interrupted("was aborted" if kind == "ABORTED" else "was interrupted and started again")
        if kind == "STARTED":
            return replace(self, started=True)
        if kind == "SKIPPED":
            return replace(self, skipped=True)
        if kind == "IN_PROGRESS":
            return replace(self, table=data.get("current_collection_in_progress", self.table))
        if kind == "TABLE_SCAN_COMPLETED":
            rows = int(data.get("total_rows_scanned") or 0)
            return replace(self, tables_done=self.tables_done + 1, rows=self.rows + rows)
        return replace(self, completed=True) if kind == "COMPLETED" else self


def interrupted(how: str) -> SnapshotInterrupted:
    """Return the error of a snapshot whose rows cannot be trusted."""
    return SnapshotInterrupted(
        f"the initial snapshot {how}: the log may hold rows that the source no longer has",
        hint=RESET,
    )


def _skipped() -> SnapshotInterrupted:
    return SnapshotInterrupted(
        "the initial snapshot was skipped: Connect has stored offsets of an earlier connector of this name",
        hint="delete these offsets, or choose another log.connector",
    )


class _Arriving:
    """Counts the rows in the topics of these tables; a transaction marker counts as one."""

    def __init__(self, settings: LogSettings, tables: Iterable[TableName]) -> None:
        self._admin = admin_client(settings)
        names = [topic_name(settings.topic_prefix, table) for table in tables]
        facts = topic_facts(self._admin, names) if names else {}
        partitions = [TopicPartition(name, n) for name, found in facts.items() for n in range(found["partitions"])]
        self._begin = begin_offsets(self._admin, partitions) if partitions else {}
        self._first: tuple[float, int] | None = None
        self._due_s = 0.0

    def is_due(self) -> bool:
        return bool(self._begin) and time.monotonic() >= self._due_s

    def counted(self, progress: SnapshotProgress) -> SnapshotProgress:
        """Return the progress with the rows that have arrived; unchanged if Kafka does not answer, which
        others notice.
        """
        self._due_s = time.monotonic() + _COUNT_INTERVAL_S
        with suppress(NotRunning):
            ends, now = end_offsets(self._admin, self._begin, committed=True), time.monotonic()
            rows = sum(ends.values()) - sum(self._begin.values())
            # If some rows were there before the wait began, how long they took is not known.
            first_s, first_rows = self._first = self._first or (now, rows)
            per_second = (rows - first_rows) / (now - first_s) if now > first_s else 0.0
            return replace(progress, rows_in_log=rows, rows_per_second=per_second)
        return progress


def wait_snapshot(
    settings: LogSettings, on_progress: Callable[[SnapshotProgress], None], tables: Collection[TableName] = ()
) -> None:
    """Return when the snapshot is complete. Raises SnapshotInterrupted and ConnectorFailed.

    With `tables`, their rows are counted, and progress is also reported between notifications.
    """
    connect = ConnectClient(settings.connect_url)
    deadline = time.monotonic() + settings.snapshot_timeout_s
    watch_s = time.monotonic() + _WATCH_INTERVAL_S
    progress, arriving = SnapshotProgress(), _Arriving(settings, tables)
    with closing(Reader(settings)) as reader:
        reader.assign(begin_offsets(admin_client(settings), [notification_partition(settings)]))
        while True:
            for notification in _notifications(reader):
                progress = progress.after(notification)
                on_progress(progress)
            if progress.completed:
                return
            if progress.skipped and not progress.started:
                raise _skipped()
            if arriving.is_due():
                progress = arriving.counted(progress)
                if progress.started:
                    on_progress(progress)
            if time.monotonic() > watch_s:
                _watch(connect, settings.connector)
                watch_s = time.monotonic() + _WATCH_INTERVAL_S
            if time.monotonic() > deadline:
                raise _timed_out(settings, progress)


def require_one_snapshot(settings: LogSettings) -> None:
    """Raise SnapshotInterrupted if a snapshot was begun again after it was complete; does not wait.

    If the topic of notifications was deleted and created again, it has no notification. But then the tables' topics
    were created again, too, or it is known what was read.
    """
    admin, partition, progress = admin_client(settings), notification_partition(settings), SnapshotProgress()
    deadline = time.monotonic() + REQUEST_TIMEOUT_S
    with closing(Reader(settings)) as reader:
        reader.assign(begin_offsets(admin, [partition]))
        ends = end_offsets(admin, [partition], committed=True)
        while not reader.reached(ends):
            for notification in _notifications(reader):
                progress = progress.after(notification)
            if time.monotonic() > deadline:
                raise NotRunning(
                    f'topic "{partition.topic}" could not be read within {REQUEST_TIMEOUT_S} s',
                    hint="is Kafka running, and does it reach log.bootstrap_servers?",
                )


def _notifications(reader: Reader) -> Iterator[dict[str, Any]]:
    for message in reader.read(_WAIT_S):
        if (notification := read_notification(message)).get("aggregate_type") == _INITIAL:
            yield notification


def _watch(connect: ConnectClient, name: str) -> None:
    try:
        task = connect.task_state(name)
    except NotRunning:
        return  # the worker is restarting; if it was reading the snapshot, its next start reports that
    require_not_failed(name, task)


def _timed_out(settings: LogSettings, progress: SnapshotProgress) -> CdcViewsError:
    return ConnectorFailed(
        f"the initial snapshot is not complete after {settings.snapshot_timeout_s:.0f} s: "
        f"{progress.tables_done} tables and {progress.rows} rows",
        hint="see the log of Connect; log.snapshot_timeout_s is the limit",
    )
