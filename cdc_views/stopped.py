"""Tables that are stopped: a change of theirs cannot be applied, so that their mirrors stay as they were before it.

An engine goes on without them. Intents and published epochs list them, until a reset replaces all tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from cdc_views import errors
from cdc_views.errors import CdcViewsError
from cdc_views.lsn import Lsn
from cdc_views.names import TableName

STOPPED: Final = "stopped"
"""In the detail of an intent and of a published record; also the status of such a mirror in its manifest."""


@dataclass(frozen=True)
class StoppedTable:
    """A table whose events are applied no more: its mirror has the state at `position`, `error` is the class of why."""

    error: str
    message: str
    hint: str | None
    position: str

    @classmethod
    def by(cls, error: CdcViewsError, position: Lsn) -> StoppedTable:
        """A table that an error stops."""
        return cls(type(error).__name__, error.message, error.hint, str(position))

    def exception(self) -> CdcViewsError:
        """The error again."""
        found: CdcViewsError = getattr(errors, self.error)(self.message, hint=self.hint)
        return found


def stopped_in(detail: Mapping[str, Any]) -> dict[TableName, StoppedTable]:
    """What the detail of a record says."""
    return {TableName.parse(name): StoppedTable(**fields) for name, fields in detail.get(STOPPED, {}).items()}


def stopped_detail(stopped: Mapping[TableName, StoppedTable]) -> dict[str, Any]:
    """The same as JSON, for the detail of a record."""
    return {str(table): asdict(why) for table, why in stopped.items()}
