"""A small table with random changes, and a model of what it must hold; the warehouse has no Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from cdc_views.config import StoreSettings
from cdc_views.store.warehouse import Changes, TableSpec, Warehouse

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("owner", pa.string()), ("n", pa.int64())])
SPEC = TableSpec("t", "t", SCHEMA, ("a", "b"))
KEY = pa.schema([SCHEMA.field("a"), SCHEMA.field("b")])

Row = tuple[int | None, str | None, str | None, int]


def warehouse_in(folder: Path, **settings: Any) -> Warehouse:
    """A warehouse that has no Spark: what needs it fails."""
    return Warehouse(folder, cast(Any, None), StoreSettings(fsync=True, **settings))


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table([[row[i] for row in rows] for i in range(len(SCHEMA))], schema=SCHEMA)


def as_rows(table: pa.Table) -> list[Row]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


class Model:
    """Random changes of one table, and what it must hold."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.stored: dict[tuple[int | None, str | None], Row] = {}

    def change(self) -> Changes:
        chance = self.chance
        rows = {key: (*key, chance.choice([None, "x", "y"]), chance.randrange(10**6))
                for key in (self.key() for _ in range(chance.choice([0, 1, 5, 40])))}  # fmt: skip
        gone = [key for key in (self.key() for _ in range(chance.choice([0, 1, 9]))) if key not in rows]
        for key in gone:
            self.stored.pop(key, None)
        self.stored |= rows
        deleted = pa.table([[key[i] for key in gone] for i in range(2)], schema=KEY) if gone else None
        return Changes(deleted, table_of(list(rows.values())))

    def key(self) -> tuple[int | None, str | None]:
        return self.chance.choice([None, *range(12)]), self.chance.choice([None, "", "p", "q" * 20])

    def rows(self, where: Any = lambda row: True) -> list[Row]:
        return sorted((row for row in self.stored.values() if where(row)), key=repr)
