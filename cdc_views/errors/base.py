"""The root of the tree, and the classes that other areas build on."""

from __future__ import annotations

from copy import copy
from typing import ClassVar, Final, Self

from cdc_views.errors.log_offset import LogOffset

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

    def restated(self, *, message: str | None = None, hint: str | None = None) -> Self:
        """Return the same error, with its fields, under another message or hint; None keeps that of the error."""
        found = copy(self)
        found.message = self.message if message is None else message
        found.hint = self.hint if hint is None else hint
        return found


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


class NotRunning(CdcViewsError):
    """The stack, the engine or a service does not run."""

    exit_status = 3
