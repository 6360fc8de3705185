"""How many rows a row group has."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_views.store.files import ROW_GROUP, ROW_GROUP_BYTES, write_rows

pytestmark = pytest.mark.usefixtures("without_fsync")


def sizes_of_groups(folder: Path, width: int, rows: int) -> list[int]:
    table = pa.table({"text": pa.repeat("x" * width, rows)})
    footer = pq.read_metadata(folder / write_rows(folder, table, [])["path"])
    return [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]


def test_row_groups_of_wide_rows_have_fewer_rows(tmp_path: Path) -> None:
    assert sizes_of_groups(tmp_path, 10, ROW_GROUP) == [ROW_GROUP]
    assert sizes_of_groups(tmp_path, 400, ROW_GROUP) == [ROW_GROUP // 4] * 4
    assert 400 * ROW_GROUP // 4 < ROW_GROUP_BYTES


def test_row_groups_of_the_widest_rows_have_a_hundred(tmp_path: Path) -> None:
    assert sizes_of_groups(tmp_path, 100_000, 200) == [100, 100]
