"""The published epoch: which version of each table belongs together."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from cdc_views.errors import RESET, CdcViewsError, NothingPublished, NotRunning, UnknownView, ViewFailed
from cdc_views.lsn import Lsn
from cdc_views.names import TableName
from cdc_views.stopped import STOPPED, stopped_in
from cdc_views.store.control.control_log import ControlRecord, TableVersion, last_published

_POLL_S: Final = 0.2


@dataclass(frozen=True)
class PublishedEpoch:
    """One published record of the control log, and the folder that its paths are relative to."""

    warehouse: Path
    record: ControlRecord

    @classmethod
    def latest(cls, warehouse: Path, wait_s: float = 0) -> Self:
        """Return the last published epoch, after waiting up to `wait_s` for the first one. Raises NothingPublished."""
        deadline = time.monotonic() + wait_s
        while True:
            try:
                return cls(warehouse, last_published(warehouse))
            except NothingPublished:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_POLL_S)

    @property
    def position(self) -> Lsn:
        """Everything committed up to here is in the epoch, nothing after."""
        assert self.record.position is not None
        return self.record.position

    @property
    def age_s(self) -> float:
        """How long ago, in seconds, the source was as readers see it."""
        assert self.record.committed_at is not None
        return (datetime.now(UTC) - self.record.committed_at).total_seconds()

    def require_published_within(self, seconds: float) -> None:
        """Raise NotRunning if the epoch was published longer ago: a running engine publishes every few seconds."""
        assert self.record.published_at is not None
        ago_s = (datetime.now(UTC) - self.record.published_at).total_seconds()
        if ago_s > seconds:
            raise NotRunning(
                f"epoch {self.record.epoch} was published {ago_s:.1f} s ago, wanted within {seconds:g} s",
                hint="see what the engine says; a first epoch, or one with much to do, takes longer",
            )

    @property
    def unequal(self) -> dict[str, str]:
        """The mirrors that do not equal their Postgres table, with why: events that are `parked` or `discarded`."""
        return {name: table.status for name, table in self.tables.items() if table.status in ("parked", "discarded")}

    @property
    def tables(self) -> dict[str, TableVersion]:
        """The mirrors and views, without what the engine keeps for itself."""
        is_own = {name: name.startswith("_") and "." not in name for name in self.record.tables}
        return {name: table for name, table in self.record.tables.items() if not is_own[name]}

    def table(self, name: str) -> TableVersion:
        """Path and version of a mirror (`schema.table`) or view.

        Raises UnknownView, ViewFailed, and the error of a table that is stopped: SchemaChanged, TableTruncated.
        """
        table = self.tables.get(name)
        if table is None:
            raise UnknownView(
                f'epoch {self.record.epoch} has no table "{name}"',
                hint="it has " + ", ".join(sorted(self.tables)),
            )
        if table.status == STOPPED:
            raise self._stopped(name, table)
        if table.status == "failed":
            failure = self.record.detail.get("failures", {}).get(name, "")
            raise ViewFailed(
                f'view "{name}" has failed: {failure}',
                hint=f"its last good rows are version {table.version} of {table.path}; the next epoch tries again",
            )
        return table

    def _stopped(self, name: str, table: TableVersion) -> CdcViewsError:
        stopped = stopped_in(self.record.detail)[TableName.parse(name)]
        error = stopped.exception()
        rows = f"its last good rows, of position {stopped.position}, are version {table.version} of {table.path}"
        return type(error)(f'table "{name}" is stopped: {error.message}', hint=f"{rows}; {RESET}")
