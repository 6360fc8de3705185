"""Every error that cdc_views raises on purpose, as one tree.

CdcViewsError
├── BadInput                  exit status 2: what the user gave cannot be used
│   ├── BadConfig             the settings: unknown key, wrong type, missing secret
│   ├── BadLsn
│   ├── BadView               a view file: syntax, unknown table or option, cycle (file, line, column)
│   │   ├── UnsupportedView   a query that cannot be kept exactly
│   │   └── ViewCycle
│   ├── BadQuery              SQL given to `query`
│   ├── PreflightFailed       findings of `check` that stand in the way of a start
│   ├── NotConfirmed          a command that asks before it changes something, without an answer
│   ├── UnsupportedType       a column whose values have no exact form in Delta
│   ├── BadReplay             a rebuild from where the log, or the control log, cannot be replayed
│   │   └── NotSelfContained  the table's log alone does not say what the table holds
│   ├── UnknownTable
│   ├── UnknownEvent          a place in the log whose event is not in quarantine
│   ├── BadRequest            a request to the running engine that it cannot read
│   ├── BadTable              a statement that the test harness cannot make a table of
│   ├── BadChange             a change that the tables of the test harness refuse, as Postgres would
│   │   ├── BadValue          a value that is none of its column's type, or does not fit it
│   │   ├── DuplicateKey
│   │   ├── NoSuchRow         none, or more than one
│   │   └── NullNotAllowed
│   ├── JavaMissing
│   └── SourceUnreachable     wrong DSN, wrong password, server not there
├── NotRunning                exit status 3: the stack or the engine is not there
├── StackError                a service of the local stack
│   ├── DownloadFailed        nothing is kept of what did not match its checksum
│   ├── PortInUse
│   ├── ServiceFailed         did not become healthy; carries the end of its log
│   │   └── ServiceKilled     a signal has ended it while it was starting
│   └── DriverLost            the JVM of Spark's driver has ended under the engine
├── LogError                  Kafka or Connect
│   ├── BadEvent              an event that is not what Debezium writes
│   ├── ConnectorFailed       the state of the connector's task
│   ├── SnapshotInterrupted   the initial snapshot was cut off
│   ├── MarkerTimeout         a marker did not come through the log
│   ├── SequenceRegressed     an order below its partition's maximum
│   ├── LogDiscontinuity      the source, or the log, does not go on from what is published
│   ├── CutTooLarge           more events than the driver may hold, and no smaller cut is possible
│   ├── LogGap                records that were needed may be compacted away
│   ├── OffsetCompacted       the first offset of a partition is beyond the wanted one
│   ├── TopicChanged          another topic id, partition count or setting
│   ├── SlotChanged           the slot is gone, lost, or advanced beyond what Connect stored
│   ├── PrintedOtherwise      the connector's session prints values in another form than the pinned one
│   └── RowsLost              the connector has left rows out where it began again
├── SchemaChanged             DDL on a captured table
├── TableTruncated            TRUNCATE of a captured table
├── UnresolvedToast           an unchanged TOAST value that neither log nor mirror holds
│   └── WrongReplicaIdentity  an event that a table of REPLICA IDENTITY FULL does not write
├── StoreError                Delta tables and the control log
│   ├── Fenced                another writer has taken over
│   ├── WarehouseLocked       another engine on this machine
│   ├── RebuildRunning        another process makes the same tables anew
│   ├── ResetUnfinished       a reset was begun, and nothing of the new generation is published yet
│   ├── ForeignCommit         somebody else wrote to a table of ours
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
    ├── PositionUnknown       a position before its beginning, behind where it stands, or not yet in the WAL
    └── ReplayFailed          the WAL does not fit the rows that it is applied to

Wording follows Postgres: lower case, no full stop, the object quoted, what was found and what
was wanted. The hint says what to do. Row values never appear in messages, but for UnequalRows of tests.
"""

from __future__ import annotations

from typing import ClassVar, Final

RESET: Final = 'run "cdc-views reset"'
"""The remedy, in hints, where the log can no longer bring the mirrors to what the source has."""


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
    """What the user gave cannot be used."""

    exit_status = 2


class BadConfig(BadInput):
    """A setting is unknown, has the wrong type, or refers to a secret that is not there."""


class BadLsn(BadInput):
    """A text that is not an LSN."""


class BadView(BadInput):
    """A view file that cannot be used; the message begins with `file:line:column`."""


class UnsupportedView(BadView):
    """A query whose result is not a function of its tables, or has no exact form in Delta."""


class ViewCycle(BadView):
    """Views that read each other in a circle."""


class BadQuery(BadInput):
    """SQL that DuckDB refuses."""


class PreflightFailed(BadInput):
    """Findings of `check` that stand in the way of a start."""


class NotConfirmed(BadInput):
    """A command that asks before it changes something has no terminal to ask at, and `--yes` was not given."""


class UnsupportedType(BadInput):
    """A column whose values have no exact form in Delta."""


class BadReplay(BadInput):
    """A rebuild from a place that cannot be replayed from: it would leave a gap, or is not there."""


class NotSelfContained(BadReplay):
    """The log of a table alone does not say what the table holds."""


class UnknownTable(BadInput):
    """A source table that does not exist."""


class UnknownEvent(BadInput):
    """A place in the log whose event is not in quarantine."""


class BadRequest(BadInput):
    """A request to the running engine that it cannot read, as that of another version."""


class BadTable(BadInput):
    """A statement that the test harness cannot make a table of."""


class BadChange(BadInput):
    """A change that the tables of the test harness refuse, as Postgres would."""


class BadValue(BadChange):
    """A value that is none of its column's type, or does not fit it."""


class DuplicateKey(BadChange):
    """A row with the key of another one."""


class NoSuchRow(BadChange):
    """A row to update or delete that is not there, or is more than one."""


class NullNotAllowed(BadChange):
    """NULL in a column that is NOT NULL."""


class JavaMissing(BadInput):
    """No Java, or one too old."""


class SourceUnreachable(BadInput):
    """Postgres does not answer, or not to this role."""


class NotRunning(CdcViewsError):
    """The stack or the engine is not there."""

    exit_status = 3


class StackError(CdcViewsError):
    """A service of the local stack."""


class DownloadFailed(StackError):
    """A pinned file could not be fetched, or is not the one that was pinned."""

    retryable = True


class PortInUse(StackError):
    """A wanted port belongs to another process."""


class ServiceFailed(StackError):
    """A service did not become healthy; the message ends with the end of its log."""


class ServiceKilled(ServiceFailed):
    """A service was ended by a signal while it was starting."""

    retryable = True


class DriverLost(StackError):
    """The JVM of Spark's driver has ended, or was stopped, while the engine was using it."""

    retryable = True


class LogError(CdcViewsError):
    """Kafka or Connect."""


class BadEvent(LogError):
    """An event that is not what Debezium writes; names topic, partition and offset."""


class ConnectorFailed(LogError):
    """The connector's task has failed."""


class SnapshotInterrupted(LogError):
    """The initial snapshot was cut off; its rows in the log cannot be trusted."""


class MarkerTimeout(LogError):
    """A marker did not come through the log in time."""

    retryable = True


class SequenceRegressed(LogError):
    """An order below its partition's maximum: the log was written twice or by two connectors."""


class LogDiscontinuity(LogError):
    """The source, or the log, does not go on from what is published: an earlier state of it, or another one."""


class CutTooLarge(LogError):
    """A cut has more events than the driver may hold, and none that is smaller is possible."""


class LogGap(LogError):
    """We were behind for so long that needed records may be compacted away."""


class OffsetCompacted(LogError):
    """The first offset of a partition is beyond the wanted one."""


class TopicChanged(LogError):
    """A topic has another id, partition count or setting than when its mirror was made."""


class SlotChanged(LogError):
    """The replication slot is gone, lost, or advanced beyond what Connect has stored."""


class PrintedOtherwise(LogError):
    """The connector's session prints values in another form than the pinned one, so that the log is not exact."""


class RowsLost(LogError):
    """The source has rows whose events the connector has left out where it began again."""


class SchemaChanged(CdcViewsError):
    """DDL on a captured table; the epoch before it is the last one."""


class TableTruncated(CdcViewsError):
    """TRUNCATE of a captured table; the epoch before it is the last one."""


class UnresolvedToast(CdcViewsError):
    """An unchanged TOAST value that neither the log nor the mirror holds, or must not be taken from there.

    `table` and `column` are its place; None of an error that a task of Spark has raised.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, table: str | None = None, column: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.table = table
        self.column = column


class WrongReplicaIdentity(UnresolvedToast):
    """An event that a table of REPLICA IDENTITY FULL, as this one was at the start, does not write."""


class StoreError(CdcViewsError):
    """Delta tables and the control log."""


class Fenced(StoreError):
    """Another writer has taken over; this one can publish nothing."""


class WarehouseLocked(StoreError):
    """Another engine on this machine holds the warehouse."""

    retryable = True


class RebuildRunning(StoreError):
    """Another process makes the same tables anew."""

    retryable = True


class ResetUnfinished(StoreError):
    """A reset was begun, and nothing of the new generation is published yet."""


class ForeignCommit(StoreError):
    """Somebody else wrote to a table of ours."""


class WrongFeatures(StoreError):
    """A table has a protocol feature that it must not have."""


class WarehouseUnusable(StoreError):
    """The operating system refuses a file or folder of the warehouse at `path`, with the number `errno`."""

    def __init__(
        self, message: str, *, hint: str | None = None, path: str | None = None, errno: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.errno = errno


class DiskFull(WarehouseUnusable):
    """No space left where a table is written."""


class MirrorFailed(CdcViewsError):
    """An unexpected error while the changes of one table were decoded or committed; names the table."""


class RequestFailed(CdcViewsError):
    """An unexpected error while the engine served a request: the engine must start again, and can."""


class NothingPublished(CdcViewsError):
    """There is no epoch to read yet."""

    exit_status = 3


class UnknownView(BadInput):
    """A name that the published epoch does not have."""


class ViewFailed(CdcViewsError):
    """A view whose query failed; the error says since when."""


class KeyNotUnique(ViewFailed):
    """Two rows of a view have the same values in `key`, the columns that were proven to identify a row."""

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
    """A table that cannot be replayed: its changes do not name their row, or its types cannot be made again."""


class PositionUnknown(OracleError):
    """A position before the oracle's beginning, behind where it stands, or not yet in the WAL."""


class ReplayFailed(OracleError):
    """The WAL does not fit the rows that it is applied to, or cannot be read."""
