"""The reader of the benchmarks, on tables that delta-rs has written."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from bench.reader import PLACES, LatestTables, PublishedTables, Source
from cdc_views.store.control.control_log import ControlLog, TableVersion

FORMS: dict[str, Any] = {
    "public.posts": lambda number: number,
    "public.follows": lambda number: datetime.fromtimestamp(number, UTC),
    "public.orders": str,
    "public.accounts": str,
    "public.savings": lambda number: number,
}


def write(folder: Path, number: int, *names: str) -> None:
    """Put the number of a probe into the named tables, beside another row."""
    for name in names or PLACES:
        key = PLACES[name].row.split()[0]
        rows = {key: [-1, 1], PLACES[name].column: [FORMS[name](number), FORMS[name](77)]}
        write_deltalake(str(folder / name), pa.table(rows), mode="overwrite")


def look(source: Source) -> tuple[set[int], int | None] | None:
    found = source.look()
    return None if found is None else (set(found[0].values()), found[1])


def test_latest_tables_are_read_whenever_one_has_a_new_version(tmp_path: Path) -> None:
    source = LatestTables(tmp_path)
    assert source.look() is None
    write(tmp_path, 3)
    assert look(source) == ({3}, None)
    assert source.look() is None
    write(tmp_path, 4, "public.posts")
    assert look(source) == ({3, 4}, None)
    write(tmp_path, 5)
    write(tmp_path, 6)
    assert look(source) == ({6}, None)


def test_published_tables_are_read_as_the_control_log_says(tmp_path: Path) -> None:
    write(tmp_path, 3)
    control = ControlLog.open(tmp_path, "writer")
    source = PublishedTables(tmp_path)

    def publish(epoch: int) -> None:
        tables = {
            name: TableVersion(name, DeltaTable(str(tmp_path / name)).version(), "live", "view") for name in PLACES
        }
        control.append(kind="publish", epoch=epoch, attempt=control.new_attempt(), tables=tables)

    control.take_over()
    publish(1)
    assert look(source) == ({3}, 1)
    write(tmp_path, 4)
    assert source.look() is None  # committed, and not yet published
    control.append(kind="intent", epoch=2, attempt=control.new_attempt())
    assert source.look() is None
    publish(2)
    assert look(source) == ({4}, 2)
