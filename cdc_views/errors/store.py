"""The Delta tables and the control log."""

from __future__ import annotations

from cdc_views.errors.base import CdcViewsError


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
