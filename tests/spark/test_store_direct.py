"""Direct commits and commits through Spark: one meaning, read alike by every reader."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc_views.errors import Fenced
from cdc_views.metrics import Work, counting
from cdc_views.store.delta_log import versions
from cdc_views.store.delta_log.entries import put_entry, read_entry
from cdc_views.store.delta_log.features import check_features, table_properties
from cdc_views.store.delta_log.operations.checkpoint import newest_checkpoint
from cdc_views.store.delta_log.versions import removal
from cdc_views.store.reading import read_table, scan
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse
from tests.power_loss import Disk, found_after
from tests.seed import drawn

SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.int64()), ("y", pa.list_(pa.float64()))])),
    ]
)
SPEC = TableSpec("t", "t", SCHEMA, ("a", "b"))
LAST = 15

Place = dict[str, Any]
Row = tuple[int | None, str | None, Decimal | None, int, tuple[str | None, ...] | None, Place | None]


def table_of(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


def as_rows(table: pa.Table) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in table.cast(SCHEMA).to_pylist())


class History:
    """Random changes of one table, and what it must hold."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.stored: dict[tuple[int | None, str | None], Row] = {}

    def change(self) -> tuple[Changes, list[str]]:
        chance = self.chance
        keys = [
            (chance.choice([None, *range(8)]), chance.choice([None, "", "x", "é"])) for _ in range(chance.randint(1, 9))
        ]
        rows = {key: self._row(key) for key in keys}
        gone = [key for key in self.stored if key not in rows and chance.random() < 0.2]
        for key in gone:
            del self.stored[key]
        self.stored |= rows
        key_schema = pa.schema([SCHEMA.field("a"), SCHEMA.field("b")])
        deleted = pa.Table.from_pylist([{"a": a, "b": b} for a, b in gone], schema=key_schema) if gone else None
        return Changes(deleted, table_of(list(rows.values())), False), as_rows(table_of(list(self.stored.values())))

    def questions(self) -> list[pa.Table]:
        """Keys of all kinds to look up: some of the table's, and some by other columns."""
        chance, (a, b, amount, at, tags, place) = self.chance, zip(*self.stored.values(), strict=True)
        return [
            pa.table(
                [[1, None, 3], ["x", chance.choice(b), None]], schema=pa.schema([SCHEMA.field("a"), SCHEMA.field("b")])
            ),
            pa.table([[chance.choice(amount), None]], schema=pa.schema([SCHEMA.field("amount")])),
            pa.table(
                [[chance.choice(at)], [chance.choice(a)]], schema=pa.schema([SCHEMA.field("at"), SCHEMA.field("a")])
            ),
            pa.table([[chance.choice(tags), None]], schema=pa.schema([SCHEMA.field("tags")])),
            pa.table([[chance.choice(place), {"x": None, "y": []}]], schema=pa.schema([SCHEMA.field("place")])),
        ]

    def answer(self, keys: pa.Table) -> list[str]:
        wanted = [tuple(key.values()) for key in keys.to_pylist()]
        stored = table_of(list(self.stored.values())).to_pylist()
        found = [row for row in stored if tuple(row[name] for name in keys.column_names) in wanted]
        return as_rows(pa.Table.from_pylist(found, SCHEMA))

    def _row(self, key: tuple[int | None, str | None]) -> Row:
        chance = self.chance
        amount = chance.choice([None, Decimal(chance.randint(-(10**9), 10**9)) / 100])
        place = chance.choice([None, {"x": None, "y": []}, {"x": 1, "y": [0.5, None]}, {"x": 1, "y": None}])
        return (*key, amount, chance.randint(0, 10**15), chance.choice([None, (), ("q", None)]), place)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_random_commits_by_either_way_are_read_alike_by_every_reader(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    ways = {True: Warehouse(tmp_path, spark), False: Warehouse(tmp_path, spark, allow_direct=False)}
    history, version, taken = History(seed), ways[True].create(SPEC), dict[str, set[str]]()
    for attempt in range(1, LAST + 1):
        changes, wanted = history.change()
        by_spark = history.chance.random() < 0.3
        version = ways[not by_spark].commit(SPEC, version, changes, Stamp(1, attempt, "0/1"))
        path = str(tmp_path / "t")
        assert as_rows(read_table(tmp_path, "t", version)) == wanted
        assert as_rows(pl.scan_delta(path, version=version).collect().to_arrow()) == wanted
        for is_direct, warehouse in ways.items():
            for keys in history.questions() if is_direct or attempt == LAST else ():
                assert as_rows(warehouse.lookup(SPEC, version, keys)) == history.answer(keys)
        for way, step in ((way, step) for warehouse in ways.values() for step, way in warehouse.ways.taken().items()):
            taken.setdefault(step, set()).update(way.values())
    assert as_rows(ways[False].frame("t", version).toArrow()) == wanted
    with duckdb.connect() as database:
        database.register("found", scan(tmp_path, "t", version))
        assert as_rows(database.sql("SELECT * FROM found").to_arrow_table()) == wanted
    assert taken == {"commit": {"direct", "spark"}, "lookup": {"index", "spark"}}
    check_features(DeltaTable(tmp_path / "t"), "t")


def test_direct_commit_makes_exactly_the_next_version_and_carries_the_attempt(warehouse: Warehouse) -> None:
    base = warehouse.create(SPEC)
    stamp = Stamp(3, 7, "0/1")
    version = warehouse.commit(SPEC, base, Changes(None, table_of([(1, "x", None, 0, None, None)]), True), stamp)
    assert (version, warehouse.history.stamp_of("t", version)) == (base + 1, stamp)


def test_direct_commit_of_an_attempt_below_a_fence_is_fenced(warehouse: Warehouse) -> None:
    base = warehouse.fence("t", Stamp(1, 9, "0/1")) if warehouse.create(SPEC) == 0 else 0
    with pytest.raises(Fenced):
        warehouse.commit(SPEC, base, Changes(None, table_of([(1, "x", None, 0, None, None)]), True), Stamp(1, 8, "0/1"))


def test_power_loss_after_a_commit_through_spark_leaves_the_new_version(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "warehouse"
    root.mkdir()
    disk = Disk(root, monkeypatch)
    warehouse, rows = (
        Warehouse(root, spark, allow_direct=False),
        table_of([(n, "x", None, n, None, None) for n in range(9)]),
    )
    version = warehouse.commit(SPEC, warehouse.create(SPEC), Changes(None, rows, True), Stamp(1, 1, "0/1"))
    warehouse.commit(SPEC, version, Changes(rows.select(["a", "b"]).slice(3), rows.slice(0, 1)), Stamp(1, 2, "0/1"))
    found = found_after(disk.lose_power(), tmp_path / "after", lambda found: read_table(found, "t", 2).num_rows)
    assert set(found) == {3}


def test_power_loss_after_a_commit_through_spark_that_made_a_checkpoint_leaves_the_new_version(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As tables were made once, but for the number.
    old = {"delta.checkpointInterval": "2"}
    monkeypatch.setattr(versions, "table_properties", lambda spec: table_properties(spec) | old)
    root = tmp_path / "warehouse"
    root.mkdir()
    disk = Disk(root, monkeypatch)
    warehouse = Warehouse(root, spark, allow_direct=False)
    version = warehouse.create(SPEC)
    for attempt in (1, 2):
        rows = table_of([(attempt, "x", None, 0, None, None)])
        version = warehouse.commit(SPEC, version, Changes(None, rows, True), Stamp(1, attempt, "0/1"))
    assert newest_checkpoint(root / "t") == version
    found = found_after(disk.lose_power(), tmp_path / "after", lambda found: read_table(found, "t", version).num_rows)
    assert set(found) == {2}


def test_spark_makes_no_checkpoint_of_a_table(tmp_path: Path, spark: SparkSession, warehouse: Warehouse) -> None:
    version = warehouse.create(SPEC)
    while version < 99:
        version = warehouse.fence("t", Stamp(1, version + 1, "0/1"))
    by_spark = Warehouse(tmp_path, spark, allow_direct=False)
    rows = table_of([(1, "x", None, 0, None, None)])
    assert by_spark.commit(SPEC, version, Changes(None, rows, True), Stamp(1, 100, "0/1")) == 100
    assert newest_checkpoint(tmp_path / "t") is None


def test_view_of_one_row_is_replaced_directly(tmp_path: Path, warehouse: Warehouse) -> None:
    spec = TableSpec("one", "one", pa.schema([("total", pa.int64())]), ())
    version = warehouse.create(spec)
    for attempt, total in enumerate((5, None, 7), 1):
        rows = pa.table({"total": pa.array([total], pa.int64())})
        version = warehouse.commit(spec, version, Changes(None, rows, attempt == 1), Stamp(1, attempt, "0/1"))
    assert read_table(tmp_path, "one", version).to_pylist() == [{"total": 7}]


def test_table_with_a_file_of_unknown_rows_is_committed_to_through_spark(tmp_path: Path, warehouse: Warehouse) -> None:
    rows = table_of([(n, "x", None, n, None, None) for n in range(9)])
    warehouse.commit(SPEC, warehouse.create(SPEC), Changes(None, rows, True), Stamp(1, 1, "0/1"))
    [add] = [action["add"] for action in read_entry(tmp_path / "t", 1) if "add" in action]
    put_entry(tmp_path / "t", 2, [removal(add), {"add": {**add, "stats": None, "dataChange": False}}])
    assert warehouse.ways.taken() == {"commit": {"t": "direct"}}
    changes = Changes(rows.select(["a", "b"]).slice(0, 3), rows.slice(3, 1))
    version = warehouse.commit(SPEC, 2, changes, Stamp(1, 2, "0/1"))
    assert warehouse.ways.taken() == {"commit": {"t": "spark"}}
    assert as_rows(read_table(tmp_path, "t", version)) == as_rows(rows.slice(3))


def test_direct_commit_to_a_large_file_reads_it_back(tmp_path: Path, warehouse: Warehouse, spark: SparkSession) -> None:
    spec = TableSpec("many", "many", pa.schema([("id", pa.int64())]), ("id",))
    version = warehouse.create(spec)
    everything = pa.table({"id": pa.array(range(150_000), pa.int64())})
    version = warehouse.commit(spec, version, Changes(None, everything, True), Stamp(1, 1, "0/1"))
    gone = pa.table({"id": pa.array(range(0, 150_000, 2), pa.int64())})
    version = warehouse.commit(spec, version, Changes(gone, everything.slice(0, 0), False), Stamp(1, 2, "0/1"))
    assert read_table(tmp_path, "many", version)["id"].to_pylist() == list(range(1, 150_000, 2))
    by_spark = Warehouse(tmp_path, spark, allow_direct=False).frame("many", version)
    assert by_spark.where("id % 2 = 0 OR id > 149990").count() == 5


def test_rows_in_files_of_spark_are_found_by_page(tmp_path: Path, spark: SparkSession, warehouse: Warehouse) -> None:
    by_spark = Warehouse(tmp_path, spark, allow_direct=False)
    spec = TableSpec("pages", "pages", pa.schema([*SCHEMA][:4]), ("a",))
    rows = table_of([(n, f"text {n}", Decimal(n % 100), n, None, None) for n in range(50_000)]).select(
        spec.schema.names
    )
    version = by_spark.commit(spec, by_spark.create(spec), Changes(None, rows, True), Stamp(1, 1, "0/1"))
    assert by_spark.ways.taken() == {"commit": {"pages": "spark"}}
    wanted = rows.take(pa.array(range(7, 50_000, 10_000)))
    with counting(Work()) as work:
        found = warehouse.lookup(spec, version, wanted.select(["a"]))
    assert found.sort_by("a").equals(wanted)
    # The index reads the key of every row, and each wanted row is in another page.
    assert work.rows_read <= 50_000 + 5 * 2_000


SEVERAL_FORMS = [
    (kind, first_by_spark)
    for kind in (pa.float64(), pa.timestamp("us", tz="UTC"), pa.list_(pa.string()))
    for first_by_spark in (True, False)
]


@pytest.mark.parametrize(("kind", "first_by_spark"), drawn(2, SEVERAL_FORMS))
def test_keys_whose_values_have_several_forms_are_found_in_files_of_either_way(
    tmp_path: Path, spark: SparkSession, kind: pa.DataType, first_by_spark: bool
) -> None:
    spec = TableSpec("odd", "odd", pa.schema([("id", pa.int64()), ("x", kind), ("n", pa.int64())]), ("id", "x"))
    values = {"double": [float("nan"), 0.0], "timestamp[us, tz=UTC]": [0, 10**15]}.get(str(kind), [["a", None], []])
    others = {"double": [-float("nan"), -0.0]}.get(str(kind), values)
    ways = {by_spark: Warehouse(tmp_path, spark, allow_direct=not by_spark) for by_spark in (True, False)}
    version = ways[first_by_spark].create(spec)
    for attempt, (by_spark, found) in enumerate([(first_by_spark, values), (not first_by_spark, others)], 1):
        rows = pa.table({"id": [1, 1], "x": pa.array(found, kind), "n": [attempt] * 2}, schema=spec.schema)
        version = ways[by_spark].commit(spec, version, Changes(None, rows, attempt == 1), Stamp(1, attempt, "0/1"))
        assert ways[by_spark].ways.taken() == {"commit": {"odd": "spark" if by_spark else "direct"}}
    assert read_table(tmp_path, "odd", version)["n"].to_pylist() == [2, 2]
