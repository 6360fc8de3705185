"""Kafka, Connect and their events, and what DDL did to the captured tables."""

from __future__ import annotations

from cdc_views.errors.base import CdcViewsError, EventError
from cdc_views.errors.log_offset import LogOffset


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
