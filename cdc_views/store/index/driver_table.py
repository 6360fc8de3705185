"""What the driver knows of one table: its state, and where the rows of its keys are.

Indexes of all tables share a budget of memory. One that has no room takes that of indexes which were not asked for a
while; indexes in use are left, since tables that push each other out would be read anew at every commit. For the same
reason one that has outgrown the budget is made again only where it would have some room to grow.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

from cdc_views.clock import SYSTEM_CLOCK, Clock
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.index.fingerprints import Fingerprints, are_whole, fingerprints
from cdc_views.store.index.key_index import BYTES_PER_NUMBER, BYTES_PER_ROW, Found, KeyIndex
from cdc_views.store.index.order_words import order_words
from cdc_views.store.index.stored_keys import Positions, WordsOf, bring_to, live_rows

_IDLE_S: Final = 600
_SPARE: Final = 1.1

_Name = tuple[Path, tuple[str, ...], WordsOf]  # table, columns, and what is kept of them


@dataclass
class _Known:
    index: KeyIndex
    reserved_bytes: int
    asked_at_s: float

    @property
    def memory_bytes(self) -> int:
        return max(self.reserved_bytes, self.index.memory_bytes)


class Indexes:
    """The indexes of all tables, within `memory_bytes`; for several threads."""

    def __init__(self, memory_bytes: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._memory_bytes = memory_bytes
        self._clock = clock
        self._known: dict[_Name, _Known] = {}
        self._outgrown: dict[_Name, float] = {}  # with what to ask for, for each row
        self._lock = threading.Lock()

    def index(
        self,
        table: Path,
        columns: tuple[str, ...],
        rows: int,
        words_of: WordsOf = fingerprints,
        bytes_per_row: int = BYTES_PER_ROW,
    ) -> KeyIndex | None:
        """The index of a table of so many rows, new and empty if there is none; None if there is no room for it.

        `bytes_per_row` is what it is thought to need; it is measured once it is there.
        """
        with self._lock:
            name = table, columns, words_of
            known = self._known.pop(name, None)
            is_new = known is None
            if known is None:
                known = _Known(KeyIndex(), math.ceil(rows * self._outgrown.get(name, bytes_per_row)), 0.0)
            else:
                known.reserved_bytes = 0  # by now it is built
            known.asked_at_s = self._clock.monotonic()
            if not self._make_room(known):
                if not is_new:
                    self._outgrown[name] = _SPARE * min(BYTES_PER_ROW, known.index.memory_bytes / max(rows, 1))
                return None
            self._outgrown.pop(name, None)
            # The last in the order of use.
            self._known[name] = known
            return known.index

    def forget(self, table: Path, columns: tuple[str, ...], words_of: WordsOf = fingerprints) -> None:
        """Let go of an index that cannot be trusted."""
        with self._lock:
            self._known.pop((table, columns, words_of), None)

    @property
    def memory_bytes(self) -> int:
        """What all indexes take of memory."""
        with self._lock:
            return self._used()

    def _used(self) -> int:
        return sum(known.memory_bytes for known in self._known.values())

    def _make_room(self, wanted: _Known) -> bool:
        if self._used() + wanted.memory_bytes > self._memory_bytes:
            wanted.index.trim()
        while self._used() + wanted.memory_bytes > self._memory_bytes:
            name, oldest = next(iter(self._known.items()), (None, None))
            if name is None or oldest is None or wanted.asked_at_s - oldest.asked_at_s < _IDLE_S:
                return False
            del self._known[name]
        return True


@dataclass
class DriverTable:
    """One table; hold `lock` while using it."""

    folder: Path
    indexes: Indexes
    state: TableState = field(default_factory=TableState)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def catch_up(self) -> bool:
        """Bring the state to the newest version. False if the log does not say enough."""
        return self.state.catch_up(self.folder)

    def find(self, columns: pa.Schema, keys: Fingerprints) -> Positions | None:
        """Where the rows of these keys are in the state's version; None if the index has no room."""
        return self._ask(columns, fingerprints, lambda index: index.find(keys))

    def find_between(self, column: pa.Field, first: int, last: int) -> Positions | None:
        """Where the rows are whose value has one of these order words; None if the index has no room."""
        return self._ask(pa.schema([column]), _ordered(column), lambda index: index.between(first, last))

    def build_index(self, columns: pa.Schema) -> None:
        """Read the keys of all files, if there is room for them, so that the first question need not."""
        self._ask(columns, fingerprints, lambda index: ())

    def know_file(self, path: str, columns: pa.Schema, keys: Fingerprints) -> None:
        """Keep the keys of a file that was just written, for the index that was asked last for these columns."""
        index = self._index(columns, fingerprints)
        if index is not None and index.missing([path]):
            index.add(path, keys)

    def forget(self, columns: pa.Schema) -> None:
        """Let go of the index of the keys of these columns."""
        self.indexes.forget(self.folder, tuple(columns.names))

    def forget_order(self, column: pa.Field) -> None:
        """Let go of the index of this column's order."""
        self.indexes.forget(self.folder, (column.name,), _ordered(column))

    def _ask(
        self, columns: pa.Schema, words_of: WordsOf, question: Callable[[KeyIndex], Iterable[tuple[str, Found]]]
    ) -> Positions | None:
        index = self._index(columns, words_of)
        if index is None:
            return None
        try:
            bring_to(index, self.folder, self.state, columns, words_of)
            return live_rows(self.folder, self.state, question(index))
        except BaseException:
            # Half brought to the version.
            self.indexes.forget(self.folder, tuple(columns.names), words_of)
            raise

    def _index(self, columns: pa.Schema, words_of: WordsOf) -> KeyIndex | None:
        is_number = len(columns) == 1 and are_whole(columns.field(0).type)
        bytes_per_row = BYTES_PER_NUMBER if is_number else BYTES_PER_ROW
        return self.indexes.index(
            self.folder, tuple(columns.names), self.state.stored_rows or 0, words_of, bytes_per_row
        )


def _ordered(column: pa.Field) -> WordsOf:
    """What an index of a column's order keeps; that for equality has the words of whole numbers already."""
    return fingerprints if are_whole(column.type) else order_words
