"""An index from fingerprints of some columns of a table to (file, row number).

It is a cache of this process. A Parquet file never changes, so its index entries hold as long as the file is in the
table. The index moves to a version by the version's list of files: new files are read, removed files are dropped.
Rows that a deletion vector hides are found too; the caller filters them.

The parts of an index are sorted. A new part is merged with the last one while that is at most twice as long, so n rows
in files of any size are in about log(n) parts (the logarithmic method of Bentley and Saxe). A long part is cut into
shards by its fingerprints, and merged there. A search looks into the shards of its keys only, so it costs about the
same in a table of any size. The parts of an index on disk are in memory-mapped files, except for small ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from cdc_views.store.index.hashing import Fingerprints
from cdc_views.store.index.parts import SHARDS, Found, Part, by_shard, joined

# Longer parts are not merged: that would take longer than an epoch.
_MOST_MERGED: Final = 1 << 22
# Parts of this length are cut into shards.
_LEAST_SHARDED: Final = 1 << 19
# Smaller parts of an index on disk stay in memory, since most of them are soon merged.
_LEAST_ON_DISK: Final = 1 << 15
# The path of file number 0, which stands for all removed files that still have rows in a part.
_GONE: Final = ""
# Files are renumbered only after this many were removed, since that takes time for each row.
_SPARE_FILES: Final = 1000

BYTES_PER_ROW: Final = 24
"""The most bytes per row: 16 for the key, 4 for the row number, 4 more in parts of several files."""

BYTES_PER_NUMBER: Final = 16
"""The same for a key of one whole number, none NULL, which takes 8 bytes instead of 16."""


SMALL_PARTS_BYTES: Final = (SHARDS + 1) * 2 * _LEAST_ON_DISK * BYTES_PER_ROW
"""The most that an index on disk keeps in memory: in each list, parts that are each shorter than half of the last."""


class KeyIndex:
    """The index of one table; not for several threads at once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._paths = [_GONE]
        self._is_live = np.zeros(64, bool)
        self._short: list[Part] = []
        self._shards: list[list[Part]] = [[] for _ in range(SHARDS)]
        self._folder: Path | None = None

    def move_to_disk(self, folder: Path) -> None:
        """Keep the index in memory-mapped files in this folder from now on."""
        self._folder = folder
        self._settle()

    @property
    def is_on_disk(self) -> bool:
        """Whether it was moved to disk."""
        return self._folder is not None

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
        _add(self._short, Part.of_file(number, keys))
        if self._short[-1].rows_count >= _LEAST_SHARDED:
            for shard, part in self._short.pop().shards():
                _add(self._shards[shard], part)
        self._settle()

    def find(self, keys: Fingerprints) -> Iterator[tuple[str, Found]]:
        """For each file that has rows with one of the keys: these rows."""
        order = np.argsort(keys.high, kind="stable")
        found = joined(self._found(keys.take(order)))
        for path, each in self._by_file(found) if found is not None else ():
            yield path, each._replace(wanted=order[each.wanted])

    def _found(self, keys: Fingerprints) -> Iterator[Found]:
        """The rows of these keys, which are sorted."""
        for part in self._short:
            yield part.find(keys)
        for shard, places in by_shard(keys.high) if any(self._shards) else ():
            of_shard = keys.take(places)
            for part in self._shards[shard]:
                found = part.find(of_shard)
                yield found._replace(wanted=places[found.wanted])

    def _by_file(self, found: Found) -> Iterator[tuple[str, Found]]:
        wanted, files, rows = found
        live = np.flatnonzero(self._is_live[files])
        live = live[np.argsort(files[live], kind="stable")]
        bounds = np.flatnonzero(np.diff(files[live])) + 1
        for of_file in np.split(live, bounds) if len(live) else ():
            path = self._paths[int(files[of_file[0]])]
            yield path, Found(wanted[of_file], files[of_file], rows[of_file])

    @property
    def memory_bytes(self) -> int:
        """The memory that the index takes."""
        return sum(part.size_bytes for part in self._parts() if not part.is_on_disk)

    @property
    def disk_bytes(self) -> int:
        """What it takes on disk."""
        return sum(part.size_bytes for part in self._parts() if part.is_on_disk)

    def _lists(self) -> list[list[Part]]:
        return [self._short, *self._shards]

    def _parts(self) -> Iterator[Part]:
        return (part for parts in self._lists() for part in parts)

    def _renumber(self) -> None:
        """Number the files without gaps, so that memory does not grow with the number of files that ever existed."""
        numbers = np.zeros(len(self._paths), np.uint32)
        kept = [_GONE, *self._numbers]
        for number, path in enumerate(kept[1:], 1):
            numbers[self._numbers[path]] = number
            self._numbers[path] = number
        self._paths = kept
        self._is_live = np.arange(len(kept)) > 0
        for parts in self._lists():
            parts[:] = [part.renumbered(numbers) for part in parts]
        self._settle()

    def _trim(self, most_gone: float) -> None:
        for parts in self._lists():
            trimmed = [part.without_gone(self._is_live, most_gone) for part in parts]
            parts[:] = [part for part in trimmed if part is not None]
        self._settle()

    def _settle(self) -> None:
        """Write the parts to disk that belong there."""
        if self._folder is not None:
            for parts in self._lists():
                parts[:] = [_settled(part, self._folder) for part in parts]


def _add(parts: list[Part], part: Part) -> None:
    while parts and parts[-1].rows_count <= min(2 * part.rows_count, _MOST_MERGED - part.rows_count):
        part = parts.pop().merged(part)
    parts.append(part)


def _settled(part: Part, folder: Path) -> Part:
    """The part on disk, unless it is small."""
    if part.is_on_disk or part.rows_count < _LEAST_ON_DISK:
        return part
    try:
        return part.on_disk(folder)
    except OSError:
        return part  # a full disk shows at the next commit
