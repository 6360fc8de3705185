"""Every error that cdc_views raises on purpose, as one tree.

CdcViewsError
├── BadInput                  exit status 2: something that the user gave cannot be used
│   ├── BadConfig             the settings: unknown key, wrong type, missing secret
│   ├── BadLsn
│   ├── BadView               a view file: syntax, unknown table or option, cycle (file, line, column); or no folder
│   │   ├── StrictViewIsFull  a strict view that could only be run as a whole
│   │   ├── UnsupportedView   a query that cannot be kept exactly
│   │   └── ViewCycle
│   ├── BadQuery              the SQL or the columns of a query
│   ├── QueryTooLong          a query that takes longer than the server allows
│   ├── ResultTooLarge        a query that needs more memory or has a larger result than the server allows
│   ├── BadMoment             the moment at which to read
│   ├── BadKey                the key of a row to read
│   ├── BadToken              the place from which to read changes
│   ├── BadWarehouse          where a reader is to find the warehouse
│   ├── BadPage               the place or the size of a page to read
│   ├── WrongKind             a view of another kind than the read is for
│   ├── BadParameter          a parameter, header or body of an HTTP request
│   ├── NotAcceptable         an HTTP request that accepts none of the formats
│   ├── Unauthorized          an HTTP request without a token, or with a wrong one
│   ├── ForeignHost           an HTTP request for another host name, to a server without tokens
│   ├── RowNotFound           a row that was read over HTTP, and that the epoch does not have
│   ├── BadSearch             a search: its query, its filter or its sort
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
├── NotPublishedYet           the wanted moment is later than the last epoch: `behind_bytes`
├── EpochTooOld               the last epoch is older than the reader accepts: `age_s`
├── EpochNotRetained          the wanted epoch can no longer be read: `oldest`
├── KeyNotRecorded            a table of an earlier version of cdc_views, whose key readers cannot know
├── UnknownView               a name that the published epoch does not have
├── ViewBeingBuilt            a new or edited view that no epoch has yet; the other views go on
├── ServerBusy                the HTTP server has as many requests, or as much unsent data, as it may have
├── ViewFailed                a view whose query failed; its last good epoch stays in the control log
│   ├── KeyNotUnique          two rows of a view have the key that was derived for it
│   └── ColumnsDiffer         the columns of a view's result are not those that were declared
├── AnalyzerDiffers           a search index that was made by another analyzer than the reader's
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

base.py        the root of the tree, and the classes that other areas build on
given.py       what the user gave: settings, views, SQL, replays, requests; and what must be there before a start
stack.py       the services of the local stack, and the JVM of Spark's driver
log.py         Kafka, Connect and their events, and what DDL did to the captured tables
store.py       the Delta tables and the control log
http.py        reading over HTTP
engine.py      the engine, and reading what it has published
testing.py     the test harness, the comparison with Postgres, and the WAL oracle
log_offset.py  where a record is in the log
unexpected.py  describes an unexpected error without row values
"""

from __future__ import annotations

from cdc_views.errors.base import RESET, BadInput, CdcViewsError, EventError, NotRunning
from cdc_views.errors.engine import (
    AnalyzerDiffers,
    ColumnsDiffer,
    EpochNotRetained,
    EpochTooOld,
    KeyNotRecorded,
    KeyNotUnique,
    MirrorFailed,
    NothingPublished,
    NotPublishedYet,
    RequestFailed,
    TableUnavailable,
    ViewBeingBuilt,
    ViewFailed,
)
from cdc_views.errors.given import (
    BadConfig,
    BadKey,
    BadLsn,
    BadMoment,
    BadPage,
    BadQuery,
    BadReplay,
    BadRequest,
    BadSearch,
    BadToken,
    BadView,
    BadWarehouse,
    JavaMissing,
    NotConfirmed,
    NotSelfContained,
    PreflightFailed,
    QueryTooLong,
    ResultTooLarge,
    SourceUnreachable,
    StrictViewIsFull,
    UnknownEvent,
    UnknownTable,
    UnknownView,
    UnsupportedType,
    UnsupportedView,
    ViewCycle,
    WrongKind,
)
from cdc_views.errors.http import BadParameter, ForeignHost, NotAcceptable, RowNotFound, ServerBusy, Unauthorized
from cdc_views.errors.log import (
    BadEvent,
    ConnectorFailed,
    CutTooLarge,
    LogDiscontinuity,
    LogError,
    LogGap,
    MarkerTimeout,
    OffsetCompacted,
    PrintedOtherwise,
    RowsLost,
    SchemaChanged,
    SequenceRegressed,
    SlotChanged,
    SnapshotInterrupted,
    TableTruncated,
    TopicChanged,
    UnresolvedToast,
    WrongReplicaIdentity,
)
from cdc_views.errors.stack import DownloadFailed, DriverLost, PortInUse, ServiceFailed, ServiceKilled, StackError
from cdc_views.errors.store import (
    DiskFull,
    Fenced,
    ForeignCommit,
    RebuildRunning,
    ResetUnfinished,
    StoreError,
    WarehouseLocked,
    WarehouseUnusable,
    WrongFeatures,
)
from cdc_views.errors.testing import (
    BadChange,
    BadTable,
    BadValue,
    CheckFailed,
    DuplicateKey,
    FaultNotReached,
    NoSuchRow,
    NullNotAllowed,
    OracleError,
    PositionUnknown,
    ReplayFailed,
    UnequalRows,
    UnsupportedTable,
)

__all__ = [
    "RESET",
    "AnalyzerDiffers",
    "BadChange",
    "BadConfig",
    "BadEvent",
    "BadInput",
    "BadKey",
    "BadLsn",
    "BadMoment",
    "BadPage",
    "BadParameter",
    "BadQuery",
    "BadReplay",
    "BadRequest",
    "BadSearch",
    "BadTable",
    "BadToken",
    "BadValue",
    "BadView",
    "BadWarehouse",
    "CdcViewsError",
    "CheckFailed",
    "ColumnsDiffer",
    "ConnectorFailed",
    "CutTooLarge",
    "DiskFull",
    "DownloadFailed",
    "DriverLost",
    "DuplicateKey",
    "EpochNotRetained",
    "EpochTooOld",
    "EventError",
    "FaultNotReached",
    "Fenced",
    "ForeignCommit",
    "ForeignHost",
    "JavaMissing",
    "KeyNotRecorded",
    "KeyNotUnique",
    "LogDiscontinuity",
    "LogError",
    "LogGap",
    "MarkerTimeout",
    "MirrorFailed",
    "NoSuchRow",
    "NotAcceptable",
    "NotConfirmed",
    "NotPublishedYet",
    "NotRunning",
    "NotSelfContained",
    "NothingPublished",
    "NullNotAllowed",
    "OffsetCompacted",
    "OracleError",
    "PortInUse",
    "PositionUnknown",
    "PreflightFailed",
    "PrintedOtherwise",
    "QueryTooLong",
    "RebuildRunning",
    "ReplayFailed",
    "RequestFailed",
    "ResetUnfinished",
    "ResultTooLarge",
    "RowNotFound",
    "RowsLost",
    "SchemaChanged",
    "SequenceRegressed",
    "ServerBusy",
    "ServiceFailed",
    "ServiceKilled",
    "SlotChanged",
    "SnapshotInterrupted",
    "SourceUnreachable",
    "StackError",
    "StoreError",
    "StrictViewIsFull",
    "TableTruncated",
    "TableUnavailable",
    "TopicChanged",
    "Unauthorized",
    "UnequalRows",
    "UnknownEvent",
    "UnknownTable",
    "UnknownView",
    "UnresolvedToast",
    "UnsupportedTable",
    "UnsupportedType",
    "UnsupportedView",
    "ViewBeingBuilt",
    "ViewCycle",
    "ViewFailed",
    "WarehouseLocked",
    "WarehouseUnusable",
    "WrongFeatures",
    "WrongKind",
    "WrongReplicaIdentity",
]
