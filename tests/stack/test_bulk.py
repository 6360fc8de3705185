"""A table read from its topic by Spark, in pieces as small as they get, equals the table."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.capture.types import arrow_schema
from cdc_views.engine.input.bulk import BulkReader, OnProgress, Progress
from cdc_views.engine.input.bulk_files import PIECE_OFFSETS
from cdc_views.errors import CutTooLarge, DiskFull, LogDiscontinuity, SchemaChanged, UnresolvedToast
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.kafka.topics import admin_client, end_offsets
from cdc_views.log.log import Log
from cdc_views.source.catalog import SourceTable
from cdc_views.store.reading import read_table
from cdc_views.store.warehouse import Stamp, TableSpec, Warehouse
from tests.fix_disk import SmallDisk
from tests.fix_kafka import Capture, CaptureOf
from tests.fix_postgres import Database
from tests.waiting import wait_for

NAME = TableName("public", "t")
BIG = "(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 400))"


class Bulk:
    """A warehouse with one table, which is filled from its log."""

    def __init__(
        self, spark: SparkSession, root: Path, captured: Capture, table: SourceTable,
        on_progress: OnProgress = lambda progress: None, piece_offsets: int = PIECE_OFFSETS,
    ) -> None:  # fmt: skip
        self._reader = BulkReader(spark, captured.settings.log, on_progress, piece_offsets)
        self._warehouse, self._root, self._table = Warehouse(root, spark), root, table

    def rows(self, cut: Cut, floor: Lsn | None = None) -> list[tuple[Any, ...]]:
        """All rows after the table's part of a cut; `floor` is the position of what is there already."""
        spec = TableSpec("t", "t", arrow_schema(self._table), self._table.key)
        base = self._warehouse.create(spec)
        partitions = [each for each in cut.end if each.topic.endswith(f".{self._table.name.table}")]
        start, end = ({each: side[each] for each in partitions} for side in (cut.start, cut.end))
        changes = self._reader.rows(self._table, start, end, all_new=base == 0, floor=floor)
        version = self._warehouse.commit(spec, base, changes, Stamp(1, base + 1, "0/1"))
        return sorted(tuple(row.values()) for row in read_table(self._root, "t", version).to_pylist())


def test_pieces_of_few_offsets_and_of_many_give_the_table(
    spark: SparkSession, database: Database, capture: CaptureOf, tmp_path: Path
) -> None:
    database.execute(
        'CREATE TABLE t (a int, b text, "C" numeric(8,2), PRIMARY KEY (a, b))', "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT n, 'b', n FROM generate_series(1, 20) n",
    )  # fmt: skip
    captured = capture("public.t", partitions=3)
    captured.start()
    chance = random.Random(4)
    with database.connect() as connection:
        for _ in range(60):
            key = chance.randint(1, 25)
            connection.execute("DELETE FROM t WHERE a = %s", (key,))
            if chance.random() < 0.6:
                connection.execute("INSERT INTO t VALUES (%s, 'b', 1)", (key,))
            connection.execute("UPDATE t SET b = b || 'x' WHERE a = %s", (chance.randint(1, 25),))
    log = captured.log()
    cut = log.cut(log.begin(), None)
    total = sum(end - cut.start[each] for each, end in cut.end.items() if each in log.partitions_of([NAME]))
    [table] = captured.tables().values()
    expected = sorted(database.execute('SELECT a, b, "C" FROM t'))
    for size in (11, PIECE_OFFSETS):
        seen: list[Progress] = []
        bulk = Bulk(spark, tmp_path / str(size), captured, table, seen.append, size)
        assert bulk.rows(cut) == expected, size
        assert (seen[-1].done, seen[-1].total) == (total, total)
        assert not (tmp_path / str(size) / "t" / ".progress").exists()


def test_cut_leaves_a_long_table_to_spark_and_holds_the_others(
    spark: SparkSession, database: Database, capture: CaptureOf, tmp_path: Path
) -> None:
    for name in ("t", "u"):
        database.execute(f"CREATE TABLE {name} (a int PRIMARY KEY, b int)", f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    captured = capture("public.t", "public.u", bulk_offsets=10)
    captured.start()
    database.execute("INSERT INTO t SELECT n, n FROM generate_series(3, 20) n", "UPDATE u SET b = 3 WHERE a = 1")
    database.execute("UPDATE t SET a = 0 WHERE a = 20", "DELETE FROM t WHERE a = 2", "UPDATE t SET b = 5 WHERE a < 4")
    wait_for(lambda: read_ends(captured) >= 4 + 18 + 1 + 3 + 2 + 2, 60)
    log = captured.log(bulk=[NAME])
    cut = log.cut(log.begin(), None)
    assert cut.bulk == {NAME}
    assert {log.table_of(record.topic).table for record in log.records(cut)} == {"u"}
    table = captured.tables()[NAME]
    bulk = Bulk(spark, tmp_path, captured, table)
    assert bulk.rows(cut) == sorted(database.execute("SELECT a, b FROM t"))
    log.require_repeatable(cut)
    again = captured.log(bulk=[NAME])
    assert {log.table_of(record.topic).table for record in again.records(cut)} == {"u"}
    database.execute("UPDATE t SET b = 6 WHERE a = 0")
    following = log.cut(cut.end, cut.position)
    assert (following.bulk, [record.value["after"] for record in log.records(following) if record.value]) == (
        frozenset(),
        [{"a": 0, "b": 6}],
    )
    assert bulk.rows(following, cut.position) == sorted(database.execute("SELECT a, b FROM t"))
    # More than is to be held, in one transaction and while the log is being read.
    database.execute(
        "WITH gone AS (DELETE FROM t WHERE a % 5 = 0), moved AS (UPDATE t SET a = a + 100 WHERE a % 5 = 1) "
        "UPDATE t SET b = -1 WHERE a % 5 > 1",
        "UPDATE u SET b = 4 WHERE a = 1",
    )
    large = log.cut(following.end, following.position)
    assert large.bulk == {NAME}
    assert {log.table_of(record.topic).table for record in log.records(large)} == {"u"}
    assert bulk.rows(large, following.position) == sorted(database.execute("SELECT a, b FROM t"))
    log.require_repeatable(large)
    with pytest.raises(LogDiscontinuity, match="wanted at least the published position"):
        bulk.rows(large, Lsn(large.position + 1))


def test_first_cut_that_ends_before_a_ddl_is_held(database: Database, capture: CaptureOf) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 20)")
    captured = capture("public.t", bulk_offsets=10)
    captured.start()
    database.execute("INSERT INTO t VALUES (21)", "ALTER TABLE t ADD COLUMN b int", "INSERT INTO t VALUES (22, 1)")
    log = captured.log(bulk=[NAME])
    cut = log.cut(log.begin(), None)
    assert cut.bulk == frozenset()
    assert {record.key["a"] for record in log.records(cut)} == set(range(1, 22))


TRANSACTION = """WITH many AS (INSERT INTO t SELECT {0} * 100 + n, repeat('x', 300) FROM generate_series(1, 100) n)
INSERT INTO u VALUES ({0})"""


def cuts_before_a_ddl(log: Log, last: Cut) -> list[Cut]:
    """The cuts that follow another one, of none of which Spark reads a part."""
    cuts = list[Cut]()
    with suppress(SchemaChanged):
        while True:
            last = log.cut(last.end, last.position, last.committed_at)
            assert last.bulk == frozenset()
            cuts.append(last)
    return cuts


def test_more_than_the_driver_may_hold_is_cut_in_parts_of_whole_transactions(
    database: Database, capture: CaptureOf
) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY, b text)", "CREATE TABLE u (a int PRIMARY KEY)")
    captured = capture("public.t", "public.u", toast="lookup")
    captured.start()
    logs = {
        "a lookup table": captured.log(driver_mb=1),
        "before a DDL": captured.log(captured.settings.source.tables, driver_mb=1),
    }
    first = {name: log.cut(log.begin(), None) for name, log in logs.items()}
    for number in range(8):
        database.execute(TRANSACTION.format(number))
    database.execute("ALTER TABLE t ADD COLUMN c int")
    for name, log in logs.items():
        cuts = cuts_before_a_ddl(log, first[name])
        parts = [[(log.table_of(record.topic).table, record.key["a"]) for record in captured.log().records(cut)]
                 for cut in cuts]  # fmt: skip
        assert len(parts) > 2, name
        assert all(sum(100 if table == "u" else -1 for table, _ in part) == 0 for part in parts), name
        assert sorted(key for part in parts for table, key in part if table == "t") == list(range(1, 801)), name
        assert [cut.position for cut in cuts] == sorted({cut.position for cut in cuts}), name
    database.execute("INSERT INTO u VALUES (8)")
    with pytest.raises(CutTooLarge, match="the first cut, and every cut without exactly-once, must be read as a whole"):
        captured.log(driver_mb=1).cut(log.begin(), None)


def read_ends(captured: Capture) -> int:
    """Offsets of the tables' topics; marks of transactions take up some, too."""
    log = captured.detached_log()
    try:
        partitions = log.partitions_of(captured.settings.source.tables)
        return sum(end_offsets(admin_client(captured.settings.log), partitions, committed=True).values())
    finally:
        log.close()


def test_value_that_the_log_does_not_hold_is_the_error_of_the_decoder(
    spark: SparkSession, database: Database, capture: CaptureOf, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY, b text, c int)", f"INSERT INTO t SELECT 1, {BIG}, 1")
    captured = capture("public.t", toast="lookup", partitions=1)
    captured.start()
    log = captured.log()
    snapshot = log.cut(log.begin(), None)
    log.records(snapshot)
    database.execute("UPDATE t SET c = 2")
    cut = log.cut(snapshot.end, snapshot.position)
    [table] = captured.tables().values()
    bulk = Bulk(spark, tmp_path, captured, table)
    with pytest.raises(UnresolvedToast, match=r'"b" was left unchanged.*\nhint: rebuild the table from a snapshot'):
        bulk.rows(cut)


def test_full_disk_under_a_task_is_disk_full_and_freed_all_is_read(
    spark: SparkSession, database: Database, capture: CaptureOf, small_disk: SmallDisk
) -> None:
    database.execute(
        "CREATE TABLE t (a int PRIMARY KEY, b int)", "INSERT INTO t SELECT n, n FROM generate_series(1, 20) n"
    )
    captured = capture("public.t", partitions=1)
    captured.start()
    log = captured.log()
    cut = log.cut(log.begin(), None)
    [table] = captured.tables().values()
    bulk = Bulk(spark, small_disk.folder, captured, table)
    bulk.rows(replace(cut, end=cut.start))  # the table is there
    small_disk.fill(0)
    with pytest.raises(DiskFull, match="no space left") as full:
        bulk.rows(cut)
    assert full.value.__cause__ is None, "not of a task, whose errors come back without their cause"
    small_disk.free()
    assert bulk.rows(cut) == sorted(database.execute("SELECT a, b FROM t"))
