"""Every error that cdc_views raises on purpose, as one tree.

CdcViewsError
├── BadInput                  exit status 2: something that the user gave cannot be used
│   ├── BadConfig             the settings: unknown key, wrong type, missing secret
│   ├── BadLsn
│   ├── BadView               a view file: syntax, unknown table or option, cycle (file, line, column)
│   │   ├── UnsupportedView   a query that cannot be kept exactly
│   │   └── ViewCycle
│   ├── BadQuery              SQL given to `query`
│   ├── PreflightFailed       findings of `check` that prevent a start
│   ├── NotConfirmed          a command that asks before it changes something, without an answer
│   ├── UnsupportedType       a column whose values have no exact form in Delta
│   ├── BadReplay             a rebuild from a position that cannot be replayed from
│   │   └── NotSelfContained  the table's log alone does not determine what the table holds
│   ├── UnknownTable
│   ├── UnknownEvent          an offset in the log whose event is not in quarantine
│   ├── BadRequest            a request that the running engine cannot read
│   ├── BadTable              a statement from which the test harness cannot create a table
│   ├── BadChange             a change that the tables of the test harness refuse, as Postgres would
│   │   ├── BadValue          a value that is not of its column's type, or does not fit it
│   │   ├── DuplicateKey
│   │   ├── NoSuchRow         no such row, or more than one
│   │   └── NullNotAllowed
│   ├── JavaMissing
│   └── SourceUnreachable     wrong DSN, wrong password, no server
├── NotRunning                exit status 3: the stack or the engine is not running
├── StackError                a service of the local stack
│   ├── DownloadFailed        a pinned file; one that does not match its checksum is not kept
│   ├── PortInUse
│   ├── ServiceFailed         did not become healthy; has the last lines of its log
│   │   └── ServiceKilled     a signal ended it while it was starting
│   └── DriverLost            the JVM of Spark's driver ended while the engine was using it
├── LogError                  Kafka or Connect
│   ├── BadEvent              an event that is not what Debezium writes
│   ├── ConnectorFailed       the state of the connector's task
│   ├── SnapshotInterrupted   the initial snapshot was interrupted
│   ├── MarkerTimeout         a marker did not come through the log
│   ├── SequenceRegressed     an order below its partition's maximum
│   ├── LogDiscontinuity      the source or the log does not continue from what is published
│   ├── CutTooLarge           more events than the driver may hold, and no smaller cut is possible
│   ├── LogGap                needed records may have been compacted away
│   ├── OffsetCompacted       the first offset of a partition is beyond the wanted one
│   ├── TopicChanged          another topic id, partition count or setting
│   ├── SlotChanged           the slot is gone, lost, or advanced beyond what Connect stored
│   ├── PrintedOtherwise      the connector's session prints values in another form than the pinned one
│   └── RowsLost              the connector skipped rows when it was restarted
├── SchemaChanged             DDL on a captured table that cannot be applied
├── TableTruncated            TRUNCATE of a captured table
├── UnresolvedToast           an unchanged TOAST value that neither log nor mirror holds
│   └── WrongReplicaIdentity  an event that Postgres does not write with REPLICA IDENTITY FULL
├── StoreError                Delta tables and the control log
│   ├── Fenced                another writer has taken over
│   ├── WarehouseLocked       another engine on this machine
│   ├── RebuildRunning        another process is rebuilding the same tables
│   ├── ResetUnfinished       a reset was begun, and nothing of the new generation is published yet
│   ├── ForeignCommit         somebody else has written to one of our tables
│   ├── WrongFeatures         a table has a protocol feature that it must not have
│   └── WarehouseUnusable     the operating system refuses a file: `path`, `errno`
│       └── DiskFull          no space left, or none of the quota
├── MirrorFailed              an unexpected error while the changes of one table were decoded or committed
├── RequestFailed             an unexpected error while the running engine served a request
├── NothingPublished          there is no epoch to read yet
├── UnknownView               a name that the published epoch does not have
├── ViewFailed                a view whose query failed; its last good epoch stays in the control log
│   ├── KeyNotUnique          two rows of a view have the key that was derived for it
│   └── ColumnsDiffer         the columns of a view's result are not those that were declared
├── TableUnavailable          a published version that cannot be read
├── FaultNotReached           a test's crash that did not happen
├── UnequalRows               the test harness: a view that does not equal its SQL; shows the rows
├── CheckFailed               tables or views that do not equal Postgres
└── OracleError               the WAL oracle of cdc_views.testing cannot say
    ├── UnsupportedTable      a table that cannot be replayed
    ├── PositionUnknown       a position before its beginning, before its current one, or not yet in the WAL
    └── ReplayFailed          the WAL does not fit the rows to which it is applied

BadEvent, UnsupportedType and UnresolvedToast are also EventErrors: of an event that cannot be applied, with its offset
in the log.

Wording follows Postgres: lower case, no full stop, the object quoted, what was found and what was wanted. The hint says
what to do. Code decides by class and field, never by the text of a message. Row values never appear in messages, except
in UnequalRows of tests.
"""

from __future__ import annotations

from copy import copy
from typing import ClassVar, Final, Self

from cdc_views.log_offset import LogOffset

RESET: Final = 'run "cdc-views reset"'
"""The remedy, in hints, if the log can no longer bring the mirrors to the state of the source."""


class CdcViewsError(Exception):
    """The root. `hint` says what to do; `retryable` whether trying again can help."""

    exit_status: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class BadInput(CdcViewsError):
    """Something that the user gave cannot be used."""

    exit_status = 2


class EventError(CdcViewsError):
    """An event that cannot be applied to its mirror.

    `log_offset` is where the event is in the log; None while that is not known. `problem` is the message without it.
    """

    def __init__(self, message: str, *, hint: str | None = None, log_offset: LogOffset | None = None) -> None:
        super().__init__(message if log_offset is None else f"{log_offset}: {message}", hint=hint)
        self.problem = message
        self.log_offset = log_offset

    def at(self, log_offset: LogOffset) -> Self:
        """Return the same error with the offset of the event; an error that has an offset keeps it."""
        if self.log_offset is not None:
            return self
        found = copy(self)
        found.log_offset, found.message = log_offset, f"{log_offset}: {self.problem}"
        return found


class BadConfig(BadInput):
    """A setting is unknown, has the wrong type or value, or refers to a missing secret."""


class BadLsn(BadInput):
    """A text that is not an LSN."""


class BadView(BadInput):
    """A view file that cannot be used; the message begins with `file:line:column`."""


class UnsupportedView(BadView):
    """A view whose result depends on more than its tables, or has no exact form in Delta."""


class ViewCycle(BadView):
    """Views that read each other in a cycle."""


class BadQuery(BadInput):
    """SQL that DuckDB refuses."""


class PreflightFailed(BadInput):
    """Findings of `check` that prevent a start."""


class NotConfirmed(BadInput):
    """A command that asks before it changes something has no terminal to ask at, and `--yes` was not given."""


class UnsupportedType(EventError, BadInput):
    """A column whose values have no exact form in Delta."""


class BadReplay(BadInput):
    """A replay from a point that does not exist, or that would leave a gap."""


class NotSelfContained(BadReplay):
    """The log of a table alone does not contain everything that the table holds."""


class UnknownTable(BadInput):
    """A source table that does not exist."""


class UnknownEvent(BadInput):
    """No event with this topic, partition and offset is in quarantine."""


class BadRequest(BadInput):
    """The running engine cannot read a request, for example one of another version."""


class BadTable(BadInput):
    """A statement from which the test harness cannot create a table."""


class BadChange(BadInput):
    """A change that the tables of the test harness refuse, as Postgres would."""


class BadValue(BadChange):
    """A value that is not of its column's type, or does not fit it."""


class DuplicateKey(BadChange):
    """A row whose key another row has."""


class NoSuchRow(BadChange):
    """A row to update or delete that does not exist, or is not the only one."""


class NullNotAllowed(BadChange):
    """NULL in a column that is NOT NULL."""


class JavaMissing(BadInput):
    """Java is missing or too old."""


class SourceUnreachable(BadInput):
    """Postgres does not answer, or refuses the connection."""


class NotRunning(CdcViewsError):
    """The stack, the engine or a service does not run."""

    exit_status = 3


class StackError(CdcViewsError):
    """A problem with the local stack."""


class DownloadFailed(StackError):
    """A pinned file could not be downloaded, or has another size or checksum."""

    retryable = True


class PortInUse(StackError):
    """A port that we need belongs to another process."""


class ServiceFailed(StackError):
    """A service did not become healthy; the message ends with the last lines of its log."""


class ServiceKilled(ServiceFailed):
    """A signal ended a service while it was starting."""

    retryable = True


class DriverLost(StackError):
    """The JVM of Spark's driver ended or was stopped while the engine used it."""

    retryable = True


class LogError(CdcViewsError):
    """A problem with Kafka or Kafka Connect."""


class BadEvent(EventError, LogError):
    """An event that is not what Debezium writes."""


class ConnectorFailed(LogError):
    """The connector's task has failed."""


class SnapshotInterrupted(LogError):
    """The initial snapshot was interrupted; its rows in the log cannot be trusted."""


class MarkerTimeout(LogError):
    """A marker did not come through the log in time."""

    retryable = True


class SequenceRegressed(LogError):
    """An order below the maximum of its partition: the log was written twice, or by two connectors."""


class LogDiscontinuity(LogError):
    """The source or the log does not continue what is published: it is another one, or an earlier state."""


class CutTooLarge(LogError):
    """A cut has more events than the driver may hold, and no smaller cut is possible."""


class LogGap(LogError):
    """The engine was behind for so long that needed records may be compacted away."""


class OffsetCompacted(LogError):
    """The first offset of a partition is beyond the wanted one."""


class TopicChanged(LogError):
    """A topic has another id, partition count or setting than when its mirror was created."""


class SlotChanged(LogError):
    """The replication slot is gone, lost, or advanced beyond what Connect has stored."""


class PrintedOtherwise(LogError):
    """The connector's session prints values in another form than the pinned one, so the log is not exact."""


class RowsLost(LogError):
    """The source has rows whose events the connector skipped when it was restarted."""


class SchemaChanged(CdcViewsError):
    """DDL on a captured table. The last epoch is the one before it."""


class TableTruncated(CdcViewsError):
    """TRUNCATE of a captured table. The last epoch is the one before it."""


class UnresolvedToast(EventError):
    """An unchanged TOAST value that neither the log nor the mirror holds, or that must not be taken from the mirror.

    `table` and `column` hold the value; None where they are not known.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        log_offset: LogOffset | None = None,
        table: str | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, log_offset=log_offset)
        self.table = table
        self.column = column


class WrongReplicaIdentity(UnresolvedToast):
    """An event shows that the REPLICA IDENTITY of its table is no longer FULL."""


class StoreError(CdcViewsError):
    """A problem with the Delta tables or the control log."""


class Fenced(StoreError):
    """Another writer has taken over; this one can publish nothing."""


class WarehouseLocked(StoreError):
    """Another engine on this machine holds the warehouse."""

    retryable = True


class RebuildRunning(StoreError):
    """Another process is rebuilding the same tables."""

    retryable = True


class ResetUnfinished(StoreError):
    """A reset has started, and nothing of the new generation is published yet."""


class ForeignCommit(StoreError):
    """Another program has written to a table of the warehouse."""


class WrongFeatures(StoreError):
    """A Delta table has a protocol feature that it must not have."""


class WarehouseUnusable(StoreError):
    """The operating system refuses a file or folder of the warehouse at `path`, with error number `errno`."""

    def __init__(
        self, message: str, *, hint: str | None = None, path: str | None = None, errno: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.errno = errno


class DiskFull(WarehouseUnusable):
    """No space is left where a table is written."""


class MirrorFailed(CdcViewsError):
    """An unexpected error while the changes of one table were decoded or committed."""


class RequestFailed(CdcViewsError):
    """An unexpected error while the engine served a request. The engine starts again."""


class NothingPublished(CdcViewsError):
    """There is no epoch to read yet."""

    exit_status = 3


class UnknownView(BadInput):
    """A table or view that the published epoch does not have."""


class ViewFailed(CdcViewsError):
    """A view whose query failed. The message says since when."""


class KeyNotUnique(ViewFailed):
    """Two rows of a view have the same values in `key`, the columns that should identify a row."""

    def __init__(self, message: str, *, hint: str | None = None, key: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.key = key


class ColumnsDiffer(ViewFailed):
    """The columns of a view's result, or their types, are not those of its table."""


class TableUnavailable(CdcViewsError):
    """A published version that cannot be read."""


class FaultNotReached(CdcViewsError):
    """A test's crash that did not happen: its point was not reached."""


class UnequalRows(CdcViewsError, AssertionError):
    """Rows that are not those of a view's SQL; the message shows them."""


class CheckFailed(CdcViewsError):
    """Tables or views that do not equal Postgres."""


class OracleError(CdcViewsError):
    """The WAL oracle of cdc_views.testing cannot say what Postgres held."""


class UnsupportedTable(OracleError):
    """A table that cannot be replayed: its changes do not name their row, or its types cannot be created again."""


class PositionUnknown(OracleError):
    """A position before the oracle's beginning, before its current one, or not yet in the WAL."""


class ReplayFailed(OracleError):
    """The WAL does not fit the rows to which it is applied, or cannot be read."""
