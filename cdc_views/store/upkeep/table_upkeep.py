"""Upkeep of one table: compaction of its small files, checkpoints, clean-up of its log, vacuum.

Only the writer does it, between two of its own versions. A crash anywhere leaves the last version intact, and files
that no version names, which the next vacuum removes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cdc_views.config import UpkeepSettings
from cdc_views.errors import Fenced
from cdc_views.store.delta_log.entries import NO_TABLE, Add, VersionTaken, has_entry, read_entry
from cdc_views.store.delta_log.operations.checkpoint import clean_log, newest_checkpoint, write_checkpoint
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.delta_log.versions import Stamp
from cdc_views.store.index.driver_table import DriverTable, Indexes
from cdc_views.store.upkeep.compaction import compact, files_due
from cdc_views.store.upkeep.vacuum import files_of, sweep

# Files become old enough for removal even without new versions.
_SWEEP_EVERY_S: Final = 600
_SWEEPS_PER_KEPT: Final = 4  # sweeps while all retained versions are replaced once
_HOUR_S: Final = 3600


class TableUpkeep:
    """The upkeep of one table: which files it has, and which files of earlier versions are still read.

    `table` is the writer's own state of the table; without one, this has a state of its own.
    """

    def __init__(self, root: Path, spec: TableSpec, settings: UpkeepSettings, table: DriverTable | None = None) -> None:
        self.spec = spec
        self._folder = root / spec.path
        self._settings = settings
        self._table = table or DriverTable(self._folder, Indexes(0))
        self._known = NO_TABLE
        self._dropped: dict[int, set[Path]] = {}  # files by the version that removed them
        self._unknown = NO_TABLE  # up to this version the log no longer has the removed files
        self._checkpointed: int | None = None
        self._first = NO_TABLE  # the first version that was seen
        self._swept: int | None = None
        self._kept_versions = 0  # versions in `_dropped` after the last sweep
        self._swept_at = 0.0
        self._again_at = math.inf  # when orphaned files that were too young for the first sweep are old enough

    @property
    def version(self) -> int:
        """The version of the table up to which upkeep has caught up."""
        return self._known

    @property
    def files(self) -> list[Add]:
        """The files of that version."""
        with self._table.lock:
            return list(self._table.state.files.values())

    def catch_up(self, version: int) -> bool:
        """Read the log up to this version. False if it cannot be read, or another version is the newest."""
        with self._table.lock:
            # The log is read even if the state has this version: somebody else may have added one.
            if not self._table.catch_up() or self._table.state.version != version:
                return False
        if self._swept is not None:
            self._note_removed(range(self._known + 1, version + 1))
        self._known = version
        if self._first == NO_TABLE:
            self._first = version
        return True

    def files_due(self, times: int = 1) -> list[Add]:
        """The files to merge or rewrite next; none if no compaction is due, `times` over."""
        with self._table.lock:
            return files_due(self._table.state, self._settings, times)

    def compact(self, files: Sequence[Add], stamp: Stamp) -> int:
        """Merge these files and return the new version. Raises Fenced if another writer took that version.

        The indexes in use get the keys of the merged files here, in the time of upkeep, not in that of an epoch.
        """
        with self._table.lock:
            try:
                compact(self._folder, self.spec, self._table.state, files, stamp)
            except VersionTaken as taken:
                raise Fenced(
                    f'table "{self.spec.name}": version {taken} was taken while its files were merged',
                    hint="another engine is writing; this one has stopped",
                ) from taken
            self._known = self._table.state.version
        self._note_removed(range(self._known, self._known + 1))
        with self._table.lock:
            self._table.index_new_files(self.spec.schema)
        return self._known

    def is_checkpoint_due(self, times: int = 1) -> bool:
        """Whether the log since its last checkpoint is too long, `times` over."""
        if self._checkpointed is None:
            self._checkpointed = newest_checkpoint(self._folder) or 0
        return self.version - self._checkpointed >= times * self._settings.checkpoint_versions

    def checkpoint(self) -> None:
        """Write a checkpoint."""
        self._checkpointed = write_checkpoint(self._folder)

    def is_sweep_due(self, times: int = 1) -> bool:
        """Whether a sweep is due: at first, after many versions (`times` over), and after a while."""
        # A sweep checks every retained file, so the more there are, the more versions share one sweep.
        wanted = max(self._settings.sweep_versions, self._kept_versions // _SWEEPS_PER_KEPT)
        if self.version - (self._first if self._swept is None else self._swept) >= times * wanted:
            return True
        now = time.monotonic()
        is_old = self._dropped and now - self._swept_at >= _SWEEP_EVERY_S
        return times == 1 and (self._swept is None or now >= self._again_at or bool(is_old))

    def sweep(self, oldest: int, now: float | None = None) -> int:
        """Remove entries and files that only versions before `oldest` need; returns how many files.

        `now` is a `time.time()` at which this was still the writer: files of later engines are younger.
        """
        now = time.time() if now is None else now
        kept_s = self._settings.keep_hours * _HOUR_S
        if self._swept is None:
            self._note_removed(range(oldest + 1, self.version + 1))
            self._again_at = time.monotonic() + kept_s
        elif time.monotonic() >= self._again_at:
            self._again_at = math.inf
        self._dropped = {version: files for version, files in self._dropped.items() if version > oldest}
        self._swept, self._swept_at = self.version, time.monotonic()
        self._kept_versions = len(self._dropped)
        if oldest < self._unknown:
            return 0
        needed = files_of(self._folder, self.files).union(*self._dropped.values())
        return clean_log(self._folder, oldest) + sweep(self._folder, needed, now - kept_s)

    def _note_removed(self, versions: range) -> None:
        """Note the files that these versions removed. Somebody else may have cleaned up the log."""
        for version in versions:
            if not has_entry(self._folder, version):
                self._unknown = version
                continue
            removed = (action["remove"] for action in read_entry(self._folder, version) if "remove" in action)
            self._dropped[version] = files_of(self._folder, removed)
