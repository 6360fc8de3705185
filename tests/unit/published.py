"""A warehouse with published epochs, made without Spark and without an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_views.base.lsn import Lsn
from cdc_views.config import StoreSettings
from cdc_views.store.control.control_log import ControlLog, ControlRecord, Kind, TableVersion
from cdc_views.store.control.records import table_kind
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse

BEGIN = datetime(2026, 1, 2, 3, tzinfo=UTC)
TOTALS = TableSpec(
    "totals",
    "views/totals/a",
    pa.schema([("owner", pa.string()), ("day", pa.int64()), ("amount", pa.decimal128(12, 2))]),
    ("owner", "day"),
)
ORDERS = TableSpec(
    "public.orders", "mirrors/public/orders/a", pa.schema([("id", pa.int64()), ("note", pa.string())]), ("id",)
)
BAG = TableSpec(
    "bag",
    "views/bag/a",
    pa.schema([("x", pa.float64()), ("_cv_hash", pa.int64()), ("_cv_number", pa.int32())]),
    ("_cv_hash", "_cv_number"),
)

Row = Sequence[Any]


class Published:
    """Publishes epochs: number n is at position n * 0x100, complete up to 0x10 more, n seconds after BEGIN."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.warehouse = Warehouse(root, cast(SparkSession, None), StoreSettings())
        self.control = ControlLog.open(root, "engine")
        self.control.take_over(generation="g")
        self.tables: dict[str, TableVersion] = {}
        self.epoch = 0
        self.generation = "g"

    def write(self, spec: TableSpec, put: Iterable[Row] = (), gone: Iterable[Row] = ()) -> None:
        """Commit rows, and deletes by key, of the next epoch."""
        table = self.tables.get(spec.name)
        base = table.version if table is not None and table.path == spec.path else self.warehouse.create(spec)
        key = pa.schema([spec.schema.field(name) for name in spec.key])
        deleted = _rows(key, gone)
        changes = Changes(deleted if deleted.num_rows else None, _rows(spec.schema, put))
        stamp = Stamp(self.epoch + 1, self.control.new_attempt(), "0/1")
        version = self.warehouse.commit(spec, base, changes, stamp)
        self.tables[spec.name] = TableVersion(spec.path, version, "live", table_kind(spec.path))

    def publish(
        self, kind: Kind = "publish", detail: Mapping[str, Any] | None = None, **statuses: str
    ) -> ControlRecord:
        """Publish what was written. `statuses` are those of tables, by name."""
        self.epoch = self.control.new_epoch()
        tables = {name: replace(table, status=statuses.get(name, table.status)) for name, table in self.tables.items()}
        return self.control.append(
            kind=kind,
            epoch=self.epoch,
            attempt=self.control.new_attempt(),
            generation=self.generation,
            position=Lsn(self.epoch * 0x100),
            complete_to=Lsn(self.epoch * 0x100 + 0x10),
            committed_at=BEGIN + timedelta(seconds=self.epoch),
            tables=tables,
            detail={"changes": {}} if detail is None else detail,
        )


def _rows(schema: pa.Schema, rows: Iterable[Row]) -> pa.Table:
    rows = list(rows)
    return pa.table([[row[i] for row in rows] for i in range(len(schema))], schema=schema)
