"""Rows of a table that are kept in memory, within a budget; the least recently used go first.

They are those of one version of the table. For a later version, only the rows that differ from it are dropped.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final

Key = tuple[object, ...]
Row = Mapping[str, object]

# An entry of the dict: the key, a tuple, and pointers.
_ENTRY_BYTES: Final = 200


class HotRows:
    """Rows by key, and keys of which there is no row. Not for several threads at once."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._rows: OrderedDict[Key, tuple[Row | None, int]] = OrderedDict()
        self.used_bytes = 0
        """The memory that the rows take, as far as Python says."""

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    def get(self, key: Key) -> Row | None:
        """The row of a key that is kept; None if there is no such row."""
        self._rows.move_to_end(key)
        return self._rows[key][0]

    def put(self, key: Key, row: Row | None) -> None:
        """Keep a row, or that there is none."""
        self.drop([key])
        size = _ENTRY_BYTES + size_bytes(key) + size_bytes(row)
        if size > self._budget_bytes:
            return
        self._rows[key] = row, size
        self.used_bytes += size
        while self.used_bytes > self._budget_bytes:
            _, (_, gone) = self._rows.popitem(last=False)
            self.used_bytes -= gone

    def drop(self, keys: Iterable[Key]) -> None:
        """Drop the rows of these keys."""
        for key in keys:
            if (known := self._rows.pop(key, None)) is not None:
                self.used_bytes -= known[1]

    def clear(self) -> None:
        """Drop all rows."""
        self._rows.clear()
        self.used_bytes = 0


def size_bytes(value: object) -> int:
    """The memory that a value of a row takes, with everything in it."""
    size = sys.getsizeof(value)
    if isinstance(value, Mapping):
        return size + sum(map(size_bytes, value.values()))  # the names are shared by all rows
    if isinstance(value, list | tuple):
        return size + sum(map(size_bytes, value))
    return size
