"""Upkeep in slots between two epochs, within a share of the engine's time.

Steps are small but cannot be interrupted: one may exceed the time of its slot, which is deducted from the next slots.
docs/upkeep.md says what upkeep does and what it keeps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Final

from cdc_views.config import UpkeepSettings
from cdc_views.engine.tables import SHADOW_SEPARATOR, Tables
from cdc_views.engine.upkeep.rebuilds import forget_left, unfinished_rebuilds
from cdc_views.metrics import UpkeepStep
from cdc_views.store.control import INTERNAL_VIEW_FOLDER, MIRROR_FOLDER, VIEW_FOLDER, ControlLog, Needed, needed
from cdc_views.store.delta_log import LOG_FOLDER, Stamp
from cdc_views.store.storage import touching
from cdc_views.store.upkeep import ControlUpkeep, TableUpkeep, remove_tables

# At most this much unused time is saved up for later slots: the next epoch waits while a slot takes what was saved.
_MOST_SAVED_S: Final = 0.05
# At most this much is earned by an epoch, or owed after a slot that took too long.
_MOST_EARNED_S: Final = 1.0
# A step that is overdue by this factor is done in every slot, however long it takes, so that no table grows without
# limit when epochs follow each other too fast.
_BEHIND: Final = 4
_LEFTOVERS_EVERY_S: Final = 600
_HOUR_S: Final = 3600
_FROM_EPOCH: Final = "epoch:"


class Upkeep:
    """The upkeep of all tables of an engine, and of its control log."""

    def __init__(self, root: Path, tables: Tables, control: ControlLog, settings: UpkeepSettings) -> None:
        self._root = root
        self._tables = tables
        self._control = control
        self._settings = settings
        self._of_tables: dict[str, TableUpkeep] = {}
        self._of_control = ControlUpkeep(root, control, settings)
        self._next = 0
        self._saved_s = _MOST_SAVED_S
        self._last_slot = time.monotonic()
        self._looked_for_leftovers = -math.inf

    def slot(self) -> None:
        """Do due steps while the share of time allows it, else one step that is far overdue.

        Raises Fenced, DiskFull.
        """
        with self._control.writing(), touching(self._root), self._tables.upkeep_done.slot():
            self._slot()

    def run(self) -> None:
        """Do all due steps, however long they take. Raises Fenced, DiskFull."""
        with self._control.writing(), touching(self._root), self._tables.upkeep_done.slot():
            for step in self._steps():
                self._tables.upkeep_done.did(step)

    def _slot(self) -> None:
        now = time.monotonic()
        earned = min(self._settings.share * (now - self._last_slot), _MOST_EARNED_S)
        self._saved_s = min(self._saved_s, _MOST_SAVED_S) + earned
        self._last_slot = now
        if not self._settings.share:
            return
        for step in self._steps(1 if self._saved_s > 0 else _BEHIND):
            self._tables.upkeep_done.did(step)
            self._saved_s = max(self._saved_s - (time.monotonic() - now), -_MOST_EARNED_S)
            now = time.monotonic()
            if self._saved_s <= 0:
                break

    def _steps(self, times: int = 1) -> Iterator[UpkeepStep]:
        """Do the steps that are due `times` over, and yield the kind of each one after it is done.

        If the caller stops, the next call begins with the table that was not reached.
        """
        if self._tables.published is None or self._tables.shadows:
            return
        names = sorted(self._tables.specs)
        for name in names[self._next % len(names) :] + names[: self._next % len(names)]:
            yield from self._steps_of(name, times)
            self._next += 1
        yield from self._steps_of_control(times)
        if times == 1 and time.monotonic() - self._looked_for_leftovers >= _LEFTOVERS_EVERY_S:
            self._remove_leftovers()
            self._looked_for_leftovers = time.monotonic()
            yield "leftovers"

    def _steps_of(self, name: str, times: int) -> Iterator[UpkeepStep]:
        table = self._upkeep_of(name)
        if not table.catch_up(self._tables.version(name)):
            return  # the version of another writer: the next commit raises the error
        while files := table.files_due(times):
            self._tables.stand_at({name: table.compact(files, self._stamp())})
            yield "compaction"
        if table.is_checkpoint_due(times):
            table.checkpoint()
            yield "checkpoint"
        if table.is_sweep_due(times):
            oldest = self._needed().oldest.get(table.spec.path, 0)
            table.sweep(oldest, self._as_writer_at())
            yield "sweep"

    def _steps_of_control(self, times: int) -> Iterator[UpkeepStep]:
        if self._of_control.is_compaction_due(times):
            self._of_control.compact(self._needed())
            yield "compaction"
        if self._of_control.is_checkpoint_due(times):
            self._of_control.checkpoint()
            yield "checkpoint"
        if self._of_control.is_sweep_due(times):
            self._of_control.sweep(self._as_writer_at())
            yield "sweep"

    def _upkeep_of(self, name: str) -> TableUpkeep:
        spec = self._tables.specs[name]
        if name not in self._of_tables or self._of_tables[name].spec != spec:
            self._of_tables[name] = TableUpkeep(
                self._root, spec, self._settings, self._tables.warehouse.tables.table(spec.path)
            )
        return self._of_tables[name]

    def _stamp(self) -> Stamp:
        """The stamp of upkeep: the last epoch, and an attempt that the control log has."""
        assert self._tables.published is not None
        return Stamp(self._tables.published.epoch, self._control.last_attempt, str(self._tables.position))

    def _needed(self) -> Needed:
        rebuilds = unfinished_rebuilds(self._root)
        begun = [*rebuilds.values(), *filter(None, [self._tables.built_since])]
        origins = [rebuild.origin.rpartition(_FROM_EPOCH) for rebuild in rebuilds]
        return needed(
            self._control.records,
            self._control.clock.now(),
            self._settings,
            rebuilding_since=min(begun, default=None),
            rebuilt_from=[int(epoch) for _, found, epoch in origins if found],
        )

    def _as_writer_at(self) -> float:
        """A time at which this is the writer. Raises Fenced.

        Files of a later engine are younger, however long this process is paused before it removes a file.
        """
        now = time.time()
        self._control.require_writer()
        return now

    def _remove_leftovers(self) -> None:
        """Remove tables that nobody reads: replaced long ago, of removed views, of abandoned rebuilds."""
        now = self._as_writer_at()
        forget_left(self._root, self._control.clock.now() - timedelta(hours=self._settings.keep_tables_hours))
        rebuilds = tuple(f"{SHADOW_SEPARATOR}{rebuild.id}" for rebuild in unfinished_rebuilds(self._root))
        used = {spec.path for spec in self._tables.specs.values()} | self._needed().oldest.keys() | self._tables.built
        folders = (f"{MIRROR_FOLDER}*/*/*", f"{VIEW_FOLDER}*/*", f"{INTERNAL_VIEW_FOLDER}*/*")
        found = [table for folder in folders for table in self._root.glob(folder)]
        paths = [str(table.relative_to(self._root)) for table in found if self._is_old(table, now)]
        # Earlier versions did not quote a slash in a name, so such a mirror is below a folder that looks like a table.
        above = {str(folder) for path in used for folder in PurePosixPath(path).parents}
        left = [path for path in paths if path not in used | above and not path.endswith(rebuilds)]
        remove_tables(self._root, left, self._control.require_writer)

    def _is_old(self, table: Path, now: float) -> bool:
        """Whether nothing was written to a table for keep_tables_hours, so that nobody is about to publish it."""
        written = max(_written(table), _written(table / LOG_FOLDER))
        return now - written >= self._settings.keep_tables_hours * _HOUR_S


def _written(folder: Path) -> float:
    """When an entry of a folder last changed; minus infinity if there is no folder, or it was just removed."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return -math.inf
    # A copy keeps the modification time of its original, but has its own change time.
    return max(status.st_mtime, status.st_ctime)
