"""What the driver holds of each table: its state, and indexes of its keys.

The indexes of all tables share a memory budget. An index that needs room evicts indexes that were idle for a while;
without room it goes to disk, within a budget of the disk. Indexes in use stay, since tables that evict each other would
be read again at every commit. For the same reason an index that has outgrown both budgets is rebuilt only when it would
have some room to grow.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa

from cdc_views.host.clock import SYSTEM_CLOCK, Clock
from cdc_views.store.delta_log.deletion_vectors import StoredRows
from cdc_views.store.delta_log.recent_states import RecentStates
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.index.hashing import Fingerprints, are_whole
from cdc_views.store.index.key_index import BYTES_PER_NUMBER, BYTES_PER_ROW, SMALL_PARTS_BYTES, KeyIndex
from cdc_views.store.index.known_file import Counts
from cdc_views.store.index.stored_keys import add_files, live_counts, live_rows

_IDLE_S: Final = 600
_SPARE: Final = 1.1

Result = TypeVar("Result")

_Name = tuple[Path, tuple[str, ...]]  # table and columns


@dataclass
class _KnownIndex:
    index: KeyIndex
    reserved_bytes: int
    used_at_s: float

    @property
    def memory_bytes(self) -> int:
        if self.index.is_on_disk:  # what could not be written to the disk
            return max(0, self.index.memory_bytes - SMALL_PARTS_BYTES)
        return max(self.reserved_bytes, self.index.memory_bytes)

    @property
    def disk_bytes(self) -> int:
        return max(self.reserved_bytes, self.index.disk_bytes) if self.index.is_on_disk else 0


class Indexes:
    """The indexes of all tables, within `memory_bytes`; for several threads.

    Those for which there is no room go to `folder`, within `disk_bytes`.
    """

    def __init__(
        self, memory_bytes: int, clock: Clock = SYSTEM_CLOCK, *, folder: Path | None = None, disk_bytes: int = 0
    ) -> None:
        self._memory_bytes = memory_bytes
        self._clock = clock
        self._folder = folder
        self._disk_bytes = disk_bytes
        self._known: dict[_Name, _KnownIndex] = {}
        self._outgrown: dict[_Name, float] = {}  # bytes per row to reserve next time
        self._lock = threading.Lock()

    def index(
        self,
        table: Path,
        columns: tuple[str, ...],
        rows: int,
        bytes_per_row: int = BYTES_PER_ROW,
        needed: Mapping[str, object] | None = None,
    ) -> KeyIndex | None:
        """The index of a table of `rows` rows, new and empty if there is none; None if there is no room for it.

        A new index reserves `bytes_per_row`; once it is built its real size counts. When room is short, it keeps only
        the `needed` files.
        """
        with self._lock:
            name = table, columns
            known = self._known.pop(name, None)
            is_new = known is None
            if known is None:
                known = _KnownIndex(KeyIndex(), math.ceil(rows * self._outgrown.get(name, bytes_per_row)), 0.0)
            else:
                known.reserved_bytes = 0  # by now it is built
            known.used_at_s = self._clock.monotonic()
            if not self._make_room(known, needed):
                if not is_new:
                    took = known.index.memory_bytes + known.index.disk_bytes
                    self._outgrown[name] = _SPARE * min(BYTES_PER_ROW, took / max(rows, 1))
                return None
            self._outgrown.pop(name, None)
            # The dict is ordered by last use.
            self._known[name] = known
            return known.index

    def in_use(self, table: Path) -> dict[tuple[str, ...], KeyIndex]:
        """The indexes of a table that were used recently, by their columns."""
        with self._lock:
            now = self._clock.monotonic()
            return {
                columns: known.index
                for (folder, columns), known in self._known.items()
                if folder == table and now - known.used_at_s < _IDLE_S
            }

    def forget(self, table: Path, columns: tuple[str, ...]) -> None:
        """Drop an index that cannot be trusted."""
        with self._lock:
            self._known.pop((table, columns), None)

    def has_room(self, further_bytes: int) -> bool:
        """Whether the indexes may grow by this much without evicting one."""
        with self._lock:
            return (
                self._used() + further_bytes <= self._memory_bytes
                or self._used_on_disk() + further_bytes <= self._disk_bytes
            )

    @property
    def memory_bytes(self) -> int:
        """The memory that all indexes take."""
        with self._lock:
            return self._used()

    def _used(self) -> int:
        return sum(known.memory_bytes for known in self._known.values())

    def _used_on_disk(self) -> int:
        return sum(known.disk_bytes for known in self._known.values())

    def _make_room(self, wanted: _KnownIndex, needed: Mapping[str, object] | None) -> bool:
        """Whether there is room, in memory or else on disk. `wanted` is not among the known ones."""
        if not self._has_room_for(wanted):
            if needed is not None:
                wanted.index.drop_others(needed)
            wanted.index.trim()
        while not self._has_room_for(wanted):
            name, oldest = next(iter(self._known.items()), (None, None))
            if name is None or oldest is None or wanted.used_at_s - oldest.used_at_s < _IDLE_S:
                return self._moves_to_disk(wanted)
            del self._known[name]
        return True

    def _has_room_for(self, wanted: _KnownIndex) -> bool:
        # Others may have outgrown their room: that is for them to answer for, the next time that they are asked for.
        memory, disk = wanted.memory_bytes, wanted.disk_bytes
        has_memory = not memory or self._used() + memory <= self._memory_bytes
        return has_memory and (not disk or self._used_on_disk() + disk <= self._disk_bytes)

    def _moves_to_disk(self, wanted: _KnownIndex) -> bool:
        # Only the index that is asked for: others may be in use by other threads.
        if self._folder is None or self._used_on_disk() + wanted.memory_bytes > self._disk_bytes:
            return False
        if not wanted.index.is_on_disk:
            wanted.index.move_to_disk(self._folder)
        return self._has_room_for(wanted)


@dataclass
class DriverTable:
    """One table. Hold `lock` while using it."""

    folder: Path
    indexes: Indexes
    state: TableState = field(default_factory=TableState)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _recent: RecentStates = field(default_factory=RecentStates)

    def catch_up(self) -> bool:
        """Bring the state to the newest version. False if the log lacks entries that no checkpoint replaces."""
        if not self.state.catch_up(self.folder):
            return False
        self._recent.keep(self.state)
        return True

    def at(self, version: int) -> TableState | None:
        """The state at the newest version or an older one; None if the log no longer has all of it."""
        if not self.catch_up():
            return None
        return self.state if version == self.state.version else self._recent.at(self.folder, version)

    def find(self, columns: pa.Schema, keys: Fingerprints, state: TableState | None = None) -> StoredRows | None:
        """The rows of these keys in a state, the newest by default; None if the index has no room."""
        state = state or self.state
        return self._query(columns, lambda index: live_rows(self.folder, state, index.find(keys)), state)

    def counts(self, columns: pa.Schema, keys: Fingerprints, state: TableState) -> Counts | None:
        """How many rows of a state each key has; None if the index has no room."""
        wanted = len(keys.high)
        return self._query(columns, lambda index: live_counts(self.folder, state, index.find(keys), wanted), state)

    def build_index(self, columns: pa.Schema) -> None:
        """Read the keys of all files if there is room for them, so that the first lookup need not."""
        self._query(columns, lambda index: None, self.state)

    def know_file(self, path: str, columns: pa.Schema, keys: Fingerprints) -> None:
        """Add the keys of a file that was just written to the index of these columns."""
        index = self._index(columns)
        if index is not None and index.missing([path]):
            index.add(path, keys)

    def index_new_files(self, schema: pa.Schema) -> None:
        """Read the keys of new files into the indexes in use, so that the next lookup need not.

        `schema` has the columns of the table. This is no use of an index: one that nothing looks up makes room later.
        """
        for names, index in self.indexes.in_use(self.folder).items():
            if not {*names} <= {*schema.names}:
                continue
            columns = pa.schema([schema.field(name) for name in names])
            try:
                add_files(index, self.folder, index.missing(self.state.files), columns)
            except BaseException:
                self.forget(columns)
                raise

    def forget(self, columns: pa.Schema) -> None:
        """Drop the index of these columns."""
        self.indexes.forget(self.folder, tuple(columns.names))

    def _query(self, columns: pa.Schema, query: Callable[[KeyIndex], Result], state: TableState) -> Result | None:
        index = self._index(columns)
        if index is None:
            return None
        try:
            index.drop_others(self.state.files, self._recent.files)
            missing = index.missing(state.files)
            if state is not self.state and not self._has_room(state, missing):
                return None
            add_files(index, self.folder, missing, columns)
            return query(index)
        except BaseException:
            # It may have some files of the version only.
            self.forget(columns)
            raise

    def _has_room(self, state: TableState, files: Iterable[str]) -> bool:
        """Whether the indexes have room for files that the newest version does not need."""
        return self.indexes.has_room(BYTES_PER_ROW * sum(map(state.rows_in, files)))

    def _index(self, columns: pa.Schema) -> KeyIndex | None:
        is_number = len(columns) == 1 and are_whole(columns.field(0).type)
        bytes_per_row = BYTES_PER_NUMBER if is_number else BYTES_PER_ROW
        rows, files = self.state.stored_rows or 0, self.state.files
        return self.indexes.index(self.folder, tuple(columns.names), rows, bytes_per_row, files)


class DriverTables:
    """The tables below `root` that the driver knows, one object each; for several threads."""

    def __init__(self, root: Path, indexes: Indexes) -> None:
        self._root = root
        self._indexes = indexes
        self._tables: dict[str, DriverTable] = {}
        self._lock = threading.Lock()

    def table(self, path: str) -> DriverTable:
        """The table at a path below `root`."""
        with self._lock:
            if path not in self._tables:
                self._tables[path] = DriverTable(self._root / path, self._indexes)
            return self._tables[path]

    def renewed(self, path: str) -> DriverTable:
        """The table at a path, of which nothing is known yet.

        It has the lock of the one that was there: others may still be using that one, and both have the same indexes.
        """
        with self._lock:
            self._tables[path] = DriverTable(self._root / path, self._indexes, lock=self._tables[path].lock)
            return self._tables[path]
