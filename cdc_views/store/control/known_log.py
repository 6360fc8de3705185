"""What a reader that lives long knows of a control log.

The log of a warehouse that was created again at the same place is another one.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from threading import Lock
from typing import Final

from deltalake import DeltaTable

from cdc_views.store.control.control_log import FOLDER, last_published, published_after, read_control
from cdc_views.store.control.records import PUBLISHING, ControlRecord
from cdc_views.store.delta_log.entries import NO_TABLE, entry_identity, has_entry, newest_version
from cdc_views.store.storage.disk import touching

_TAIL_RECORDS: Final = 64
# Then all records are read again, without those that upkeep has dropped meanwhile.
_HISTORY_S: Final = 60.0


class KnownLog:
    """The control log of a warehouse, as it was when a reader last looked. `id` identifies it."""

    def __init__(self, root: Path) -> None:
        """Raises WarehouseUnusable."""
        self._folder = root / FOLDER
        self._newest = _newest_entry(self._folder)
        self.id = self._read_id()

    def is_another(self) -> bool:
        """Whether the warehouse was created again since; then `id` is the new one. Raises WarehouseUnusable."""
        version, identity = self._newest
        with touching(self._folder):
            # First: if the log is replaced meanwhile, the old entry is not found.
            self._newest = _newest_entry(self._folder)
            if identity is not None and entry_identity(self._folder, version) == identity:
                return False
        before, self.id = self.id, self._read_id()  # it takes a tenth of a second
        return self.id != before

    def _read_id(self) -> str:
        with touching(self._folder):
            return str(DeltaTable(str(self._folder)).metadata().id)


class KnownRecords:
    """The published records of a control log; only new ones are read. For a reader that lives long, in several threads.

    Everything raises NothingPublished and WarehouseUnusable.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = root / FOLDER
        self._lock = Lock()
        self._seen: tuple[int, tuple[int, int] | None] = NO_TABLE, None
        self._tail: list[ControlRecord] = []
        self._history: list[ControlRecord] = []
        self._history_until = -math.inf
        self._logs = 0  # how many logs there were at this place
        self._reading = Lock()

    def last(self) -> ControlRecord:
        """The newest published record. Two looks at the disk, unless there are newer ones."""
        with self._lock:
            self._catch_up()
            return self._tail[-1]

    def after(self, epoch: int) -> list[ControlRecord]:
        """The published records of later epochs, oldest first, as far as the log has them."""
        with self._lock:
            self._catch_up()
            if self._tail[0].epoch <= epoch:
                return [record for record in self._tail if record.epoch > epoch]
        return published_after(self.root, epoch)

    def published(self) -> list[ControlRecord]:
        """All published records that the log has, oldest first; a minute later, some may have been dropped from it."""
        while True:
            with self._lock:
                self._catch_up()
                if time.monotonic() <= self._history_until:
                    return self._whole_history()
                log = self._logs
            self._read_history(log)

    def _read_history(self, log: int) -> None:
        """Read all records, unless another thread has; who asks for the last ones does not wait for it."""
        with self._reading:
            if log != self._logs or time.monotonic() <= self._history_until:
                return
            history = [record for record in read_control(self.root) if record.kind in PUBLISHING]
            with self._lock:
                self._catch_up()
                if log == self._logs:  # else they may be those of the log before
                    self._history, self._history_until = history, time.monotonic() + _HISTORY_S

    def _whole_history(self) -> list[ControlRecord]:
        if (behind := self._history[-1].epoch) < self._tail[-1].epoch:
            is_in_tail = self._tail[0].epoch <= behind
            newer = self._tail if is_in_tail else published_after(self.root, behind)
            self._history += [record for record in newer if record.epoch > behind]
        return list(self._history)

    def _catch_up(self) -> None:
        with touching(self._folder):
            self._look()

    def _look(self) -> None:
        version, identity = self._seen
        is_same_log = identity is not None and entry_identity(self._folder, version) == identity
        if is_same_log and not has_entry(self._folder, version + 1):
            return
        seen = _newest_entry(self._folder)
        if is_same_log:
            self._tail = [*self._tail, *published_after(self.root, self._tail[-1].epoch)][-_TAIL_RECORDS:]
        else:
            self._tail, self._history_until = [last_published(self.root)], -math.inf
            self._logs += 1
        self._seen = seen


def _newest_entry(folder: Path) -> tuple[int, tuple[int, int] | None]:
    """The newest version of the log, and what tells its entry from one of another log."""
    version = newest_version(folder)
    return version, entry_identity(folder, version)
