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
