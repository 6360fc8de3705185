"""Files made from the rows of others: how much of them is in memory, and how they are cut."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_views.store.delta_log.entries import Add
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.files.data_files import ROW_GROUP, ROW_GROUP_BYTES, write_rows
from cdc_views.store.files.merged_file import rows_of, write_evenly, write_merged

pytestmark = pytest.mark.usefixtures("without_fsync")

SPEC = TableSpec("t", "t", pa.schema([("id", pa.int64()), ("doc", pa.string())]), ("id",))
WIDE_BYTES = 100_000
AT_ONCE = 6 * ROW_GROUP_BYTES


def wide_rows(count: int, *, repeated: bool = False) -> pa.Table:
    """Compressible rows that are different, or of which there are few."""
    chance = random.Random(1)
    words = [f"{chance.random()} of a catalogue " for _ in range(20)]
    docs = ["".join(chance.choices(words, k=WIDE_BYTES // 30)) for _ in range(5 if repeated else count)]
    return pa.table([range(count), list(itertools.islice(itertools.cycle(docs), count))], schema=SPEC.schema)


def narrow_rows(count: int) -> pa.Table:
    return pa.table([range(count), ["x"] * count], schema=SPEC.schema)


def written(folder: Path, rows: pa.Table) -> Add:
    (folder / SPEC.path).mkdir(exist_ok=True)
    return write_rows(folder / SPEC.path, rows, SPEC.key)


def groups_of(folder: Path, add: Add | None) -> list[int]:
    assert add is not None
    found = pq.ParquetFile(folder / SPEC.path / add["path"]).metadata
    return [found.row_group(number).num_rows for number in range(found.num_row_groups)]


class Watched:
    """Pieces, and the most bytes of Arrow while they are taken, beside what there was before."""

    def __init__(self, pieces: Iterable[pa.Table]) -> None:
        self._pieces, self._before, self.most_bytes = pieces, pa.total_allocated_bytes(), 0

    def __iter__(self) -> Iterator[pa.Table]:
        for piece in self._pieces:
            self.most_bytes = max(self.most_bytes, pa.total_allocated_bytes() - self._before)
            yield piece


@pytest.mark.parametrize("repeated", [False, True])
def test_wide_rows_are_read_and_merged_within_a_few_row_groups(tmp_path: Path, repeated: bool) -> None:
    rows = wide_rows(1_500, repeated=repeated)
    assert rows.nbytes > 10 * AT_ONCE
    add = written(tmp_path, rows)
    assert max(piece.nbytes for piece in rows_of(tmp_path / "t", SPEC, [add])) <= AT_ONCE
    watched = Watched(rows_of(tmp_path / "t", SPEC, [add]))
    [merged] = write_evenly(tmp_path / "t", SPEC, watched, rows.num_rows, 1)
    assert watched.most_bytes < 8 * AT_ONCE
    assert pq.read_table(tmp_path / "t" / merged["path"], schema=SPEC.schema).equals(rows)
    assert ".zstd." in merged["path"]


def test_row_groups_are_cut_by_bytes_where_rows_are_wide_and_by_rows_elsewhere(tmp_path: Path) -> None:
    wide, narrow = written(tmp_path, wide_rows(250)), written(tmp_path, narrow_rows(50_000))
    merged = write_merged(tmp_path / "t", SPEC, rows_of(tmp_path / "t", SPEC, [wide]))
    assert set(groups_of(tmp_path, merged)) == {100, 50}
    merged = write_merged(tmp_path / "t", SPEC, rows_of(tmp_path / "t", SPEC, [narrow]))
    assert groups_of(tmp_path, merged) == [ROW_GROUP, ROW_GROUP, 10_000]


def test_wide_rows_after_narrow_ones_are_all_there(tmp_path: Path) -> None:
    adds = [written(tmp_path, rows) for rows in (narrow_rows(30_000), wide_rows(300), narrow_rows(7))]
    merged = write_merged(tmp_path / "t", SPEC, rows_of(tmp_path / "t", SPEC, adds))
    assert merged is not None
    found = pq.read_table(tmp_path / "t" / merged["path"])
    assert found["id"].to_pylist() == [*range(30_000), *range(300), *range(7)]
