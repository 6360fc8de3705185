"""The Python client: tables, queries and single rows of an epoch, without an engine and without a JVM."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import cdc_views
from cdc_views.errors import (
    BadKey,
    BadQuery,
    BadWarehouse,
    KeyNotRecorded,
    NothingPublished,
    UnknownView,
    ViewFailed,
    WarehouseUnusable,
)
from cdc_views.metrics import Work, counting
from cdc_views.serve.epochs import published
from cdc_views.serve.spark_tables import SparkTables
from cdc_views.store.delta_log import features
from cdc_views.store.files.data_files import PAGES_IN_ROW_GROUP, ROW_GROUP
from cdc_views.store.warehouse import TableSpec
from tests.unit.published import BAG, BEGIN, ORDERS, TOTALS, Published

pytestmark = pytest.mark.usefixtures("without_fsync")


@pytest.fixture
def shop(tmp_path: Path) -> Published:
    """Two epochs; the newest versions of the tables belong to neither."""
    shop = Published(tmp_path)
    shop.write(ORDERS, [(1, "a"), (2, None)])
    shop.write(TOTALS, [("ada", 1, Decimal("1.50")), (None, 1, Decimal("2.00"))])
    shop.write(BAG, [(1.0, 7, 1), (1.0, 7, 2)])
    shop.publish()
    shop.write(ORDERS, [(3, "c")], [(1,)])
    shop.publish()
    published = dict(shop.tables)
    shop.write(ORDERS, [(9, "not published")])
    shop.tables = published
    return shop


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, cdc_views; print([name for name in sys.modules if name.partition('.')[0] in sys.argv[1:]])"
    heavy = ["pyarrow", "deltalake", "duckdb", "pyspark", "pandas", "pydantic", "sqlglot", "numpy"]
    assert subprocess.check_output([sys.executable, "-c", code, *heavy], text=True) == "[]\n"


def test_commands_that_read_do_not_load_pandas() -> None:
    code = "import sys, cdc_views.cli.readers.changes, cdc_views.cli.readers.get; print('pandas' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_public_names_are_there() -> None:
    assert [name for name in cdc_views.__all__ if not hasattr(cdc_views, name)] == []
    assert not hasattr(cdc_views, "nosuch")


def test_epoch_has_number_position_time_and_tables(shop: Published) -> None:
    epoch = cdc_views.open(shop.root).epoch()
    assert (epoch.number, str(epoch.position), epoch.committed_at) == (2, "0/200", BEGIN.replace(second=2))
    assert epoch.age_s > 0
    assert {name: table.kind for name, table in epoch.tables.items()} == {
        "public.orders": "mirror", "totals": "view", "bag": "view"
    }  # fmt: skip
    assert repr(epoch) == "<epoch 2 at 0/200>"


def test_epoch_stays_when_later_ones_are_published(shop: Published) -> None:
    epoch = cdc_views.open(shop.root).epoch()
    shop.publish()
    assert epoch.query("SELECT count(*) AS n FROM orders").to_pylist() == [{"n": 2}]
    assert (epoch.number, cdc_views.open(shop.root).epoch().number) == (2, 3)


def test_table_is_the_published_version_for_every_library(shop: Published) -> None:
    table = cdc_views.open(str(shop.root)).table("public.orders")
    wanted = [{"id": 2, "note": None}, {"id": 3, "note": "c"}]
    assert sorted(table.arrow().to_pylist(), key=lambda row: row["id"]) == wanted
    assert table.arrow(["id"]).column_names == ["id"]
    with duckdb.connect() as connection:
        relation = table.duckdb(connection).order("id")
        assert (relation.columns, relation.fetchall()) == (["id", "note"], [(2, None), (3, "c")])
    assert table.polars().sort("id").collect().to_dicts() == wanted
    assert sorted(table.pandas()["id"]) == [2, 3]


def test_whole_numbers_beside_null_are_exact_in_pandas(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    spec = TableSpec("big", "views/big/a", pa.schema([("id", pa.int64()), ("n", pa.int64())]), ("id",))
    shop.write(spec, [(1, 2**53 + 1), (2, None)])
    shop.publish()
    frame = cdc_views.open(tmp_path).table("big").pandas().sort_values("id")
    assert frame["n"].isna().tolist() == [False, True]
    assert frame["n"].iloc[0] == 2**53 + 1


@pytest.mark.parametrize("columns", [["id", "t", "s", "l", "m"], ["s"]])
def test_whole_numbers_within_others_are_exact_in_pandas(tmp_path: Path, columns: list[str]) -> None:
    big = 2**53 + 1
    row = {"id": 1, "t": 5, "s": {"n": big}, "l": [big, None], "m": [("k", big), ("j", None)]}
    types = {
        "id": pa.int64(),
        "t": pa.int8(),
        "s": pa.struct([("n", pa.int64())]),
        "l": pa.list_(pa.int64()),
        "m": pa.map_(pa.string(), pa.int64()),
    }
    schema = pa.schema([(name, types[name]) for name in columns])
    shop = Published(tmp_path)
    nulls = dict.fromkeys(columns) | {"id": 2}
    shop.write(
        TableSpec("v", "views/v/a", schema, (columns[0],)), [[each[name] for name in columns] for each in (row, nulls)]
    )
    shop.publish()
    frame = cdc_views.open(tmp_path).table("v").pandas()
    assert list(frame) == columns
    assert {name: row[name] for name in columns} in frame.to_dict("records")


def test_tables_that_would_be_one_temporary_view_are_told(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(replace(ORDERS, name="sales.items", path="mirrors/sales/items/a"), [(1, "a")])
    shop.write(replace(ORDERS, name="public.Sales_items", path="mirrors/public/Sales_items/a"), [(1, "b")])
    shop.publish()
    with pytest.raises(BadQuery, match='would both be the temporary view "Sales_items"'):
        SparkTables(cast(SparkSession, None), tmp_path).create_temp_views()


def test_hidden_columns_are_not_shown(shop: Published) -> None:
    table = cdc_views.open(shop.root).table("bag")
    assert table.schema.names == table.arrow().column_names == table.polars().collect().columns == ["x"]
    with duckdb.connect() as connection:
        assert table.duckdb(connection).columns == ["x"]


@pytest.mark.parametrize("hidden", ["nosuch", "_cv_hash"])
def test_column_that_is_unknown_or_hidden_is_an_error(shop: Published, hidden: str) -> None:
    table = cdc_views.open(shop.root).table("bag")
    with pytest.raises(BadQuery, match=f'"bag" has no column {hidden}'):
        table.arrow(["x", hidden])
    with pytest.raises(BadQuery, match="columns are x"):
        next(table.batches(10, [hidden]))
    assert table.arrow(["x"]).column_names == ["x"]


def test_table_that_is_unknown_or_has_failed_is_an_error(shop: Published) -> None:
    wh = cdc_views.open(shop.root)
    shop.publish(totals="failed")
    with pytest.raises(UnknownView, match='has no table "nosuch"'):
        wh.table("nosuch")
    with pytest.raises(ViewFailed):
        wh.get("totals", "ada", 1)


def test_control_log_is_not_read_for_a_name_without_a_table(shop: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    wh = cdc_views.open(shop.root)
    monkeypatch.setattr(published, "read_control", None)
    with pytest.raises(UnknownView):
        wh.table("nosuch")


def test_warehouse_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WarehouseUnusable):
        cdc_views.open(tmp_path / "file")
    with pytest.raises(NothingPublished):
        cdc_views.open(tmp_path / "nosuch").epoch()


def test_warehouse_at_a_file_url_is_its_folder(shop: Published, tmp_path: Path) -> None:
    assert cdc_views.open(shop.root.as_uri()).epoch().number == shop.epoch
    spaced = tmp_path / "a b"
    spaced.mkdir()
    for url in (spaced.as_uri(), f"file:{tmp_path}/a%20b", f"FILE://localhost{tmp_path}/a%20b"):
        assert cdc_views.open(url).warehouse == spaced


@pytest.mark.proves(
    wrong="A reader is given a URL other than that of a local folder.",
    seen="`BadWarehouse` with the scheme; nothing of the URL is shown, since it may have a password",
    do="Give the folder, or its `file:` URL. Over HTTP, send requests ([http.md](http.md)).",
)
@pytest.mark.parametrize(
    ("url", "hint"),
    [("s3://ada:secret@bucket/lake", "object stores"), ("http://127.0.0.1:8080", "GET /query"),
     ("https://shop/", "GET /query"), ("file://server/share", "no host")],
)  # fmt: skip
def test_warehouse_at_another_url_is_refused(url: str, hint: str) -> None:
    with pytest.raises(BadWarehouse, match='found a URL of scheme "') as caught:
        cdc_views.open(url)
    assert hint in str(caught.value.hint)
    assert "secret" not in str(caught.value)


def test_path_that_looks_like_a_url_is_a_path() -> None:
    assert cdc_views.open(Path("s3:/lake")).warehouse == Path("s3:/lake").absolute()


# Rows by key


def test_get_finds_the_row_of_the_epoch(shop: Published) -> None:
    wh = cdc_views.open(shop.root)
    assert wh.get("totals", "ada", 1) == {"owner": "ada", "day": 1, "amount": Decimal("1.50")}
    assert wh.get("totals", None, 1) == {"owner": None, "day": 1, "amount": Decimal("2.00")}
    assert wh.get("totals", "ada", 2) is None
    assert [wh.get("public.orders", number) for number in (1, 3, 9)] == [None, {"id": 3, "note": "c"}, None]
    assert wh.get("public.orders", 1, at=1) == {"id": 1, "note": "a"}
    assert wh.table("totals").key == ("owner", "day")


def test_get_follows_the_epochs(shop: Published) -> None:
    wh = cdc_views.open(shop.root)
    assert wh.get("public.orders", 3) == {"id": 3, "note": "c"}
    shop.write(TOTALS, [("ada", 1, Decimal("8.00"))])
    shop.publish()
    shop.write(TOTALS, [], [("ada", 1)])
    shop.publish()
    found = [wh.get("totals", "ada", 1, at=epoch) for epoch in (2, 3, 4)]
    assert [row and row["amount"] for row in found] == [Decimal("1.50"), Decimal("8.00"), None]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (("ada",), "has 2 columns, found 1 values"),
        (("ada", 1, 2), "has 2 columns, found 3 values"),
        ((1, 1), 'column "owner" of "totals": found a value of type int, wanted string'),
        (("ada", "1"), "found a value of type str, wanted int64"),
        (("ada", 1.5), "found a value of type float, wanted int64"),
        (("ada", True), "found a value of type bool, wanted int64"),
        (("ada", 1 << 63), "found a value of type int, wanted int64"),
    ],
)
def test_get_with_a_key_that_does_not_fit_is_an_error(shop: Published, key: tuple[Any, ...], message: str) -> None:
    with pytest.raises(BadKey) as raised:
        cdc_views.open(shop.root).get("totals", *key)
    assert message in raised.value.message


@pytest.mark.proves(
    wrong="The rows of a view have no key, and somebody asks for the row with a key.",
    seen="`BadKey`. The same error names the columns of the key if the number or a type of the values is wrong.",
    do="Read the view by a query, or give it a key ([views.md](views.md#keys)).",
)
def test_get_from_a_view_without_a_key_is_an_error(shop: Published) -> None:
    with pytest.raises(BadKey, match='view "bag" has no key'):
        cdc_views.open(shop.root).get("bag", 1.0)


@pytest.mark.proves(
    wrong="A row is asked for by its key, in a table that an earlier version of cdc_views created.",
    seen="`KeyNotRecorded`",
    do="Rebuild the table, as the hint says.",
)
def test_get_from_a_table_of_an_earlier_version_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "KEY", "earlier")
    shop = Published(tmp_path)
    shop.write(ORDERS, [(1, "a")])
    shop.publish()
    with pytest.raises(KeyNotRecorded, match=r'"public\.orders" was created by an earlier version'):
        cdc_views.open(tmp_path).get("public.orders", 1)


def test_get_from_a_view_of_one_row_needs_no_key(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(TableSpec("one", "views/one/a", pa.schema([("n", pa.int64())]), ()), [(5,)])
    shop.publish()
    assert cdc_views.open(tmp_path).get("one") == {"n": 5}


TYPES = {
    "bool": (pa.bool_(), True, False),
    "text": (pa.string(), "b", "a"),
    "bytes": (pa.binary(), b"\x00b", b""),
    "float": (pa.float64(), 0.0, 2.0),
    "nan": (pa.float64(), float("nan"), 1.0),
    "decimal": (pa.decimal128(12, 2), Decimal("1.10"), Decimal("1.1") + 1),
    "time": (pa.timestamp("us", tz="UTC"), datetime(2026, 1, 1, tzinfo=UTC), BEGIN),
    "null": (pa.int32(), None, 1),
}


@pytest.mark.parametrize("name", TYPES)
def test_get_by_a_key_of_every_type(tmp_path: Path, name: str) -> None:
    kind, value, other = TYPES[name]
    shop = Published(tmp_path)
    shop.write(
        TableSpec("v", "views/v/a", pa.schema([("k", kind), ("n", pa.int64())]), ("k",)), [(value, 1), (other, 2)]
    )
    shop.publish()
    wh = cdc_views.open(tmp_path)
    assert [wh.table("v").get(key)["n"] for key in (value, other)] == [1, 2]  # type: ignore[index]
    if name == "float":
        assert wh.get("v", -0.0) == {"k": 0.0, "n": 1}
    if name == "time":
        with pytest.raises(BadKey, match="of type datetime"):
            wh.get("v", datetime(2026, 1, 1))  # noqa: DTZ001 (what is tested)


def test_get_by_a_column_named_as_a_field_of_a_struct_finds_the_row(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    columns = pa.schema([("a.b", pa.int64()), ("a", pa.struct([("b", pa.int64())]))])
    shop.write(TableSpec("v", "views/v/a", columns, ("a.b",)), [(1, {"b": 5})])
    shop.publish()
    wh = cdc_views.open(tmp_path)
    # The second time, the row is found by what the first one has read.
    assert [wh.get("v", 1), wh.get("v", 1)] == [{"a.b": 1, "a": {"b": 5}}] * 2


def test_get_reads_only_row_groups_that_can_hold_the_key(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(ORDERS, [(number, None) for number in range(3 * ROW_GROUP)])
    shop.write(ORDERS, [(-1, "other file")])
    shop.publish()
    wh = cdc_views.open(tmp_path, index_mb=0)
    with counting(Work()) as work:
        assert wh.get("public.orders", ROW_GROUP + 5) == {"id": ROW_GROUP + 5, "note": None}
    assert work.rows_read == ROW_GROUP + ROW_GROUP // PAGES_IN_ROW_GROUP  # its key column, then its page
    texts = TableSpec("texts", "views/texts/a", pa.schema([("k", pa.string())]), ("k",))
    shop.write(texts, [(f"{number:05d}",) for number in range(2 * ROW_GROUP)])
    shop.publish()
    with counting(Work()) as work:
        assert wh.get("texts", "00007") == {"k": "00007"}
        assert wh.get("texts", None) is None
    assert work.rows_read == ROW_GROUP + ROW_GROUP // PAGES_IN_ROW_GROUP
    with counting(Work()) as work:
        assert wh.get("public.orders", -7) is None
    assert (work.rows_read, work.files_read) == (0, 0)
