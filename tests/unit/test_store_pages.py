"""Reading rows by page equals reading them by row group, whatever the types, the encodings and the layout of a file."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_views.metrics import Work, counting
from cdc_views.store.delta_log.deletion_vectors import RowNumbers
from cdc_views.store.files import PAGES_IN_ROW_GROUP, ROW_GROUP, write_rows
from cdc_views.store.files.pages import PageMap, WantedRows, page_map, read_rows
from cdc_views.store.index import fetching
from cdc_views.store.index.fetching import RowGroups
from cdc_views.store.index.known_file import KnownFile
from tests.samples import sample

pytestmark = pytest.mark.usefixtures("without_fsync")

PAGE_ROWS = ROW_GROUP // PAGES_IN_ROW_GROUP
MOMENT = datetime(2026, 11, 26, tzinfo=UTC)
SCHEMA = pa.schema(
    {
        "tiny": pa.int8(), "small": pa.int16(), "whole": pa.int32(), "large": pa.int64(), "single": pa.float32(),
        "float": pa.float64(), "is_new": pa.bool_(), "text": pa.string(), "status": pa.string(), "bytes": pa.binary(),
        "amount": pa.decimal128(18, 2), "wide_amount": pa.decimal128(38, 6), "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"), "tags": pa.list_(pa.string()),
        "nested": pa.struct({"a": pa.int64(), "b": pa.list_(pa.int32())}), "last": pa.int64(),
    }
)  # fmt: skip
FLAT = [field.name for field in SCHEMA if not pa.types.is_nested(field.type)]


def rows_of(chance: random.Random, count: int, nulls: float) -> pa.Table:
    def value(name: str) -> Any:
        number = chance.randrange(10**6)
        values: dict[str, Any] = {
            "tiny": number % 100, "small": number % 10_000, "whole": number, "large": number << 30,
            "single": number / 4, "float": number / 3, "is_new": number % 2 == 0,
            "text": "é" * (number % 30) + str(number), "status": ["new", "paid", "sent"][number % 3],
            "bytes": number.to_bytes(4, "big"), "amount": Decimal(number) / 100, "wide_amount": Decimal(number) / 10**6,
            "day": date(2026, 1, 1) + timedelta(number % 1000), "at": MOMENT + timedelta(microseconds=number),
            "local": MOMENT.replace(tzinfo=None) + timedelta(microseconds=number), "tags": ["x"] * (number % 3),
            "nested": {"a": number, "b": [number % 7] * (number % 2)}, "last": number,
        }  # fmt: skip
        return None if chance.random() < nulls else values[name]

    # A few rows, repeated: values are made one by one.
    some = pa.table({field.name: pa.array([value(field.name) for _ in range(97)], field.type) for field in SCHEMA})
    rows = some.take(pa.array(np.random.default_rng(chance.randrange(1000)).integers(0, 97, count)))
    return rows.set_column(SCHEMA.get_field_index("last"), SCHEMA.field("last"), pa.array(range(count), pa.int64()))


def narrow_rows(count: int) -> pa.Table:
    """Rows of which a row group has the most."""
    return rows_of(random.Random(1), count, 0.0).select(["tags", "last", "whole"])


def the_map(file: Path) -> PageMap:
    found = page_map(file)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(sample(3, 30)))
def test_rows_by_page_are_those_of_the_file(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    files, expected = [], []
    for number in range(3):
        rows = rows_of(chance, chance.choice([1, PAGE_ROWS, 2 * ROW_GROUP + 5]), chance.choice([0.0, 0.3]))
        file = tmp_path / f"{number}.parquet"
        pq.write_table(
            rows,
            file,
            compression=chance.choice(["snappy", "zstd"]),
            use_dictionary=chance.choice([False, ["status", "text"], True]),
            row_group_size=chance.choice([ROW_GROUP, 7_001]),
            max_rows_per_page=chance.choice([PAGE_ROWS, 333]),
            data_page_version=chance.choice(["1.0", "2.0"]),
            write_page_index=True,
        )
        numbers = np.array(sorted(chance.sample(range(rows.num_rows), min(rows.num_rows, chance.choice([1, 60])))))
        files.append(WantedRows(file, the_map(file), numbers))
        expected.append(rows.take(pa.array(numbers)))
    names = chance.sample(FLAT, chance.choice([1, 4, len(FLAT)]))
    schema = pa.schema([SCHEMA.field(name) for name in names])
    assert read_rows(files, names).cast(schema).equals(pa.concat_tables(expected).select(names))


def test_page_map_has_every_column_without_parts(tmp_path: Path) -> None:
    wide = write_rows(tmp_path, rows_of(random.Random(1), 100, 0.1), [])
    assert list(the_map(tmp_path / wide["path"]).columns) == FLAT
    add = write_rows(tmp_path, narrow_rows(2 * ROW_GROUP + 5), [])
    found = the_map(tmp_path / add["path"])
    assert np.array_equal(found.begins[:3], [0, PAGE_ROWS, 2 * PAGE_ROWS])
    assert (len(found.begins), found.ends[-1]) == (2 * PAGES_IN_ROW_GROUP + 1, 2 * ROW_GROUP + 5)


def test_page_map_leaves_out_columns_whose_pages_begin_at_other_rows(tmp_path: Path) -> None:
    rows = pa.table({"short": range(10_000), "long": ["x" * 100 + str(n) for n in range(10_000)]})
    file = tmp_path / "t.parquet"
    pq.write_table(rows, file, use_dictionary=False, data_page_size=100_000, write_page_index=True)
    assert list(the_map(file).columns) == ["short"]


def test_file_without_a_page_index_has_no_page_map(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": range(10)}), file)
    assert page_map(file) is None
    pq.write_table(pa.table({"a": []}), file, write_page_index=True)
    assert page_map(file) is None


def fetched(groups: RowGroups, folder: Path, path: str, numbers: Sequence[int], schema: pa.Schema) -> tuple[Work, Any]:
    with counting(Work()) as work:
        found = groups.fetch(folder, {path: RowNumbers(numbers)}, schema)
    assert found is not None
    return work, found


def test_row_group_is_decoded_as_a_whole_once_its_pages_have_cost_as_much(tmp_path: Path) -> None:
    rows = narrow_rows(ROW_GROUP)
    path = write_rows(tmp_path, rows, [])["path"]
    groups, schema = RowGroups(tmp_path / ".rows", 1 << 30), pa.schema([SCHEMA.field("last"), SCHEMA.field("whole")])
    read = []
    for number in range(PAGES_IN_ROW_GROUP + 1):
        work, found = fetched(groups, tmp_path, path, [number * 7], schema)
        assert found.equals(rows.select(schema.names).slice(number * 7, 1).combine_chunks())
        read.append(work.rows_read)
    assert read == [PAGE_ROWS] * (PAGES_IN_ROW_GROUP - 1) + [ROW_GROUP, 0]


def test_rows_of_nested_and_of_later_columns_are_read_with_the_whole_row_group(tmp_path: Path) -> None:
    rows = narrow_rows(ROW_GROUP)
    path = write_rows(tmp_path, rows, [])["path"]
    groups = RowGroups(tmp_path / ".rows", 1 << 30)
    for field in (SCHEMA.field("tags"), pa.field("later", pa.int64())):
        work, found = fetched(groups, tmp_path, path, [5], pa.schema([SCHEMA.field("last"), field]))
        assert (work.rows_read, found["last"].to_pylist(), found.num_columns) == (ROW_GROUP, [5], 2)


def test_altered_type_of_a_column_is_that_of_the_table(tmp_path: Path) -> None:
    path = write_rows(tmp_path, narrow_rows(ROW_GROUP), [])["path"]
    schema = pa.schema({"last": pa.int64(), "whole": pa.int64()})
    _, found = fetched(RowGroups(tmp_path / ".rows", 1 << 30), tmp_path, path, [5], schema)
    assert found.schema == schema


def test_page_with_many_wanted_rows_counts_once(tmp_path: Path) -> None:
    path = write_rows(tmp_path, narrow_rows(ROW_GROUP), [])["path"]
    file = KnownFile(tmp_path / path, pq.read_metadata(tmp_path / path))

    def should_decode(rows: int) -> bool:
        wanted = file.by_page(np.arange(rows), ["last"])
        assert wanted is not None
        return file.should_decode(0, wanted)

    assert not should_decode(PAGE_ROWS)
    assert should_decode(ROW_GROUP)


def test_row_group_that_has_left_the_cache_has_to_pay_off_again(tmp_path: Path) -> None:
    path = write_rows(tmp_path, narrow_rows(ROW_GROUP), [])["path"]
    groups, schema = RowGroups(tmp_path / ".rows", 0), pa.schema([SCHEMA.field("last")])
    read = [fetched(groups, tmp_path, path, [5], schema)[0].rows_read for _ in range(2 * PAGES_IN_ROW_GROUP)]
    assert read == [*[PAGE_ROWS] * (PAGES_IN_ROW_GROUP - 1), ROW_GROUP] * 2


def test_lookup_decodes_only_some_of_the_row_groups_that_have_paid_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_MOST_ROWS_AHEAD", ROW_GROUP - PAGE_ROWS)  # for one of them
    path = write_rows(tmp_path, narrow_rows(3 * ROW_GROUP), [])["path"]
    groups, schema = RowGroups(tmp_path / ".rows", 1 << 30), pa.schema([SCHEMA.field("last")])
    numbers, read = [0, ROW_GROUP, 2 * ROW_GROUP], []
    for _ in range(PAGES_IN_ROW_GROUP + 3):
        work, found = fetched(groups, tmp_path, path, numbers, schema)
        assert sorted(found["last"].to_pylist()) == numbers
        read.append(work.rows_read)
    paid_off = [ROW_GROUP + 2 * PAGE_ROWS, ROW_GROUP + PAGE_ROWS, ROW_GROUP, 0]
    assert read == [3 * PAGE_ROWS] * (PAGES_IN_ROW_GROUP - 1) + paid_off


def test_row_groups_of_which_every_page_is_wanted_are_decoded_as_a_whole_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_MOST_ROWS_AHEAD", 0)
    path = write_rows(tmp_path, narrow_rows(3 * ROW_GROUP), [])["path"]
    groups, schema = RowGroups(tmp_path / ".rows", 1 << 30), pa.schema([SCHEMA.field("last")])
    numbers = list(range(0, 3 * ROW_GROUP, PAGE_ROWS))
    works = [fetched(groups, tmp_path, path, numbers, schema)[0] for _ in range(2)]
    assert [work.rows_read for work in works] == [3 * ROW_GROUP, 0]


def test_rows_are_decoded_a_piece_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_MOST_ROWS_AT_ONCE", 3 * PAGE_ROWS)
    pieces = []
    read = fetching.read_rows

    def counted(wanted: Sequence[WantedRows], names: Sequence[str]) -> pa.Table:
        pieces.append(sum(each.pages.rows_count for each in wanted))
        return read(wanted, names)

    monkeypatch.setattr(fetching, "read_rows", counted)
    rows = narrow_rows(2 * ROW_GROUP)
    path = write_rows(tmp_path, rows, [])["path"]
    numbers = [ROW_GROUP // 2 * number + 1 for number in range(4)]
    _, found = fetched(RowGroups(tmp_path / ".rows", 0), tmp_path, path, numbers, pa.schema([SCHEMA.field("last")]))
    assert (found["last"].to_pylist(), pieces) == (numbers, [2 * PAGE_ROWS, 2 * PAGE_ROWS])
