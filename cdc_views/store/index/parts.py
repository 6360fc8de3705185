"""Sorted fingerprints with the file and the row number of each: what an index consists of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from cdc_views.store.files.mapped import mapped
from cdc_views.store.index.hashing import Fingerprints, Words

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]
Places: TypeAlias = np.ndarray[Any, np.dtype[np.intp]]
Live: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

SHARDS: Final = 16
_MOST_ROW: Final = (1 << 32) - 1
# Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4): whole numbers are their own fingerprints.
_GOLDEN: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_SHARD_BITS: Final = np.uint64(64 - 4)


class Found(NamedTuple):
    """Rows that were found: for each the number of the wanted key, of the file, and of the row in the file."""

    wanted: Places
    files: Numbers
    rows: Numbers


@dataclass(frozen=True)
class Part:
    """The rows of one or several files, sorted by `high`.

    `sizes` has the number of rows of each file. `is_on_disk` says that all arrays are in a mapped file.
    """

    high: Words
    low: Words | None
    files: Numbers
    rows: Numbers
    sizes: Mapping[int, int]
    is_on_disk: bool = False

    @classmethod
    def of_file(cls, file: int, keys: Fingerprints) -> Part:
        """All rows of a file, in order."""
        rows = len(keys.high)
        assert rows <= _MOST_ROW, "a file has more rows than an index can number"
        order = np.argsort(keys.high, kind="stable").astype(np.uint32)
        low = None if keys.low is None else keys.low[order]
        return cls(keys.high[order], low, _constant(file, rows), order, {file: rows})

    def merged(self, other: Part) -> Part:
        """The rows of both."""
        order = np.argsort(np.concatenate([self.high, other.high]), kind="stable")
        low = None
        if self.low is not None or other.low is not None:
            low = np.concatenate([_or_zeros(self), _or_zeros(other)])[order]
        return Part(
            np.concatenate([self.high, other.high])[order],
            low,
            np.concatenate([self.files, other.files])[order],
            np.concatenate([self.rows, other.rows])[order],
            {file: self.sizes.get(file, 0) + other.sizes.get(file, 0) for file in {**self.sizes, **other.sizes}},
        )

    def shards(self) -> Iterator[tuple[int, Part]]:
        """The rows of each shard that has any."""
        for shard, places in by_shard(self.high):
            yield shard, self._of(places)

    def without_gone(self, is_live: Live, most_gone: float) -> Part | None:
        """The part without rows of dropped files, if these are more than a share of it; None if no row is left."""
        gone = sum(rows for file, rows in self.sizes.items() if not is_live[file])
        if gone == self.rows_count:
            return None
        if gone <= most_gone * self.rows_count:
            return self
        return self._of(np.flatnonzero(is_live[self.files]))

    def renumbered(self, numbers: Numbers) -> Part:
        """The same rows with new file numbers: `numbers[old]` is the new one."""
        sizes: dict[int, int] = {}
        for file, rows in self.sizes.items():
            sizes[int(numbers[file])] = sizes.get(int(numbers[file]), 0) + rows
        if self._is_of_one_file:
            return replace(self, files=_constant(int(numbers[self.files[0]]), self.rows_count), sizes=sizes)
        return replace(self, files=numbers[self.files], sizes=sizes, is_on_disk=False)

    def on_disk(self, folder: Path) -> Part:
        """The same rows in a mapped file. Raises OSError."""
        arrays = {"high": self.high, "rows": self.rows}
        if self.low is not None:
            arrays["low"] = self.low
        if not self._is_of_one_file:
            arrays["files"] = self.files
        rows = mapped(pa.record_batch({name: pa.array(array) for name, array in arrays.items()}), folder)
        return replace(self, **{name: rows.column(name).to_numpy() for name in arrays}, is_on_disk=True)

    def find(self, keys: Fingerprints) -> Found:
        """The rows of these keys, which are sorted."""
        first = np.searchsorted(self.high, keys.high, "left")
        # Most keys are in few parts.
        hit = np.flatnonzero(first < self.rows_count)
        hit = hit[self.high[first[hit]] == keys.high[hit]]
        if not len(hit):
            return _NOTHING
        counts = np.searchsorted(self.high, keys.high[hit], "right") - first[hit]
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
        """The number of rows."""
        return len(self.high)

    @property
    def size_bytes(self) -> int:
        """What the arrays take, in memory or on disk."""
        files = 0 if self._is_of_one_file else self.files.nbytes
        return self.high.nbytes + self.rows.nbytes + files + (0 if self.low is None else self.low.nbytes)

    @property
    def _is_of_one_file(self) -> bool:
        return self.files.strides == (0,)

    def _of(self, places: Places) -> Part:
        low = None if self.low is None else self.low[places]
        if self._is_of_one_file:
            file = int(self.files[0])
            sizes = {file: len(places)}
        else:
            counts = np.bincount(self.files[places])
            sizes = {int(file): int(counts[file]) for file in np.flatnonzero(counts)}
            file = next(iter(sizes))
        files = _constant(file, len(places)) if len(sizes) == 1 else self.files[places]
        return Part(self.high[places], low, files, self.rows[places], sizes)


_NOTHING: Final = Found(np.empty(0, np.intp), np.empty(0, np.uint32), np.empty(0, np.uint32))


def by_shard(high: Words) -> Iterator[tuple[int, Places]]:
    """For each shard that has some of these fingerprints, their places in order."""
    shards = (high * _GOLDEN >> _SHARD_BITS).astype(np.uint8)
    order = np.argsort(shards, kind="stable")
    bounds = np.flatnonzero(np.diff(shards[order])) + 1
    for places in np.split(order, bounds) if len(order) else ():
        yield int(shards[places[0]]), places


def joined(found: Iterable[Found]) -> Found | None:
    """All of them; None if there are none."""
    found = [each for each in found if len(each.rows)]
    if not found:
        return None
    wanted, files, rows = (np.concatenate([each[field] for each in found]) for field in range(3))
    return Found(wanted, files, rows)


def _constant(file: int, rows: int) -> Numbers:
    # Broadcast: the same number for every row takes no memory.
    return np.broadcast_to(np.uint32(file), rows)


def _or_zeros(part: Part) -> Words:
    return np.zeros(len(part.high), np.uint64) if part.low is None else part.low
