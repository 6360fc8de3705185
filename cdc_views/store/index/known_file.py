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
    """A data file: its footer, and the row number before which each row group ends."""

    def __init__(self, path: Path) -> None:
        self.footer = pq.read_metadata(path)
        self.sizes = [self.footer.row_group(number).num_rows for number in range(self.footer.num_row_groups)]
        self.ends: Counts = np.cumsum(self.sizes, dtype=np.int64)
        self._path = path
        self._pages_read: Counts = np.zeros(len(self.sizes), np.int64)

    def rows_by_page(self, group: int, rows: Counts, names: Sequence[str]) -> WantedRows | None:
        """These rows of a row group, to be read by page; None if all of the group should be decoded, and kept.

        That is so once as many pages of it were asked for as it has: both have cost the same then.
        """
        if self._map is None or any(name not in self._map.columns for name in names):
            return None
        self._pages_read[group] += len(np.unique(self._map.page_of(rows)))
        is_cheaper = self._pages_read[group] < self._page_counts[group]
        return WantedRows(self._path, self._map, rows) if is_cheaper else None

    @cached_property
    def _map(self) -> PageMap | None:
        has_index = bool(self.sizes) and self.footer.row_group(0).column(0).has_offset_index
        return page_map(self._path) if has_index else None

    @cached_property
    def _page_counts(self) -> Counts:
        assert self._map is not None, "its pages are known"
        return np.bincount(self._map.groups, minlength=len(self.sizes))
