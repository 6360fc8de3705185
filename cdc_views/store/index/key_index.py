"""An index from fingerprints of some columns of a table to (file, row number).

It is a cache, in memory only. A Parquet file never changes, so its index entries hold as long as the file is in the
table. The index is brought to a version by the version's list of files: new files are read, removed files are dropped.
Rows that a deletion vector hides are found too; the caller filters them.

The parts of an index are sorted. A new part is merged with the last one while that is at most twice as long, so n rows
in files of any size are in about log(n) parts (the logarithmic method of Bentley and Saxe).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from cdc_views.store.index.hashing import Fingerprints, Words

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]

# Longer parts are not merged: that would take longer than an epoch.
_MOST_MERGED: Final = 1 << 20
_MOST_ROW: Final = (1 << 32) - 1
# The path of file number 0, which stands for all removed files that still have rows in a part.
_GONE: Final = ""
# Files are renumbered only after this many were removed, since that takes time for each row.
_SPARE_FILES: Final = 1000

BYTES_PER_ROW: Final = 24
"""The most bytes per row: 16 for the key, 4 for the row number, 4 more in parts of several files."""

BYTES_PER_NUMBER: Final = 16
"""The same for a key of one whole number, none NULL, which takes 8 bytes instead of 16."""


class Found(NamedTuple):
    """Rows that were found: for each the number of the wanted key, of the file, and of the row in the file."""

    wanted: np.ndarray[Any, np.dtype[np.intp]]
    files: Numbers
    rows: Numbers


@dataclass(frozen=True)
class _Part:
    """The rows of one or several files, sorted by `high`."""

    high: Words
    low: Words | None
    files: Numbers
    rows: Numbers

    @classmethod
    def of_file(cls, file: int, keys: Fingerprints) -> _Part:
        rows = len(keys.high)
        assert rows <= _MOST_ROW, "a file has more rows than an index can number"
        order = np.argsort(keys.high, kind="stable").astype(np.uint32)
        low = None if keys.low is None else keys.low[order]
        # Broadcast: the same number for every row takes no memory.
        return cls(keys.high[order], low, np.broadcast_to(np.uint32(file), rows), order)

    def merged(self, other: _Part) -> _Part:
        order = np.argsort(np.concatenate([self.high, other.high]), kind="stable")
        low = None
        if self.low is not None or other.low is not None:
            low = np.concatenate([_or_zeros(self), _or_zeros(other)])[order]
        return _Part(
            np.concatenate([self.high, other.high])[order],
            low,
            np.concatenate([self.files, other.files])[order],
            np.concatenate([self.rows, other.rows])[order],
        )

    def renumbered(self, numbers: Numbers) -> _Part:
        """The same rows with new file numbers: `numbers[old]` is the new one."""
        if self.is_of_one_file:
            return replace(self, files=np.broadcast_to(numbers[self.files[0]], self.rows_count))
        return replace(self, files=numbers[self.files])

    def find(self, keys: Fingerprints) -> Found:
        first = np.searchsorted(self.high, keys.high, "left")
        counts = np.searchsorted(self.high, keys.high, "right") - first
        hit = np.flatnonzero(counts)
        counts = counts[hit]
        wanted = np.repeat(hit, counts)
        # 0, 1, ... within the range of each key
        steps = np.arange(len(wanted)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = np.repeat(first[hit], counts) + steps
        if self.low is not None or keys.low is not None:
            stored = np.uint64(0) if self.low is None else self.low[places]
            asked = np.uint64(0) if keys.low is None else keys.low[wanted]
            same = np.broadcast_to(stored == asked, len(places))
            wanted, places = wanted[same], places[same]
        return Found(wanted, self.files[places], self.rows[places])

    @property
    def rows_count(self) -> int:
        return len(self.high)

    @property
    def is_of_one_file(self) -> bool:
        return self.files.strides == (0,)

    @property
    def memory_bytes(self) -> int:
        files = 0 if self.is_of_one_file else self.files.nbytes
        return self.high.nbytes + self.rows.nbytes + files + (0 if self.low is None else self.low.nbytes)


class KeyIndex:
    """The index of one table; not for several threads at once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._paths = [_GONE]
        self._is_live = np.zeros(64, bool)
        self._parts: list[_Part] = []

    def missing(self, paths: Iterable[str]) -> list[str]:
        """The files of a version that are not in the index yet."""
        return [path for path in paths if path not in self._numbers]

    def drop_others(self, *kept: Mapping[str, object]) -> None:
        """Drop every file that is in none of these."""
        gone = set(self._numbers).difference(*kept)
        if not gone:
            return
        for path in gone:
            self._is_live[self._numbers.pop(path)] = False
        self._trim(0.5)
        if len(self._paths) > 2 * len(self._numbers) + _SPARE_FILES:
            self._renumber()

    def trim(self) -> None:
        """Free the rows of all dropped files. Until then rows stay that are at most half of their part."""
        self._trim(0.0)

    def add(self, path: str, keys: Fingerprints) -> None:
        """Add a file: the fingerprints of all its rows, in order."""
        assert path not in self._numbers, f"{path} is in the index"
        number = self._numbers[path] = len(self._paths)
        self._paths.append(path)
        if number == len(self._is_live):
            self._is_live = np.concatenate([self._is_live, np.zeros(number, bool)])
        self._is_live[number] = True
        part = _Part.of_file(number, keys)
        while self._parts and self._parts[-1].rows_count <= min(2 * part.rows_count, _MOST_MERGED - part.rows_count):
            part = self._parts.pop().merged(part)
        self._parts.append(part)

    def find(self, keys: Fingerprints) -> Iterator[tuple[str, Found]]:
        """For each file that has rows with one of the keys: these rows."""
        order = np.argsort(keys.high, kind="stable")
        for path, found in self._by_file([part.find(keys.take(order)) for part in self._parts]):
            yield path, found._replace(wanted=order[found.wanted])

    def _by_file(self, found: Sequence[Found]) -> Iterator[tuple[str, Found]]:
        if not found:
            return
        wanted, files, rows = (np.concatenate([part[field] for part in found]) for field in range(3))
        live = np.flatnonzero(self._is_live[files])
        live = live[np.argsort(files[live], kind="stable")]
        bounds = np.flatnonzero(np.diff(files[live])) + 1
        for of_file in np.split(live, bounds) if len(live) else ():
            path = self._paths[int(files[of_file[0]])]
            yield path, Found(wanted[of_file], files[of_file], rows[of_file])

    @property
    def memory_bytes(self) -> int:
        """The memory that the index takes."""
        return sum(part.memory_bytes for part in self._parts)

    def _renumber(self) -> None:
        """Number the files without gaps, so that memory does not grow with the number of files that ever existed."""
        numbers = np.zeros(len(self._paths), np.uint32)
        kept = [_GONE, *self._numbers]
        for number, path in enumerate(kept[1:], 1):
            numbers[self._numbers[path]] = number
            self._numbers[path] = number
        self._paths = kept
        self._is_live = np.arange(len(kept)) > 0
        self._parts = [part.renumbered(numbers) for part in self._parts]

    def _trim(self, most_gone: float) -> None:
        trimmed = (self._trimmed(part, most_gone) for part in self._parts)
        self._parts = [part for part in trimmed if part is not None]

    def _trimmed(self, part: _Part, most_gone: float) -> _Part | None:
        """The part without rows of dropped files, if these are more than a share of it; None if no row is left."""
        if part.is_of_one_file:
            return part if part.rows_count and self._is_live[part.files[0]] else None
        is_live = self._is_live[part.files]
        live = np.count_nonzero(is_live)
        if not live:
            return None
        if len(is_live) - live <= most_gone * len(is_live):
            return part
        low = None if part.low is None else part.low[is_live]
        return _Part(part.high[is_live], low, part.files[is_live], part.rows[is_live])


def _or_zeros(part: _Part) -> Words:
    return np.zeros(len(part.high), np.uint64) if part.low is None else part.low
