"""Stopped tables: a change of the table cannot be applied, so its mirror stays at the state before that change.

The engine continues without them. Intents and published epochs list them until a reset replaces all tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cdc_views import errors
from cdc_views.base.lsn import Lsn
from cdc_views.errors import CdcViewsError

STOPPED: Final = "stopped"
"""The key in the detail of an intent and of a published record; also the status of the mirror in the manifest."""


@dataclass(frozen=True)
class StoppedTable:
    """A table whose events are no longer applied: its mirror is at `position`. `error` is the class of the error."""

    error: str
    message: str
    hint: str | None
    position: str

    @classmethod
    def by(cls, error: CdcViewsError, position: Lsn) -> StoppedTable:
        """Describe a table that an error stops."""
        return cls(type(error).__name__, error.message, error.hint, str(position))

    def exception(self) -> CdcViewsError:
        """Return the error that stopped the table."""
        found: CdcViewsError = getattr(errors, self.error)(self.message, hint=self.hint)
        return found
