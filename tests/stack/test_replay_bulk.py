"""A table read from its topic by Spark, in pieces as small as they get, equals the table."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from cdc_views.errors import UnresolvedToast
from cdc_views.names import TableName
from cdc_views.replay.bulk import Progress, pieces_of, read_rows, watched
from tests.fix_kafka import CaptureOf
from tests.fix_postgres import Database

NAME = TableName("public", "t")
BIG = "(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 400))"


def test_pieces_of_few_offsets_and_of_many_give_the_table(
    spark: SparkSession, database: Database, capture: CaptureOf
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
    partitions = log.partitions_of([NAME])
    start, end = ({each: side[each] for each in partitions} for side in (cut.start, cut.end))
    [table] = captured.tables().values()
    expected = sorted(database.execute('SELECT a, b, "C" FROM t'))
    for size in (11, 100_000):
        seen: list[Progress] = []
        pieces = pieces_of(start, end, size)
        with watched(spark, "t", pieces, seen.append):
            found = [tuple(row) for row in read_rows(spark, captured.settings.log, table, pieces).collect()]
        assert sorted(found) == expected, size
        assert (seen[-1].done, seen[-1].total) == (sum(end.values()), sum(end.values()))


def test_value_that_the_log_does_not_hold_is_the_error_of_the_decoder(
    spark: SparkSession, database: Database, capture: CaptureOf
) -> None:
    database.execute("CREATE TABLE t (a int PRIMARY KEY, b text, c int)", f"INSERT INTO t SELECT 1, {BIG}, 1")
    captured = capture("public.t", toast="lookup", partitions=1)
    captured.start()
    log = captured.log()
    snapshot = log.cut(log.begin(), None)
    log.records(snapshot)
    database.execute("UPDATE t SET c = 2")
    cut = log.cut(snapshot.end, snapshot.position)
    [partition] = log.partitions_of([NAME])
    [table] = captured.tables().values()
    pieces = pieces_of({partition: snapshot.end[partition]}, {partition: cut.end[partition]})
    rows = read_rows(spark, captured.settings.log, table, pieces)
    unresolved = pytest.raises(UnresolvedToast, match=r'"b" was left unchanged.*\nhint: run "ALTER TABLE')
    with unresolved, watched(spark, "t", pieces, lambda progress: None):
        rows.collect()
