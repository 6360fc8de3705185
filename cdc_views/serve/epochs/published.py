"""The published epoch: the versions of all tables that belong together."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.base.stopped import STOPPED
from cdc_views.errors import RESET, CdcViewsError, NothingPublished, NotRunning, UnknownView, ViewBeingBuilt, ViewFailed
from cdc_views.host.waiting import wait_until
from cdc_views.store.control import (
    BUILDING,
    VIEW_FOLDER,
    ControlRecord,
    KnownRecords,
    PublishedDetail,
    TableVersion,
    TakeoverDetail,
    last_published,
    read_control,
)

_POLL_S: Final = 0.2


@dataclass(frozen=True)
class PublishedEpoch:
    """One published record of the control log, and the warehouse that its paths are relative to."""

    warehouse: Path
    record: ControlRecord

    @classmethod
    def latest(cls, warehouse: Path, wait_s: float = 0, known: KnownRecords | None = None) -> Self:
        """Return the last published epoch, after waiting up to `wait_s` for the first one. Raises NothingPublished."""

        def last() -> ControlRecord:
            return last_published(warehouse) if known is None else known.last()

        def found() -> ControlRecord | None:
            with suppress(NothingPublished):
                return last()
            return None

        record = wait_until(found, wait_s, _POLL_S)
        return cls(warehouse, last() if record is None else record)

    @property
    def number(self) -> int:
        """The number of the epoch. Later epochs have higher numbers, and none is used twice."""
        return self.record.epoch

    @property
    def detail(self) -> PublishedDetail:
        """What the record says besides its columns."""
        return PublishedDetail.read(self.record)

    @property
    def position(self) -> Lsn:
        """The epoch holds everything that was committed up to here, and nothing after."""
        assert self.record.position is not None
        return self.record.position

    @property
    def complete_to(self) -> Lsn:
        """A transaction that was committed up to here is in the epoch. At or after the position."""
        return self.record.complete_to or self.position

    @property
    def committed_at(self) -> datetime:
        """When the source was as the epoch shows it, by the source's clock."""
        assert self.record.committed_at is not None
        return self.record.committed_at

    @property
    def age_s(self) -> float:
        """How long ago the source was as readers see it now, in seconds of commit time."""
        return (datetime.now(UTC) - self.committed_at).total_seconds()

    def require_published_within(self, seconds: float) -> None:
        """Raise NotRunning if the epoch is older than that: a running engine publishes every few seconds."""
        assert self.record.published_at is not None
        ago_s = (datetime.now(UTC) - self.record.published_at).total_seconds()
        if ago_s > seconds:
            raise NotRunning(
                f"epoch {self.record.epoch} was published {ago_s:.1f} s ago, wanted within {seconds:g} s",
                hint="see the engine's log; a first epoch, or a large one, takes longer",
            )

    @property
    def unequal(self) -> dict[str, str]:
        """The mirrors that do not equal their Postgres table, and why: they have `parked` or `discarded` events."""
        return {name: table.status for name, table in self.tables.items() if table.status in ("parked", "discarded")}

    @property
    def tables(self) -> dict[str, TableVersion]:
        """The mirrors and views, without internal tables of the engine."""
        return self.record.mirrors_and_views

    @property
    def readable(self) -> dict[str, TableVersion]:
        """The tables without those that are stopped, failed or being built, whose rows are of an earlier epoch."""
        return {name: table for name, table in self.tables.items() if not table.is_standing}

    def table(self, name: str) -> TableVersion:
        """Path and Delta version of a mirror (`schema.table`) or a view.

        Raises UnknownView, ViewFailed, ViewBeingBuilt, and what stopped a table: SchemaChanged, TableTruncated.
        """
        table = self.tables.get(name)
        if table is None:
            raise self._missing(name)
        if table.status == BUILDING:
            rows = f"version {table.version} of {table.path} has the last rows of its old definition"
            raise self._being_built(name, f'{rows}; "--at" an earlier epoch reads it with the other views')
        if table.status == STOPPED:
            raise self._stopped(name, table)
        if table.status == "failed":
            failure = self.detail.failures.get(name, "")
            raise ViewFailed(
                f'view "{name}" has failed: {failure}',
                hint=f"its last good rows are version {table.version} of {table.path}; the next epoch tries again",
            )
        return table

    def _being_built(self, name: str, hint: str) -> ViewBeingBuilt:
        return ViewBeingBuilt(f'view "{name}" is being built: {self.detail.building[name]}', hint=hint)

    def _missing(self, name: str) -> CdcViewsError:
        if name in self.detail.building:
            return self._being_built(name, "it joins the other views at one of the next epochs")
        if name in self._declared(name):
            return ViewBeingBuilt(
                f'view "{name}" is declared, and epoch {self.record.epoch} does not have it yet',
                hint="the engine is computing it; read a later epoch",
            )
        hint = "it has " + ", ".join(sorted(self.tables))
        return UnknownView(f'epoch {self.record.epoch} has no table "{name}"', hint=hint)

    def _declared(self, name: str) -> Collection[str]:
        """The views that the last engine has declared, if `name` may be one of them.

        An engine creates the tables of its views before it takes over. So for a name without a folder, the control log
        need not be read.
        """
        folders: set[str] = set()
        with suppress(FileNotFoundError):
            folders = {folder.name for folder in (self.warehouse / VIEW_FOLDER).iterdir()}
        if name not in folders:
            return ()
        takeovers = (record for record in reversed(read_control(self.warehouse)) if record.kind == "takeover")
        declared = (TakeoverDetail.read(record).views for record in takeovers)
        return next((views for views in declared if views), ())

    def _stopped(self, name: str, table: TableVersion) -> CdcViewsError:
        stopped = self.detail.stopped_tables[TableName.parse(name)]
        error = stopped.exception()
        rows = f"its last good rows, of position {stopped.position}, are version {table.version} of {table.path}"
        return error.restated(message=f'table "{name}" is stopped: {error.message}', hint=f"{rows}; {RESET}")
