"""Rows that are sorted on the disk."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from cdc_views.store.files import SortedRuns

SCHEMA = pa.schema([("term", pa.string()), ("document", pa.int64())])
Rows = list[tuple[str, int]]


def table_of(rows: Rows) -> pa.Table:
    return pa.table([[row[0] for row in rows], [row[1] for row in rows]], schema=SCHEMA)


def rows_of(table: pa.Table) -> Rows:
    return [(row["term"], row["document"]) for row in table.to_pylist()]


def merged(folder: Path, rows: Rows, run_rows: int, rows_together: int) -> list[Rows]:
    runs = SortedRuns(folder, SCHEMA.names)
    for begin in range(0, len(rows), run_rows):
        runs.add(table_of(sorted(rows[begin : begin + run_rows])))
    return [rows_of(table) for table in runs.merged(rows_together)]


@pytest.mark.usefixtures("without_fsync")
@pytest.mark.parametrize("seed", range(3))
def test_merged_runs_are_all_rows_in_order(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    terms = ["a", "ab", "é", "中", "👍", "z", *map(str, range(50))]
    rows = [(random.choice(terms), random.randrange(1000)) for _ in range(1000)]
    found = merged(tmp_path, rows, 130, 100)
    assert [row for part in found for row in part] == sorted(rows)
    assert all(len(part) < 200 for part in found)
    assert list(tmp_path.iterdir()) == []


def test_merged_rows_of_one_term_are_cut(tmp_path: Path) -> None:
    found = merged(tmp_path, [("a", number) for number in range(100)], 30, 10)
    assert [len(part) for part in found] == [10] * 10


def test_merged_runs_without_rows_are_none(tmp_path: Path) -> None:
    assert merged(tmp_path, [], 1, 1) == []
