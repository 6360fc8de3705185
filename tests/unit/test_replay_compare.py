"""What the comparison of two tables counts and shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cdc_views.replay.diff_report import SAMPLES, ShadowDifference, compare_versions
from cdc_views.store.control.control_log import TableVersion
from cdc_views.store.control.records import TableKind
from cdc_views.store.warehouse import TableSpec

pytestmark = pytest.mark.usefixtures("without_fsync")

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64()), ("tags", pa.list_(pa.int32()))])
NAN = float("nan")


def compare(
    root: Path, old: list[tuple[Any, ...]], new: list[tuple[Any, ...]], name: str = "public.t", key: Any = ("id",)
) -> ShadowDifference:
    kind: TableKind = "mirror" if name == "public.t" else "view"
    old_path = f"{kind}s/old"
    for side, rows in ((old_path, old), ("new", new)):
        columns = [pa.array([row[n] for row in rows], field.type) for n, field in enumerate(SCHEMA)]
        write_deltalake(str(root / side), pa.table(columns, schema=SCHEMA))
    spec = TableSpec(name, "new", SCHEMA, key)
    return compare_versions(
        root, spec, TableVersion(old_path, 0, "live", kind), TableVersion("new", 0, "shadow", kind), None
    )


def test_equal_tables_have_no_difference(tmp_path: Path) -> None:
    rows = [(1, None, NAN, [1, None]), (2, "b", -0.0, None), (3, "", None, [])]
    found = compare(tmp_path, rows, list(reversed(rows)))
    assert found.is_equal
    assert (found.columns, found.samples) == ({}, [])


def test_rows_of_one_side_and_unequal_ones_are_counted_by_column(tmp_path: Path) -> None:
    found = compare(
        tmp_path,
        [(1, "a", 1.0, [1]), (2, "b", 2.0, None), (3, "c", 3.0, None), (5, "e", 5.0, None)],
        [(2, None, 2.0, None), (3, "c", 3.5, [7]), (4, "d", 4.0, None), (5, "e", 5.0, None)],
    )
    assert (found.only_old, found.only_new, found.different) == (1, 1, 2)
    assert found.columns == {"name": 1, "x": 1, "tags": 1}
    assert not found.is_equal
    assert {"kind": "only_old", "row": {"id": 1, "name": "a", "x": 1.0, "tags": [1]}} in found.samples
    assert {"kind": "only_new", "row": {"id": 4, "name": "d", "x": 4.0, "tags": None}} in found.samples
    assert {"kind": "different", "key": {"id": 2}, "old": {"name": "b"}, "new": {"name": None}} in found.samples


def test_key_that_is_null_finds_its_row(tmp_path: Path) -> None:
    found = compare(tmp_path, [(None, "a", 1.0, None)], [(None, "b", 1.0, None)])
    assert (found.only_old, found.only_new, found.different) == (0, 0, 1)


def test_table_of_at_most_one_row_has_the_empty_key(tmp_path: Path) -> None:
    assert compare(tmp_path, [(1, "a", 1.0, None)], [(2, "a", 1.0, None)], key=()).columns == {"id": 1}


def test_copies_of_a_row_are_counted(tmp_path: Path) -> None:
    row = (1, "a", 1.0, None)
    assert compare(tmp_path, [row, row, row], [row]).only_old == 2


def test_samples_are_few(tmp_path: Path) -> None:
    found = compare(tmp_path, [(number, "a", 1.0, None) for number in range(20)], [])
    assert (found.only_old, len(found.samples)) == (20, SAMPLES)


@pytest.mark.parametrize(("name", "is_equal"), [("view", True), ("public.t", False)])
def test_last_digits_of_floats_count_in_mirrors_only(tmp_path: Path, name: str, is_equal: bool) -> None:
    found = compare(tmp_path, [(1, "a", 0.1 + 0.2, None)], [(1, "a", 0.3, None)], name)
    assert found.is_equal == is_equal
