"""Upkeep in slots between two epochs, within a share of the engine's time.

Steps are small but cannot be interrupted: one may exceed the time of its slot, which is deducted from the next slots.
No epoch waits for upkeep: a step that fails for one table, for example at a damaged file, is logged and skipped for a
while. docs/upkeep.md says what upkeep does and what it keeps.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Final

from cdc_views.config import UpkeepSettings
from cdc_views.engine.tables import SHADOW_SEPARATOR, Tables
from cdc_views.engine.upkeep.rebuilds import began_by_file, forget_left, is_running, read_rebuild, rebuild_files
from cdc_views.errors import CdcViewsError, DiskFull, Fenced, StackError
from cdc_views.errors.unexpected import described
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
# A step that has failed is skipped for this time.
_AGAIN_S: Final = 600
_HOUR_S: Final = 3600

_LOGGER: Final = logging.getLogger(__name__)


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
        self._ran_at: dict[Path, float] = {}  # when each rebuild was last seen running, or first seen
        self._again_at: dict[str, float] = {}  # by the name of a step that has failed

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
            self._looked_for_leftovers = time.monotonic()
            if self._does("removal of leftovers", self._remove_leftovers):
                yield "leftovers"

    def _steps_of(self, name: str, times: int) -> Iterator[UpkeepStep]:
        table, version = self._upkeep_of(name), self._tables.version(name)
        if not self._does("reading the log", lambda: table.catch_up(version), table):
            return  # it cannot be read, or has the version of another writer: the next commit raises the error
        while self._does("compaction", lambda: self._compact(table, times), table):
            yield "compaction"
        if self._does("checkpoint", lambda: self._checkpoint(table, times), table):
            yield "checkpoint"
        if self._does("sweep", lambda: self._sweep(table, times), table):
            yield "sweep"

    def _does(self, step: str, do: Callable[[], bool], table: TableUpkeep | None = None) -> bool:
        """Do a step that no epoch needs, and return whether it was due.

        A step that fails is logged, and skipped for a while. Raises Fenced, DiskFull, DriverLost, and any error after a
        commit, from which only recovery can continue.
        """
        name = table.spec.name if table is not None else None
        step = step if name is None else f'{step} of table "{name}"'
        if time.monotonic() < self._again_at.get(step, -math.inf):
            return False
        try:
            with touching(self._root):
                return do()
        except (Fenced, DiskFull, StackError):
            raise
        except Exception as error:
            self._control.require_writer()
            if table is not None:
                self._go_on_without(table, error)
            self._again_at[step] = time.monotonic() + _AGAIN_S
            self._tables.upkeep_done.did("failed")
            shown = error.message if isinstance(error, CdcViewsError) else described(error)
            fields = {"table": name, "error": type(error).__name__}
            text = "%s failed, and is skipped for %d minutes: %s"
            _LOGGER.error(text, step, _AGAIN_S // 60, shown, extra={"fields": fields})
            return False

    def _go_on_without(self, table: TableUpkeep, error: Exception) -> None:
        """Raise the error of a step that has committed. An internal table, which may be damaged, is replaced."""
        name = table.spec.name
        if self._tables.specs[name] != table.spec:
            return  # replaced after an earlier step
        if self._tables.is_internal(name):
            self._tables.renew(name)
            _LOGGER.warning('internal view "%s": computing it again in "%s"', name, self._tables.specs[name].path)
        elif self._tables.warehouse.latest_version(table.spec.path) != self._tables.version(name):
            raise error

    def _compact(self, table: TableUpkeep, times: int) -> bool:
        files = table.files_due(times)
        if files:
            self._tables.stand_at({table.spec.name: table.compact(files, self._stamp())})
        return bool(files)

    def _checkpoint(self, table: TableUpkeep, times: int) -> bool:
        is_due = table.is_checkpoint_due(times)
        if is_due:
            table.checkpoint()
        return is_due

    def _sweep(self, table: TableUpkeep, times: int) -> bool:
        is_due = table.is_sweep_due(times)
        if is_due:
            oldest = self._needed().oldest.get(table.spec.path, 0)
            table.sweep(oldest, self._as_writer_at())
        return is_due

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
        began = self._rebuilds_to_keep()
        begun = [*began.values(), *filter(None, [self._tables.built_since])]
        rebuilds = filter(None, map(read_rebuild, began))
        return needed(
            self._control.records,
            self._control.clock.now(),
            self._settings,
            rebuilding_since=min(begun, default=None),
            rebuilt_from=[rebuild.from_epoch for rebuild in rebuilds if rebuild.from_epoch is not None],
        )

    def _rebuilds_to_keep(self) -> dict[Path, datetime]:
        """The files of the rebuilds for which epochs are kept, and when each began.

        One that was killed, or has only compared, can be continued for `keep_hours` as if it was running.
        """
        now, began = self._control.clock.monotonic(), began_by_file(self._root)
        self._ran_at = {file: now if is_running(file) else self._ran_at.get(file, now) for file in began}
        kept_s = self._settings.keep_hours * _HOUR_S
        return {file: at for file, at in began.items() if now - self._ran_at[file] <= kept_s}

    def _as_writer_at(self) -> float:
        """A time at which this is the writer. Raises Fenced.

        Files of a later engine are younger, however long this process is paused before it removes a file.
        """
        now = time.time()
        self._control.require_writer()
        return now

    def _remove_leftovers(self) -> bool:
        """Remove tables that nobody reads: replaced long ago, of removed views, of abandoned rebuilds."""
        now = self._as_writer_at()
        forget_left(self._root, self._control.clock.now() - timedelta(hours=self._settings.keep_tables_hours))
        # By the names of the files: one may be unreadable.
        rebuilds = tuple(f"{SHADOW_SEPARATOR}{file.stem}" for file in rebuild_files(self._root))
        used = {spec.path for spec in self._tables.specs.values()} | self._needed().oldest.keys() | self._tables.built
        folders = (f"{MIRROR_FOLDER}*/*/*", f"{VIEW_FOLDER}*/*", f"{INTERNAL_VIEW_FOLDER}*/*")
        found = [table for folder in folders for table in self._root.glob(folder)]
        paths = [str(table.relative_to(self._root)) for table in found if self._is_old(table, now)]
        # Earlier versions did not quote a slash in a name, so such a mirror is below a folder that looks like a table.
        above = {str(folder) for path in used for folder in PurePosixPath(path).parents}
        left = [path for path in paths if path not in used | above and not path.endswith(rebuilds)]
        remove_tables(self._root, left, self._control.require_writer)
        return True

    def _is_old(self, table: Path, now: float) -> bool:
        """Whether nothing was written to a table for keep_tables_hours, so that nobody is about to publish it."""
        try:
            written = max(_written(table), _written(table / LOG_FOLDER))
        except OSError:
            return False  # not a folder, or one of another user
        return now - written >= self._settings.keep_tables_hours * _HOUR_S


def _written(folder: Path) -> float:
    """When an entry of a folder last changed; minus infinity if there is no folder, or it was just removed."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return -math.inf
    # A copy keeps the modification time of its original, but has its own change time.
    return max(status.st_mtime, status.st_ctime)
