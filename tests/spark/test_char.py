"""char(n): Spark's answers about its mirror, whose values are those that Postgres prints of it as a text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from cdc_views.testing.memory.values import stored
from tests.char_cases import ALIKE, DIFFERENT, ROWS

SIZES = (9, 6, -1)  # the type modifiers of char(5) and char(2), and a text


@pytest.fixture(scope="module")
def mirror(spark: SparkSession) -> Iterator[SparkSession]:
    """A relation `c` with what a mirror holds of the rows."""
    rows = [[stored(value, "text" if size < 0 else "bpchar", size, "c") for value, size in zip(row, SIZES, strict=True)]
            for row in ROWS]  # fmt: skip
    spark.createDataFrame(rows, "code string, short string, word string").createOrReplaceTempView("c")
    yield spark
    spark.catalog.dropTempView("c")


@pytest.mark.parametrize(("query", "answer"), [*ALIKE, *((query, answer) for query, _, answer in DIFFERENT)])
def test_spark_answers_about_char_as_stated(mirror: SparkSession, query: str, answer: int) -> None:
    assert [tuple(row) for row in mirror.sql(query).collect()] == [(answer,)]
