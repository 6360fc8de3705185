"""The engine, and reading what it has published."""

from __future__ import annotations

from cdc_views.errors.base import CdcViewsError


class MirrorFailed(CdcViewsError):
    """An unexpected error while the changes of one table were decoded or committed."""


class RequestFailed(CdcViewsError):
    """An unexpected error while the engine served a request. The engine starts again."""


class NothingPublished(CdcViewsError):
    """There is no epoch to read yet."""

    exit_status = 3


class NotPublishedYet(CdcViewsError):
    """The wanted epoch, time or position is later than the last published epoch.

    `behind_bytes` is how far the published position is behind a wanted one, in bytes of the WAL.
    """

    exit_status = 3
    retryable = True

    def __init__(self, message: str, *, hint: str | None = None, behind_bytes: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.behind_bytes = behind_bytes


class EpochTooOld(CdcViewsError):
    """The last published epoch is older than the reader accepts: `age_s` of commit time, where it is known."""

    exit_status = 3
    retryable = True

    def __init__(self, message: str, *, hint: str | None = None, age_s: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.age_s = age_s


class EpochNotRetained(CdcViewsError):
    """The wanted epoch can no longer be read; `oldest` is the oldest one that can, where it is known."""

    exit_status = 2

    def __init__(self, message: str, *, hint: str | None = None, oldest: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.oldest = oldest


class KeyNotRecorded(CdcViewsError):
    """A table of an earlier version of cdc_views, whose key readers cannot know."""


class ViewFailed(CdcViewsError):
    """A view whose query failed. The message says since when."""


class ViewBeingBuilt(CdcViewsError):
    """A new or edited view that no epoch has yet: nothing is known about its rows."""

    exit_status = 3
    retryable = True


class KeyNotUnique(ViewFailed):
    """Two rows of a view have the same values in `key`, the columns that should identify a row."""

    def __init__(self, message: str, *, hint: str | None = None, key: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.key = key


class ColumnsDiffer(ViewFailed):
    """The columns of a view's result, or their types, are not those of its table."""


class AnalyzerDiffers(CdcViewsError):
    """A search index whose terms were made by another analyzer, or by other versions of its libraries, than here."""


class TableUnavailable(CdcViewsError):
    """A published version that cannot be read."""
