"""Upkeep of one table: compaction of its small files, checkpoints, clean-up of its log, vacuum.

Only the writer does it, between two of its own versions. A crash anywhere leaves the last version and files that
nobody names, which the next vacuum removes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cdc_views.config import UpkeepSettings
from cdc_views.errors import Fenced
from cdc_views.store.delta_log.checkpoint import clean_log, newest_checkpoint, write_checkpoint
from cdc_views.store.delta_log.entries import NO_TABLE, VersionTaken, entry_file, read_entry
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.delta_log.state import Add, TableState
from cdc_views.store.delta_log.versions import Stamp
from cdc_views.store.upkeep.compaction import compact, files_due
from cdc_views.store.upkeep.vacuum import files_of, sweep

# Without new versions too, files become old enough to go.
_SWEEP_EVERY_S: Final = 600
_SWEEPS_PER_KEPT: Final = 4  # while all that is kept is replaced
_HOUR_S: Final = 3600


class TableUpkeep:
    """What upkeep knows of one table: its files, and those of earlier versions that are still read."""

    def __init__(self, root: Path, spec: TableSpec, settings: UpkeepSettings) -> None:
        self.spec = spec
        self._table = root / spec.path
        self._settings = settings
        self._state = TableState()
        self._dropped: dict[int, set[Path]] = {}  # files by the version that took them out
        self._unknown = NO_TABLE  # up to this version the log no longer says what was taken out
        self._checkpointed: int | None = None
        self._first = NO_TABLE  # the version that was found at first
        self._swept: int | None = None
        self._kept_versions = 0  # of those dropped, at the last sweep
        self._swept_at = 0.0
        self._again_at = math.inf  # when what nobody names and the first sweep found too young is old enough

    @property
    def version(self) -> int:
        """The version of the table that is known."""
        return self._state.version

    @property
    def files(self) -> list[Add]:
        """The files of that version."""
        return list(self._state.files.values())

    def is_known(self, version: int) -> bool:
        """Learn the table's files up to this version, its newest. False if that cannot be, or it is another one."""
        before = self._state.version
        if before == version:
            return True
        if not self._state.catch_up(self._table) or self._state.version != version:
            return False
        if self._swept is not None:
            self._take_in(range(before + 1, version + 1))
        if self._first == NO_TABLE:
            self._first = version
        return True

    def files_due(self, times: int = 1) -> list[Add]:
        """The files that are to be merged next; none if the table is compact, or has not `times` too many of them."""
        return files_due(self._state, self._settings, times)

    def compact(self, files: Sequence[Add], stamp: Stamp) -> int:
        """Merge these files and return the new version. Raises Fenced if another writer has put one."""
        try:
            compact(self._table, self.spec, self._state, files, stamp)
        except VersionTaken as taken:
            raise Fenced(
                f'table "{self.spec.name}": version {taken} was taken while its files were merged',
                hint="another engine is writing; this one has stopped",
            ) from taken
        self._take_in(range(self.version, self.version + 1))
        return self.version

    def is_checkpoint_due(self, times: int = 1) -> bool:
        """Whether the log has become long since its last checkpoint, `times` as long as it may be."""
        if self._checkpointed is None:
            self._checkpointed = newest_checkpoint(self._table) or 0
        return self.version - self._checkpointed >= times * self._settings.checkpoint_versions

    def checkpoint(self) -> None:
        """Write a checkpoint."""
        self._checkpointed = write_checkpoint(self._table)

    def is_sweep_due(self, times: int = 1) -> bool:
        """Whether to look for what can be removed: at first and again, after (`times`) many versions, after a while."""
        # A sweep looks at every file that is kept: the more these are, the more versions share one.
        wanted = max(self._settings.sweep_versions, self._kept_versions // _SWEEPS_PER_KEPT)
        if self.version - (self._first if self._swept is None else self._swept) >= times * wanted:
            return True
        now = time.monotonic()
        is_old = self._dropped and now - self._swept_at >= _SWEEP_EVERY_S
        return times == 1 and (self._swept is None or now >= self._again_at or bool(is_old))

    def sweep(self, oldest: int, now: float | None = None) -> int:
        """Remove entries and files that only versions before `oldest` need; returns how many files that were.

        `now` is when this was still the writer, as `time.time()` tells: files of later engines are younger.
        """
        now = time.time() if now is None else now
        kept_s = self._settings.keep_hours * _HOUR_S
        if self._swept is None:
            self._take_in(range(oldest + 1, self.version + 1))
            self._again_at = time.monotonic() + kept_s
        elif time.monotonic() >= self._again_at:
            self._again_at = math.inf
        self._dropped = {version: files for version, files in self._dropped.items() if version > oldest}
        self._swept, self._swept_at = self.version, time.monotonic()
        self._kept_versions = len(self._dropped)
        if oldest < self._unknown:
            return 0
        needed = files_of(self._table, self.files).union(*self._dropped.values())
        return clean_log(self._table, oldest) + sweep(self._table, needed, now - kept_s)

    def _take_in(self, versions: range) -> None:
        """Learn what these versions took out. Somebody else may have cleaned the log up."""
        for version in versions:
            if not entry_file(self._table, version).exists():
                self._unknown = version
                continue
            removed = (action["remove"] for action in read_entry(self._table, version) if "remove" in action)
            self._dropped[version] = files_of(self._table, removed)
