"""Upkeep of the control log itself: few files, and no records that are no longer needed.

Every version of the log is a record, so a version that rearranges its files carries a record of kind `upkeep`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import orjson
import pyarrow.compute as pc

from cdc_views import faults
from cdc_views.config import UpkeepSettings
from cdc_views.store.control.control_log import FIRST, FOLDER, KEPT, SPEC, ControlLog, permanent
from cdc_views.store.control.retention import Needed
from cdc_views.store.delta_log.entries import Add
from cdc_views.store.delta_log.versions import removal
from cdc_views.store.files.merged_file import rows_of, write_merged
from cdc_views.store.storage.disk import touching
from cdc_views.store.upkeep.table_upkeep import TableUpkeep

# Each compaction adds a record and a file.
_MERGED_FILES: Final = 32
# A reader of the control log opens one version of it, and is done within this time.
_READ_WITHIN: Final = timedelta(minutes=5)
_READ_VERSIONS: Final = 100


class ControlUpkeep:
    """The upkeep of `_epochs`, done by its writer."""

    def __init__(self, root: Path, control: ControlLog, settings: UpkeepSettings) -> None:
        self._folder = root / FOLDER
        self._control = control
        ours = {
            "merged_files": _MERGED_FILES,
            "keep_hours": min(settings.keep_hours, _READ_WITHIN / timedelta(hours=1)),
        }
        self._log = TableUpkeep(root, SPEC, settings.model_copy(update=ours))

    def is_compaction_due(self, times: int = 1) -> bool:
        """Whether there are too many small files, `times` over."""
        return self._log.catch_up(self._control.version) and bool(self._log.files_due(times))

    def compact(self, needed: Needed) -> None:
        """Merge small files, and drop the records that are no longer needed. Raises Fenced, DiskFull."""
        first = max(needed.first, self._control.first)
        kept = sorted(
            record.seq for record in self._control.records if record.seq < first and record.seq in needed.kept
        )
        staying = {record.seq for record in permanent(self._control.records)}.union(kept)
        repeated = [record for record in self._control.records if record.seq < first and record.seq in staying]
        gone = [add for add in self._log.files if _numbers(add)[1] < first]
        # A file that has a repeated record would show it twice.
        doubling = [add for add in self._log.files if any(_holds(add, record.seq) for record in repeated)]
        due = self._log.files_due()
        merged = [add for add in self._log.files if add not in gone and (add in due or add in doubling)]
        shortened = any(_numbers(add)[0] < first for add in merged)
        written = self._merged(merged, first)
        faults.point("upkeep.after_control_file")
        self._control.append(
            kind="upkeep",
            epoch=self._control.last_epoch,
            attempt=self._control.new_attempt(),
            detail={FIRST: first, KEPT: kept},
            rearranged=[
                *(removal(add, data_change=shortened) for add in merged),
                *({"add": {**add, "dataChange": shortened}} for add in written),
                *(removal(add, data_change=True) for add in gone),
            ],
            repeated=repeated,
        )
        self._control.forget_before(first)
        faults.point("upkeep.after_control_record")

    def is_checkpoint_due(self, times: int = 1) -> bool:
        """Whether the Delta log of the control log is too long, `times` over."""
        return self._log.catch_up(self._control.version) and self._log.is_checkpoint_due(times)

    def checkpoint(self) -> None:
        """Write a checkpoint."""
        self._log.checkpoint()

    def is_sweep_due(self, times: int = 1) -> bool:
        """Whether a sweep is due, `times` over."""
        return self._log.catch_up(self._control.version) and self._log.is_sweep_due(times)

    def sweep(self, now: float | None = None) -> None:
        """Remove the files of versions that nobody reads any more; `now` is as in TableUpkeep.sweep."""
        since = self._control.clock.now() - _READ_WITHIN
        recent = (each.seq for each in self._control.records if each.published_at and each.published_at > since)
        oldest = max(0, min(next(recent, self._control.version), self._control.version - _READ_VERSIONS))
        self._log.sweep(oldest, now)

    def _merged(self, files: Sequence[Add], first: int) -> list[Add]:
        """One file with the records of these files from this number on; none if there are no records."""
        rows = (rows.filter(pc.greater_equal(rows["seq"], first)) for rows in rows_of(self._folder, SPEC, files))
        with touching(self._folder):
            written = write_merged(self._folder, SPEC, rows)
        return [] if written is None else [written]


def _holds(add: Add, seq: int) -> bool:
    lowest, highest = _numbers(add)
    return lowest <= seq <= highest


def _numbers(add: Add) -> tuple[int, int]:
    """The lowest and the highest record number in a file."""
    stats = orjson.loads(add["stats"])
    return int(stats["minValues"]["seq"]), int(stats["maxValues"]["seq"])
