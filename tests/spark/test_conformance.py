"""Protocol conformance: random histories of one table, written by everything that writes Delta here.

The writers are our commits by both paths, our upkeep, Spark's statements and maintenance, delta-rs's compaction, and
foreign commits in between; commits and upkeep crash. Keys are one whole number, a text and a decimal, or texts that
may be NULL. After every step delta-rs, Polars and DuckDB must read the oracle's rows of the newest version and of an
older one. Spark is slow, so it reads both after every twentieth step (`just conformance`: every eighth), and the
newest after its own steps and at the end. Polars and DuckDB read through deltalake here: Polars scans the files that
deltalake names, DuckDB takes the rows of deltalake's scan. So two programs read Delta's log, deltalake and Spark
(docs/readers.md).

A history has 40 steps. CI runs 3 seeds, to which each operation, and each place of a crash, is dealt at least once;
`just nightly` runs 20 seeds, and `just conformance` 200. The summary of the test run shows how often each operation
ran, and where commits crashed (tests/fix_conformance.py).
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from cdc_views import faults
from cdc_views.config import INTERPRETED, UpkeepSettings
from cdc_views.errors import ForeignCommit
from cdc_views.store.delta_log import state
from cdc_views.store.delta_log.entries import Action, put_entry
from cdc_views.store.delta_log.features import check_features
from cdc_views.store.reading import scan
from cdc_views.store.storage import durable
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from cdc_views.store.upkeep.vacuum import files_of
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse

SEEDS: Final = int(os.environ.get("CDC_VIEWS_CONFORMANCE_SEEDS", "3"))
STEPS: Final = 40
AT_ONCE: Final = 3  # seeds that share the session; the machine waits for the disk and for Spark's planning
SPARK_READS_EVERY: Final = int(os.environ.get("CDC_VIEWS_CONFORMANCE_SPARK", "20"))
KEYS: Final = 120
SETTINGS: Final = UpkeepSettings(
    merged_files=3, checkpoint_versions=6, sweep_versions=6, keep_hours=0, target_mb=1, deleted_part=0.25
)

Row = tuple[int, str | None, int]
Model = dict[int, Row]


@dataclass(frozen=True)
class Shape:
    """Key columns beside `id`, and the values that they have for each id, none twice; without any, `id` is the key."""

    columns: tuple[tuple[str, pa.DataType], ...]
    values: Callable[[int], tuple[Any, ...]]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("id", pa.int64()), *self.columns, ("name", pa.string()), ("n", pa.int64())])

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns) or ("id",)

    def rows(self, model: Model) -> list[tuple[Any, ...]]:
        return [(key, *self.values(key), name, n) for key, name, n in model.values()]

    def table_of(self, model: Model) -> pa.Table:
        rows, schema = self.rows(model), self.schema
        arrays = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(schema)]
        return pa.table(arrays, schema=schema)


SHAPES: Final = (
    Shape((), lambda key: ()),
    Shape(
        (("a", pa.string()), ("b", pa.decimal128(20, 2))),
        lambda key: ("é" * (key % 3) + str(key // 30), Decimal(key // 3 % 10 - 5) / 100),
    ),
    Shape(
        (("a", pa.string()), ("b", pa.string())),
        lambda key: ("k" * 9 + str(key // 3), (None, "", "NULL")[key % 3]),
    ),
)
# Where a commit may crash: in the middle of a file of new rows, of what says which rows vanish, and of the entry's
# draft; or with all files there before the entry.
PLACES: Final = ("data file", "vanishing rows", "before the entry", "entry")
# These steps of every history are crashes in a commit. Their places follow from the seed, so that three seeds have all.
# By then there are rows that a commit can change.
CRASH_STEPS: Final = (34, 39)


_armed = threading.local()


class Crash(BaseException):
    """The process ends here."""


class History:
    """One table, what each of its versions must hold, and everything that may be done to it."""

    def __init__(self, seed: int, root: Path, spark: SparkSession) -> None:
        self.seed, self.root, self.table = seed, root, root / "t"
        self.chance = random.Random(seed)
        self.shape = SHAPES[seed % len(SHAPES)]
        self.spec = TableSpec("t", "t", self.shape.schema, self.shape.key, "plain" if seed % 5 == 4 else "vectors")
        self.session = spark.newSession()
        self.session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        self.session.conf.set("spark.databricks.delta.snapshotPartitions", "1")
        self.session.conf.set("spark.sql.shuffle.partitions", "1")
        # VACUUM lists files in so many tasks, ten thousand unless one says so.
        self.session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
        if seed % 4:  # a fifth of the time of a suite of small statements
            for name, value in INTERPRETED.items():
                self.session.conf.set(name, value)
        self.duckdb = duckdb.connect(config={"threads": 1})
        self.attempt = 1
        self.start()
        self.version = self.warehouse.create(self.spec)
        self.models: dict[int, Model] = {self.version: {}}
        self.oldest = self.version
        self.done: list[str] = []
        self.crashed: list[str] = []

    def start(self) -> None:
        """What a new process knows: nothing."""
        self.warehouse = Warehouse(self.root, self.session)
        self.by_spark = Warehouse(self.root, self.session, allow_direct=False)
        self.upkeep = TableUpkeep(self.root, self.spec, SETTINGS)

    @property
    def model(self) -> Model:
        return self.models[self.version]

    @property
    def sql_name(self) -> str:
        return f"delta.`{self.table}`"

    def run(self) -> None:
        with self.duckdb:
            self.run_steps()

    def run_steps(self) -> None:
        names = list(OPERATIONS)
        weights = [WEIGHTS.get(name, 1) for name in names]
        self.step("direct")
        for number in range(1, STEPS):
            # Six of each history are dealt out, so that three seeds have all 18 of them.
            dealt = names[(self.seed * 6 + number // 5) % len(names)]
            chosen = dealt if number % 5 == 4 else self.chance.choices(names, weights)[0]
            self.step("crash_in_commit" if number in CRASH_STEPS else chosen)
        self.keep_up()
        self.oldest = self.version
        self.upkeep.sweep(self.oldest)
        self.read("the end", self.version, [*READERS])
        self.assert_no_orphans()
        check_features(DeltaTable(self.table), "t", self.spec.layout)

    def step(self, name: str) -> None:
        self.done.append(name)
        try:
            OPERATIONS[name](self)
        except Exception as error:
            raise AssertionError(f"seed {self.seed}: {name} failed after {', '.join(self.done)}") from error
        newest = DeltaTable(str(self.table)).version()
        assert newest == self.version, f"seed {self.seed}: version {newest} after {', '.join(self.done)}"
        is_sparks_turn = len(self.done) % SPARK_READS_EVERY == 0
        is_last = len(self.done) == STEPS  # Spark reads the newest at the end
        without_spark = [*READERS][:-1]
        is_by_spark = name in BY_SPARK or (is_sparks_turn and not is_last)
        self.read(name, self.version, [*READERS] if is_by_spark else without_spark)
        self.read(name, self.older(), [*READERS] if is_sparks_turn else without_spark)

    def older(self) -> int:
        """Some version that can still be read."""
        return self.chance.choice([each for each in self.models if each >= self.oldest])

    def read(self, step: str, version: int, readers: list[str]) -> None:
        wanted, schema = sorted(self.shape.rows(self.models[version])), self.shape.schema
        for name in readers:
            found = READERS[name](self, version).select(schema.names).cast(schema)
            rows = sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))
            assert rows == wanted, (
                f"seed {self.seed}: {name} reads {len(rows)} rows of version {version}, wanted {len(wanted)}; "
                f"after {step}, having done {', '.join(self.done)}"
            )

    def orphans(self) -> set[Path]:
        """Files that the newest version does not name; it names none that is not there."""
        assert self.upkeep.catch_up(self.version)
        files = {file for file in self.table.iterdir() if file.is_file() and not file.name.startswith(".")}
        named = files_of(self.table, self.upkeep.files)
        assert named <= files, f"seed {self.seed}: {len(named - files)} files are gone after {', '.join(self.done)}"
        return files - named

    def assert_no_orphans(self) -> None:
        orphans = self.orphans()
        assert not orphans, f"seed {self.seed}: {len(orphans)} orphans after {', '.join(self.done)}"

    def advance(self, model: Model, by: int = 1) -> None:
        for _ in range(by):
            self.version += 1
            self.models[self.version] = model

    def keep_up(self) -> None:
        """All that upkeep does, as far as it is due."""
        assert self.upkeep.catch_up(self.version)
        while files := self.upkeep.files_due():
            assert self.upkeep.compact(files, Stamp(1, self.attempt, "0/1")) == self.version + 1
            self.advance(self.model)
        if self.upkeep.is_checkpoint_due():
            self.upkeep.checkpoint()
        self.upkeep.sweep(self.oldest)

    def changes(self) -> tuple[Changes, Model]:
        chance, before = self.chance, self.model
        new = {key: self.row(key) for key in chance.sample(range(KEYS), chance.choice([1, 5, 30]))}
        gone = [key for key in before if key not in new and chance.random() < 0.1]
        deleted = self.shape.table_of({key: before[key] for key in gone}).select(self.shape.key) if gone else None
        after = {key: row for key, row in before.items() if key not in gone} | new
        return Changes(deleted, self.shape.table_of(new), all_new=not before), after

    def row(self, key: int) -> Row:
        return key, self.chance.choice([None, "", "é", "x" * 40]), self.chance.randrange(10**6)

    def stamp(self) -> Stamp:
        self.attempt += 1
        return Stamp(1, self.attempt, "0/1")

    # ---- ours

    def direct(self) -> None:
        changes, after = self.changes()
        self.warehouse.commit(self.spec, self.version, changes, self.stamp())
        self.advance(after)

    def through_spark(self) -> None:
        changes, after = self.changes()
        self.by_spark.commit(self.spec, self.version, changes, self.stamp())
        self.advance(after)

    def upkeep_of_ours(self) -> None:
        self.oldest = max(self.oldest, self.version - 8)
        self.keep_up()

    def fence(self) -> None:
        self.warehouse.fence("t", self.stamp())
        self.advance(self.model)

    def restart(self) -> None:
        self.start()
        self.direct()

    def crash_in_commit(self) -> None:
        """Somewhere before the version counts: files are there, whole or half, and no version names them."""
        changes, _ = self.changes()
        place, step = self.chance.randrange(len(PLACES)), len(self.done) - 1
        if step in CRASH_STEPS:
            place = (self.seed + 2 * CRASH_STEPS.index(step)) % len(PLACES)
        with pytest.raises(Crash) as crash, crashing(place=place):
            self.warehouse.commit(self.spec, self.version, changes, self.stamp())
        self.crashed.append(str(crash.value))
        self.start()

    def crash_in_upkeep(self) -> None:
        """At some point of it that is reached."""
        with suppress(Crash), crashing(points=self.chance.randrange(4)):
            self.upkeep_of_ours()
        newest = DeltaTable(str(self.table)).version()
        self.advance(self.model, newest - self.version)
        self.start()

    def foreign_before_ours(self) -> None:
        """Somebody appends between two of our versions: ours is refused, and theirs stays."""
        changes, _ = self.changes()
        key = KEYS + self.version
        row = (key, None, key)
        write_deltalake(str(self.table), self.shape.table_of({key: row}), mode="append")
        warehouse = self.chance.choice([self.warehouse, self.by_spark])
        with pytest.raises(ForeignCommit):
            warehouse.commit(self.spec, self.version, changes, self.stamp())
        self.advance({**self.model, key: row})

    # ---- Spark's

    def sql(self, statement: str) -> None:
        self.session.sql(statement.replace("TABLE_", self.sql_name)).collect()
        newest = DeltaTable(str(self.table)).version()
        self.advance(self.model, newest - self.version)

    def merge(self) -> None:
        new = {key: self.row(key) for key in self.chance.sample(range(KEYS), 5)}
        before = self.model
        rows = ", ".join(f"({', '.join(map(literal, row))})" for row in self.shape.rows(new))
        is_same = " AND ".join(f"t.{name} <=> s.{name}" for name in self.shape.key)
        self.sql(
            f"MERGE INTO TABLE_ t USING (SELECT * FROM VALUES {rows} AS v({', '.join(self.shape.schema.names)})) s "
            f"ON {is_same} "
            "WHEN MATCHED AND s.n % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        gone = {key for key, row in new.items() if key in before and row[2] % 3 == 0}
        after = {key: row for key, row in (before | new).items() if key not in gone}
        self.models[self.version] = after

    def update(self) -> None:
        part, before = self.chance.randrange(7), self.model
        self.sql(f"UPDATE TABLE_ SET n = n + 1 WHERE id % 7 = {part}")
        self.models[self.version] = {
            key: (key, name, n + (key % 7 == part)) for key, (_, name, n) in before.items()
        }  # fmt: skip

    def delete(self) -> None:
        part, before = self.chance.randrange(11), self.model
        self.sql(f"DELETE FROM TABLE_ WHERE id % 11 = {part}")
        self.models[self.version] = {key: row for key, row in before.items() if key % 11 != part}

    def optimize(self) -> None:
        self.sql("OPTIMIZE TABLE_")

    def purge(self) -> None:
        self.sql("REORG TABLE TABLE_ APPLY (PURGE)")

    def vacuum(self) -> None:
        """Spark's takes what a crash has left, and all that only older versions name."""
        self.crash_in_commit()
        assert self.orphans()
        self.sql("VACUUM TABLE_ RETAIN 0 HOURS")
        self.oldest = self.version
        self.assert_no_orphans()

    def restore(self) -> None:
        version = self.older()
        rows = self.models[version]
        self.sql(f"RESTORE TABLE TABLE_ TO VERSION AS OF {version}")
        self.models[self.version] = rows

    def checkpoint_of_spark(self) -> None:
        log = self.session._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]
        log.forTable(self.session._jsparkSession, str(self.table)).checkpoint()

    # ---- delta-rs's

    def checkpoint_of_delta_rs(self) -> None:
        DeltaTable(str(self.table)).create_checkpoint()

    def compaction_of_delta_rs(self) -> None:
        DeltaTable(str(self.table)).optimize.compact()
        newest = DeltaTable(str(self.table)).version()
        self.advance(self.model, newest - self.version)


def literal(value: Any) -> str:
    """A value in Spark's SQL."""
    if value is None:
        return "NULL"
    return repr(value) if isinstance(value, str) else f"{value}{'L' if isinstance(value, int) else 'BD'}"


@contextmanager
def crashing(*, place: int | None = None, points: int | None = None) -> Iterator[None]:
    """Let this thread crash at a place of a commit, or the next one that it has; or at a fault point after so many."""
    _armed.place, _armed.points = place, points
    try:
        yield
    finally:
        _armed.place, _armed.points = None, None


def point(name: str) -> None:
    points = getattr(_armed, "points", None)
    if points is not None:
        _armed.points = points - 1
        if not points:
            raise Crash(name)


def crash_at(place: str) -> bool:
    """Whether this thread is to crash here."""
    wanted = getattr(_armed, "place", None)
    return wanted is not None and PLACES.index(place) >= wanted


_write, _sync = durable.write, durable.sync
_WRITTEN: Final = {".parquet": "data file", ".bin": "vanishing rows", ".tmp": "entry"}


def write_or_crash(file: Path, content: bytes | memoryview) -> None:
    place = _WRITTEN[file.suffix]
    if not crash_at(place):
        _write(file, content)
        return
    # A draft of ours is removed when an error comes; a crash leaves it.
    left = file.with_name(f".left-{file.name[1:]}") if place == "entry" else file
    left.write_bytes(content[: len(content) // 2])
    raise Crash(place)


def sync_or_crash(file: Path) -> None:
    """Rows that are kept in a new file, in a table of layout `plain`, are written before."""
    if file.suffix == ".parquet" and crash_at("vanishing rows"):
        raise Crash("vanishing rows")
    _sync(file)


def put_entry_or_crash(table: Path, version: int, actions: Sequence[Action]) -> None:
    if crash_at("before the entry"):
        raise Crash("before the entry")
    put_entry(table, version, actions)


@pytest.fixture(scope="module", autouse=True)
def crashes() -> Iterator[None]:
    """Crashes of one thread: the others work on other tables."""
    with (
        patch.object(faults, "point", point),
        patch.object(state, "put_entry", put_entry_or_crash),
        patch.object(durable, "write", write_or_crash),
        patch.object(durable, "sync", sync_or_crash),
        patch.object(durable, "_is_on", False),
    ):
        yield


def by_delta_rs(history: History, version: int) -> pa.Table:
    return pa.table(DeltaTable(str(history.table), version=version).scan())


def by_polars(history: History, version: int) -> pa.Table:
    return polars.scan_delta(str(history.table), version=version).collect().to_arrow()


def by_duckdb(history: History, version: int) -> pa.Table:
    with history.duckdb.cursor() as database:
        database.register("t", scan(history.root, "t", version))
        return database.sql("SELECT * FROM t").to_arrow_table()


def by_spark(history: History, version: int) -> pa.Table:
    reader = history.session.read.format("delta")
    # Spark rebuilds the state of a version that is named, also of the newest.
    asked = reader if version == history.version else reader.option("versionAsOf", version)
    return asked.load(str(history.table)).toArrow()


# Spark is the last one: it does not read after every step.
READERS: Final = {"delta-rs": by_delta_rs, "polars": by_polars, "duckdb": by_duckdb, "spark": by_spark}
OPERATIONS: Final[dict[str, Callable[[History], None]]] = {
    "direct": History.direct,
    "through_spark": History.through_spark,
    "upkeep": History.upkeep_of_ours,
    "fence": History.fence,
    "restart": History.restart,
    "crash_in_commit": History.crash_in_commit,
    "crash_in_upkeep": History.crash_in_upkeep,
    "foreign_before_ours": History.foreign_before_ours,
    "merge": History.merge,
    "update": History.update,
    "delete": History.delete,
    "optimize": History.optimize,
    "purge": History.purge,
    "vacuum": History.vacuum,
    "restore": History.restore,
    "checkpoint_of_spark": History.checkpoint_of_spark,
    "checkpoint_of_delta_rs": History.checkpoint_of_delta_rs,
    "compaction_of_delta_rs": History.compaction_of_delta_rs,
}
BY_SPARK: Final = {"through_spark", "merge", "update", "delete", "optimize", "purge", "vacuum", "restore"}
WEIGHTS: Final = {"direct": 40, "upkeep": 6, "crash_in_upkeep": 3, "crash_in_commit": 2, "restart": 2, "fence": 2,
                  "foreign_before_ours": 2, "compaction_of_delta_rs": 2, "checkpoint_of_delta_rs": 2,
                  **dict.fromkeys([*BY_SPARK, "checkpoint_of_spark"], 0.15), "through_spark": 0.8}  # fmt: skip


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_history_is_read_alike_by_every_reader(
    first: int, tmp_path: Path, spark: SparkSession, conformance: dict[str, int]
) -> None:
    histories = [
        History(seed, tmp_path / str(seed), spark) for seed in range(first, min(first + AT_ONCE, SEEDS))
    ]  # fmt: skip
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [pool.submit(history.run) for history in histories]
    for name in OPERATIONS:
        conformance[name] = conformance.get(name, 0) + sum(history.done.count(name) for history in histories)
    for place in PLACES:
        count = sum(history.crashed.count(place) for history in histories)
        conformance[f"crash: {place}"] = conformance.get(f"crash: {place}", 0) + count
    for run in runs:
        run.result()


def test_every_operation_ran(conformance: dict[str, int]) -> None:
    assert all(conformance.get(name) for name in [*OPERATIONS, *(f"crash: {place}" for place in PLACES)])
