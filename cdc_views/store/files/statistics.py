"""The `add` action of a data file that we write, and the statistics of its rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.store.delta_log.entries import Add
from cdc_views.store.delta_log.schema import TableSpec, statistics_columns


def bounded_columns(spec: TableSpec) -> list[str]:
    """The columns with minimum and maximum: integers only, since texts are cut and times rounded in statistics."""
    return [name for name in statistics_columns(spec) if pa.types.is_integer(spec.schema.field(name).type)]


class Statistics:
    """Row count, minimum, maximum and NULL count of a file, added up piece by piece."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._bounds: dict[str, tuple[int, int]] = {}
        self._nulls = dict.fromkeys(columns, 0)
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        """Count further rows."""
        self._rows += rows.num_rows
        for name in self._nulls:
            found = pc.min_max(rows[name]).as_py()
            self._nulls[name] += rows[name].null_count
            if found["min"] is not None:
                low, high = self._bounds.get(name, (found["min"], found["max"]))
                self._bounds[name] = min(low, found["min"]), max(high, found["max"])

    def text(self) -> str:
        """The statistics as JSON, for the `stats` of an `add` action."""
        stats: dict[str, Any] = {
            "numRecords": self._rows,
            "minValues": {name: low for name, (low, _) in self._bounds.items()},
            "maxValues": {name: high for name, (_, high) in self._bounds.items()},
            "nullCount": self._nulls,
            "tightBounds": True,
        }
        return orjson.dumps(stats).decode()


def add_action(name: str, size_bytes: int, statistics: Statistics, *, data_change: bool) -> Add:
    """The `add` action of a new file in the table's folder."""
    return {
        "path": name,
        "partitionValues": {},
        "size": size_bytes,
        "modificationTime": time.time_ns() // 1_000_000,
        "dataChange": data_change,
        "stats": statistics.text(),
    }
