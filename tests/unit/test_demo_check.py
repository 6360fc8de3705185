"""The demo's check fails for every kind of difference, in mirrors and views, and names table and key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_views.demo.check import POSTGRES_SQL
from cdc_views.demo.data import SIZES
from cdc_views.testing.postgres import compare as comparing
from cdc_views.testing.postgres.compare import Difference, ExpectedRows, Published, compare, describe, read_published

MIRROR, VIEW = "public.items", "totals"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

Row = dict[str, Any]

ITEMS: list[Row] = [
    {"order_id": 1, "line": 1, "price": Decimal("1.50"), "gift": True, "tags": ["a", None], "at": NOON, "due": None},
    {"order_id": 1, "line": 2, "price": None, "gift": None, "tags": None, "at": NOON, "due": date(2026, 1, 2)},
    {"order_id": 2, "line": 1, "price": Decimal("0.00"), "gift": False, "tags": [], "at": None, "due": None},
]
TOTALS: list[Row] = [{"user_id": 7, "amount": Decimal("1.50")}, {"user_id": 8, "amount": None}]

ITEM_TYPES = pa.schema(
    {
        "order_id": pa.int64(),
        "line": pa.int32(),
        "price": pa.decimal128(10, 2),
        "gift": pa.bool_(),
        "tags": pa.list_(pa.string()),
        "at": pa.timestamp("us", "UTC"),
        "due": pa.date32(),
    }
)
TOTAL_TYPES = pa.schema({"user_id": pa.int64(), "amount": pa.decimal128(18, 2)})


@dataclass(frozen=True)
class Version:
    path: str
    version: int
    status: str = "live"


def answers() -> list[tuple[str, ExpectedRows]]:
    """What Postgres would say, with other time zones and other trailing zeros than in the tables."""
    items = [{**row, "at": row["at"] and row["at"].astimezone(timezone(timedelta(hours=2)))} for row in ITEMS]
    totals = [{**row, "amount": row["amount"] and row["amount"].normalize()} for row in TOTALS]
    return [
        (MIRROR, ExpectedRows(("order_id", "line"), tuple(ITEMS[0]), [tuple(row.values()) for row in reversed(items)])),
        (VIEW, ExpectedRows(("user_id",), tuple(TOTALS[0]), [tuple(row.values()) for row in totals])),
    ]


def published(root: Path, name: str = "", change: Callable[[list[Row]], object] = len) -> dict[str, Version]:
    """Write both tables, with a change in the one that is named."""
    for table, rows, types in ((MIRROR, ITEMS, ITEM_TYPES), (VIEW, TOTALS, TOTAL_TYPES)):
        written = [dict(row) for row in rows]
        if table == name:
            change(written)
        write_deltalake(str(root / table), pa.Table.from_pylist(written, schema=types))
    return {table: Version(table, 0) for table in (MIRROR, VIEW)}


def differences(root: Path, tables: Mapping[str, Published], said: list[tuple[str, ExpectedRows]]) -> list[Difference]:
    """What the exact comparison finds."""
    wanted = dict(said)
    return comparing.differences(
        tables,
        wanted,
        lambda names: {name: compare(name, wanted[name], read_published(root, tables[name])) for name in names},
    )


def test_check_of_equal_tables_finds_nothing(tmp_path: Path) -> None:
    assert differences(tmp_path, published(tmp_path), answers()) == []


@pytest.mark.parametrize(
    ("name", "column", "value", "key"),
    [
        (MIRROR, "price", Decimal("1.51"), (1, 1)),
        (MIRROR, "gift", None, (1, 1)),
        (MIRROR, "tags", ["a", ""], (1, 1)),
        (MIRROR, "at", NOON + timedelta(microseconds=1), (1, 1)),
        (MIRROR, "due", date(2026, 1, 1), (1, 1)),
        (VIEW, "amount", Decimal("1.51"), (7,)),
    ],
)
def test_check_after_a_changed_cell_names_table_key_and_column(
    tmp_path: Path, name: str, column: str, value: Any, key: tuple[int, ...]
) -> None:
    tables = published(tmp_path, name, lambda rows: rows[0].update({column: value}))
    assert differences(tmp_path, tables, answers()) == [Difference(name, "different", key, (column,))]


@pytest.mark.parametrize(("name", "key"), [(MIRROR, (2, 1)), (VIEW, (8,))])
def test_check_after_a_dropped_row_names_table_and_key(tmp_path: Path, name: str, key: tuple[int, ...]) -> None:
    tables = published(tmp_path, name, lambda rows: rows.pop())
    assert differences(tmp_path, tables, answers()) == [Difference(name, "missing", key)]


@pytest.mark.parametrize(("name", "column", "key"), [(MIRROR, "line", (2, 99)), (VIEW, "user_id", (99,))])
def test_check_after_an_added_row_names_table_and_key(
    tmp_path: Path, name: str, column: str, key: tuple[int, ...]
) -> None:
    tables = published(tmp_path, name, lambda rows: rows.append({**rows[-1], column: 99}))
    assert differences(tmp_path, tables, answers()) == [Difference(name, "extra", key)]


@pytest.mark.parametrize(("name", "key"), [(MIRROR, (1, 1)), (VIEW, (7,))])
def test_check_with_a_row_twice_names_table_and_key(tmp_path: Path, name: str, key: tuple[int, ...]) -> None:
    tables = published(tmp_path, name, lambda rows: rows.append(rows[0]))
    assert differences(tmp_path, tables, answers()) == [Difference(name, "extra", key)]


def test_check_reads_the_published_version_and_not_the_newest(tmp_path: Path) -> None:
    tables = published(tmp_path)
    DeltaTable(str(tmp_path / MIRROR)).delete("line = 2")
    assert differences(tmp_path, tables, answers()) == []
    assert differences(tmp_path, {**tables, MIRROR: Version(MIRROR, 1)}, answers()) == [
        Difference(MIRROR, "missing", (1, 2))
    ]


def test_check_of_a_column_with_another_type_names_it(tmp_path: Path) -> None:
    tables = published(tmp_path)
    text = pa.Table.from_pylist(TOTALS, schema=TOTAL_TYPES).set_column(1, "amount", pa.array([1, None]))
    write_deltalake(str(tmp_path / "other"), text)
    found = differences(tmp_path, {**tables, VIEW: Version("other", 0)}, answers())
    assert found == [Difference(VIEW, "columns", (), ("amount",))]


def test_check_of_a_table_without_a_column_names_it(tmp_path: Path) -> None:
    tables = published(tmp_path)
    write_deltalake(str(tmp_path / "other"), pa.table({"user_id": [7, 8]}))
    found = differences(tmp_path, {**tables, VIEW: Version("other", 0)}, answers())
    assert found == [Difference(VIEW, "columns", (), ("amount",))]


def test_check_leaves_hidden_columns_out(tmp_path: Path) -> None:
    tables = published(tmp_path)
    hidden = pa.Table.from_pylist(TOTALS, schema=TOTAL_TYPES).append_column("_cv_hash", pa.array([1, 2]))
    write_deltalake(str(tmp_path / "other"), hidden)
    assert differences(tmp_path, {**tables, VIEW: Version("other", 0)}, answers()) == []


def test_check_without_a_published_view_says_so(tmp_path: Path) -> None:
    tables = published(tmp_path)
    del tables[VIEW]
    assert differences(tmp_path, tables, answers()) == [Difference(VIEW, "unpublished")]


def test_check_of_a_failed_view_says_so_though_its_rows_are_equal(tmp_path: Path) -> None:
    tables = {**published(tmp_path), VIEW: Version(VIEW, 0, "failed")}
    assert differences(tmp_path, tables, answers()) == [Difference(VIEW, "failed")]


def test_check_of_a_table_that_no_file_asks_about_says_so(tmp_path: Path) -> None:
    assert differences(tmp_path, published(tmp_path), answers()[:1]) == [Difference(VIEW, "unasked")]


def test_check_of_an_empty_table_that_should_have_rows_names_them_all(tmp_path: Path) -> None:
    found = differences(tmp_path, published(tmp_path, VIEW, list.clear), answers())
    assert found == [Difference(VIEW, "missing", (7,)), Difference(VIEW, "missing", (8,))]


def test_description_names_table_kind_and_the_first_keys_but_no_other_values() -> None:
    found = [Difference(MIRROR, "missing", (1, line)) for line in range(9)]
    text = describe([*found, Difference(VIEW, "different", (7,), ("amount",))])
    assert '"public.items": 9 missing: missing (1, 0); missing (1, 1); ' in text
    assert "(1, 8)" not in text
    assert '"totals": 1 different: different (7) (amount)' in text


def test_postgres_sql_has_a_file_for_every_table_and_view() -> None:
    views = {file.stem for file in POSTGRES_SQL.with_name("views").glob("*.sql")}
    tables = {f"public.{table}" for table in SIZES}
    assert {file.stem for file in POSTGRES_SQL.rglob("*.sql")} == views | tables
