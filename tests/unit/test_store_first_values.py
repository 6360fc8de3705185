"""The rows with the first values of a column, by the bounds of row groups: the same as those of the whole table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from cdc_views.base.python_values import plain_values
from cdc_views.config import StoreSettings
from cdc_views.metrics import Work, counting
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.files import data_files
from cdc_views.store.index import first_values
from cdc_views.store.index.fetching import RowGroups
from cdc_views.store.index.first_values import FirstValues
from cdc_views.store.warehouse import Changes, Stamp, Warehouse
from tests.samples import sample

pytestmark = pytest.mark.usefixtures("without_fsync")

Make = Callable[[int], Any]
KINDS: Final[dict[str, tuple[pa.DataType, Make]]] = {
    "number": (pa.int64(), int),
    "price": (pa.decimal128(10, 2), lambda number: Decimal(number).scaleb(-2)),
    "wide": (pa.decimal128(38, 2), lambda number: Decimal(10**30 + number).scaleb(-2)),
    "day": (pa.date32(), lambda number: date(2026, 1, 1) + timedelta(days=number)),
    "at": (pa.timestamp("us", "UTC"), lambda number: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number)),
}
SCHEMA: Final = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in KINDS.items())])
SPEC: Final = TableSpec("t", "t", SCHEMA, ("id",))


class Numbers:
    """A table with the same number in columns of every kind, or NULL, and the numbers that it must have."""

    def __init__(self, root: Path, seed: int = 0, settings: StoreSettings | None = None) -> None:
        self.chance = Random(seed)
        self.warehouse = Warehouse(root, cast(SparkSession, None), settings or StoreSettings())
        self.version = self.warehouse.create(SPEC)
        self.numbers: dict[int, int | None] = {}

    def commit(self, new: dict[int, int | None], gone: list[int] | None = None) -> None:
        rows = [
            {"id": key, **{name: None if number is None else make(number) for name, (_, make) in KINDS.items()}}
            for key, number in new.items()
        ]
        deleted = pa.table({"id": pa.array(gone, pa.int64())}) if gone else None
        changes = Changes(deleted=deleted, rows=pa.Table.from_pylist(rows, SCHEMA))
        self.version = self.warehouse.commit(SPEC, self.version, changes, Stamp(1, self.version + 2, "0/1"))
        self.numbers = {key: number for key, number in {**self.numbers, **new}.items() if key not in (gone or [])}

    def commit_at_random(self) -> None:
        keys = self.chance.sample(range(40), 12)
        values = [None, *range(-20, 20)]
        self.commit({key: self.chance.choice(values) for key in keys[:8]}, keys[8:])

    def first(self, column: str, most: int, *, is_largest: bool) -> list[Any]:
        found = self.warehouse.first_rows(SPEC, self.version, column, most, ["id"], is_largest=is_largest)
        assert found is not None
        assert found.column_names == ["id", column]
        by_key = dict(zip(found.column("id").to_pylist(), plain_values(found.column(column)), strict=True))
        assert all(self._plain(column, self.numbers[key]) == value for key, value in by_key.items())
        return sorted(by_key.values(), reverse=is_largest)

    def wanted(self, column: str, most: int, *, is_largest: bool) -> list[Any]:
        numbers = sorted((each for each in self.numbers.values() if each is not None), reverse=is_largest)
        return [self._plain(column, number) for number in numbers[:most]]

    def _plain(self, column: str, number: int | None) -> Any:
        kind, make = KINDS[column]
        return plain_values(pa.chunked_array([pa.array([None if number is None else make(number)], kind)]))[0]

    def is_right(self) -> bool:
        return all(
            self.first(column, most, is_largest=is_largest) == self.wanted(column, most, is_largest=is_largest)
            for column in KINDS
            for most in (1, 3, 100)
            for is_largest in (True, False)
        )


def check(table: Numbers) -> None:
    for _ in range(10):
        table.commit_at_random()
        assert table.is_right()


@pytest.fixture
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "ROW_GROUP", 3)


@pytest.mark.usefixtures("small_row_groups")
@pytest.mark.parametrize("seed", range(sample(2, 30)))
def test_first_values_after_random_commits_are_those_of_all_rows(tmp_path: Path, seed: int) -> None:
    table = Numbers(tmp_path, seed)
    assert table.is_right()
    check(table)


@pytest.mark.usefixtures("small_row_groups")
def test_older_version_has_its_own_first_values(tmp_path: Path) -> None:
    table = Numbers(tmp_path)
    table.commit({1: 10, 2: 20})
    before = table.version
    table.commit({2: 5})
    found = table.warehouse.first_rows(SPEC, before, "number", 1, [], is_largest=True)
    assert found is not None
    assert found.to_pylist() == [{"number": 20}]


def rows_read(table: Numbers, column: str) -> tuple[list[Any], int]:
    with counting(Work()) as work:
        found = table.first(column, 1, is_largest=True)
    return found, work.rows_read


@pytest.mark.usefixtures("small_row_groups")
@pytest.mark.parametrize("size", [300, 1_500])
def test_search_after_the_largest_value_was_removed_reads_the_same_rows_of_a_table_of_any_size(
    tmp_path: Path, size: int
) -> None:
    table = Numbers(tmp_path)
    numbers = list(range(size))
    table.chance.shuffle(numbers)
    table.commit(dict(enumerate(numbers)))
    table.commit({}, [numbers.index(size - 1)])
    found, read = rows_read(table, "number")
    assert found == [size - 2]
    assert read <= 3 * 3 + 3  # the groups of the two largest values, and once more for the column "id"


@pytest.mark.usefixtures("small_row_groups")
def test_row_group_that_lost_its_largest_values_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Numbers(tmp_path)
    table.commit({key: 10 * key for key in range(30)})
    table.commit({}, [2, 5, 8, 11, 14, 17, 20, 23, 26, 29])  # the largest value of each row group
    looked_at = list[int]()
    first = first_values._first

    def counted(group: Any, *rest: Any, **more: Any) -> Any:
        looked_at.append(group.number)
        return first(group, *rest, **more)

    monkeypatch.setattr(first_values, "_first", counted)
    assert table.first("number", 1, is_largest=True) == [280]
    table.commit({}, [28])
    looked_at.clear()
    assert table.first("number", 1, is_largest=True) == [270]
    assert looked_at == [9]


@pytest.mark.usefixtures("small_row_groups")
def test_rows_that_come_back_with_an_older_version_are_found(tmp_path: Path) -> None:
    table = Numbers(tmp_path)
    table.commit({key: key for key in range(9)})
    before, numbers = table.version, dict(table.numbers)
    table.commit({}, [8, 7, 6])
    assert table.first("number", 2, is_largest=True) == [5, 4]
    table.version, table.numbers = before, numbers
    assert table.first("number", 2, is_largest=True) == [8, 7]


def test_control_without_bounds_reads_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "ROW_GROUP", 3)
    monkeypatch.setattr(first_values, "_bounds", lambda *_: first_values._NOT_KNOWN)
    table = Numbers(tmp_path)
    table.commit({key: key for key in range(300)})
    assert rows_read(table, "number")[1] >= 300
    assert table.is_right()


@pytest.mark.usefixtures("small_row_groups")
@pytest.mark.parametrize("broken", ["bounds", "dead"])
def test_control_that_trusts_wrong_bounds_or_dead_rows_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    if broken == "bounds":
        bounds = first_values._bounds
        monkeypatch.setattr(first_values, "_bounds", lambda *given: bounds(*given)._replace(high=-(10**60)))
    else:
        first = first_values._first
        monkeypatch.setattr(first_values, "_first", lambda group, values, dead, *rest, **more: first(
            group, values, type(dead)(), *rest, **more))  # fmt: skip
    table = Numbers(tmp_path)
    with pytest.raises((AssertionError, KeyError)):  # a value that is wrong, or the key of a row that is gone
        check(table)


def test_search_that_would_decode_too_many_rows_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "ROW_GROUP", 3)
    table = Numbers(tmp_path)
    table.commit({key: key for key in range(9)})
    monkeypatch.setattr(table.warehouse._lookups._first_values, "_most_rows", 5)
    assert table.warehouse.first_rows(SPEC, table.version, "number", 1, [], is_largest=True) is not None
    assert table.warehouse.first_rows(SPEC, table.version, "number", 4, [], is_largest=True) is None


def groups(tmp_path: Path, column: pa.Array, **options: Any) -> list[Any]:
    """The bounds of a file with one column."""
    file = tmp_path / "file.parquet"
    pq.write_table(pa.table({"x": column}), file, **options)
    search = FirstValues(RowGroups(tmp_path, 1 << 20))
    return [
        (each.low, each.high, each.has_values) for each in search._bounds_of(file, pa.field("x", column.type)).groups
    ]


def test_times_for_which_python_has_no_value_have_no_bounds(tmp_path: Path) -> None:
    far = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("us", "UTC"))
    assert groups(tmp_path, far) == [(None, None, True)]


def test_file_without_statistics_has_no_bounds(tmp_path: Path) -> None:
    assert groups(tmp_path, pa.array([1, 2]), write_statistics=False) == [(None, None, True)]


def test_row_group_of_nulls_has_no_values(tmp_path: Path) -> None:
    column = pa.array([None, None, 5, None], pa.int64())
    assert groups(tmp_path, column, row_group_size=2) == [(None, None, False), (5, 5, True)]


def test_column_that_was_added_after_a_file_has_no_values_there(tmp_path: Path) -> None:
    pq.write_table(pa.table({"y": pa.array([1])}), tmp_path / "file.parquet")
    search = FirstValues(RowGroups(tmp_path, 1 << 20))
    (bounds,) = search._bounds_of(tmp_path / "file.parquet", pa.field("x", pa.int64())).groups
    assert not bounds.has_values


def test_bounds_of_a_field_of_a_struct_are_not_those_of_the_column_of_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "ROW_GROUP", 1)
    schema = pa.schema([("id", pa.int64()), ("a", pa.struct([("b", pa.int64())])), ("a.b", pa.int64())])
    spec = TableSpec("t", "t", schema, ("id",))
    warehouse = Warehouse(tmp_path, cast(SparkSession, None), StoreSettings())
    rows = pa.Table.from_pylist([{"id": key, "a": {"b": -key}, "a.b": key} for key in range(9)], schema)
    version = warehouse.commit(spec, warehouse.create(spec), Changes(None, rows), Stamp(1, 2, "0/1"))
    found = warehouse.first_rows(spec, version, "a.b", 1, ["id"], is_largest=True)
    assert found is not None
    assert found.to_pylist() == [{"id": 8, "a.b": 8}]
