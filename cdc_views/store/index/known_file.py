"""What lookups know of a data file, and which of its pages they read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow.parquet as pq

from cdc_views.store.files.pages import PageMap, WantedRows, page_map

Counts: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class KnownFile:
    """A data file: the row numbers at which each row group begins, and before which it ends; and its pages."""

    def __init__(self, path: Path, footer: pq.FileMetaData) -> None:
        self.sizes = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
        self.ends: Counts = np.cumsum(self.sizes, dtype=np.int64)
        self.begins: list[int] = (self.ends - self.sizes).tolist()
        self._path = path
        self._has_index = bool(self.sizes) and footer.row_group(0).column(0).has_offset_index
        self._pages_read: Counts = np.zeros(len(self.sizes), np.int64)

    def by_page(self, rows: Counts, names: Sequence[str]) -> WantedRows | None:
        """These rows, to be read by page; None if a column has no pages of its own."""
        if self._map is None or any(name not in self._map.columns for name in names):
            return None
        return WantedRows(self._path, self._map, rows)

    def should_decode(self, group: int, wanted: WantedRows) -> bool:
        """Whether all of a row group should be decoded, and kept, in place of the pages with these rows.

        That is so once as many pages of it were asked for as it has: both have cost the same then.
        """
        self._pages_read[group] += len(wanted.pages.numbers)
        return bool(self._pages_read[group] >= self._page_counts[group])

    def was_decoded(self, group: int) -> None:
        """Count the pages of a row group from 0 again: if it does not stay in the cache, it has to pay off again."""
        self._pages_read[group] = 0

    @cached_property
    def _map(self) -> PageMap | None:
        return page_map(self._path) if self._has_index else None

    @cached_property
    def _page_counts(self) -> Counts:
        assert self._map is not None, "its pages are known"
        return np.bincount(self._map.groups, minlength=len(self.sizes))
