"""Planned queries that are run again over other rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc_views.engine.views.queries.repeatable import repeatable
from cdc_views.engine.views.queries.small_queries import small_session

REPEATABLE = {
    "filter": "SELECT a, b + 1 AS c FROM t WHERE b > 2",
    "joins of joins": "SELECT t.a, u.b, v.c FROM t JOIN u ON u.a = t.a JOIN v ON v.b = u.b",
    "outer joins": "SELECT t.a AS x, u.a AS y, v.c FROM t FULL JOIN u ON u.a = t.a LEFT JOIN v ON v.b = t.b",
    "aggregate of joins": "SELECT v.c, sum(t.b), count(DISTINCT u.b) FROM t JOIN u ON u.a = t.a JOIN v ON v.b = u.b "
    "GROUP BY v.c",
    "left join of an aggregate": "SELECT t.a, s.n FROM t "
    "LEFT JOIN (SELECT u.a, count(*) AS n FROM u JOIN v ON v.b = u.b GROUP BY u.a) s ON s.a = t.a",
    "first rows of joins": "SELECT t.a, u.b, v.c FROM t JOIN u ON u.a = t.a JOIN v ON v.b = u.b "
    "QUALIFY row_number() OVER (PARTITION BY t.a ORDER BY v.c DESC, u.b) <= 2",
    "group of a union": "SELECT a, count(*), max(b) FROM (SELECT a, b FROM t UNION ALL SELECT a, b FROM u) GROUP BY a",
    "set operations": "SELECT a FROM t EXCEPT SELECT a FROM u UNION SELECT b AS a FROM v",
    "semi and anti joins": "SELECT a, b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a) "
    "AND NOT EXISTS (SELECT 1 FROM v WHERE v.b = t.b)",
    "rollup": "SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b)",
    "global order": "SELECT a, b FROM t ORDER BY b, a",
    "one group of all": "SELECT sum(b), min(a) FROM t",
}
KEPT_BY_SPARK = {
    "subquery": "SELECT a, b FROM t WHERE b = (SELECT max(b) FROM u)",
    "broadcast": "SELECT t.a, u.b FROM t LEFT JOIN u ON u.a < t.a",
    "more partitions": "SELECT /*+ REPARTITION(3) */ a, b FROM t",
}
COLUMNS = {"t": ("a", "b"), "u": ("a", "b"), "v": ("b", "c")}


class Tables:
    """The tables t, u and v of a session, as files of which each run of a query reads what is there then."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.session = small_session(spark)
        self._folder = folder
        for name, columns in COLUMNS.items():
            self._write(name, 0)
            path = str(self._path(name))

            def read(batches: Iterator[pa.RecordBatch], path: str = path) -> Iterator[pa.RecordBatch]:
                import pyarrow.parquet

                for _ in batches:
                    pass
                yield from pyarrow.parquet.read_table(path).to_batches()

            types = ", ".join(f"{column} BIGINT" for column in columns)
            self.session.range(0, 1, 1, 1).mapInArrow(read, types).createOrReplaceTempView(name)

    def change(self, number: int) -> None:
        for name in COLUMNS:
            self._write(name, number)

    def fresh(self, sql: str) -> list[Any]:
        """The rows of a query that is planned now."""
        return rows_of(self.session.sql(sql))

    def _write(self, name: str, number: int) -> None:
        values = {
            column: [(row * (3 + place) + number * 7 + len(name)) % 11 for row in range(4 + 3 * number)]
            for place, column in enumerate(COLUMNS[name])
        }
        pq.write_table(pa.table(values), self._path(name))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.parquet"


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Tables:
    return Tables(spark, tmp_path)


def rows_of(frame: DataFrame) -> list[Any]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.mark.parametrize("sql", REPEATABLE.values(), ids=REPEATABLE)
def test_a_repeated_query_gives_the_rows_of_now(tables: Tables, sql: str) -> None:
    query = repeatable(tables.session.sql(sql))
    assert query is not None
    seen = []
    for number in (0, 1, 2, 0):
        tables.change(number)
        seen.append(rows_of(query))
        assert seen[-1] == tables.fresh(sql)
    assert seen[0] == seen[3] != seen[2]


@pytest.mark.parametrize("sql", KEPT_BY_SPARK.values(), ids=KEPT_BY_SPARK)
def test_a_query_of_which_spark_keeps_something_is_not_repeated(tables: Tables, sql: str) -> None:
    assert repeatable(tables.session.sql(sql)) is None


def test_an_exchange_that_was_run_again_would_give_the_rows_of_the_first_run(tables: Tables) -> None:
    sql = REPEATABLE["joins of joins"]
    planned = tables.session.sql(sql)
    before = planned.toArrow().num_rows
    tables.change(2)
    assert planned.toArrow().num_rows == before != len(tables.fresh(sql))
