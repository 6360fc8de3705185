"""Spark and Postgres asked the same: where they differ, and that what is said to be the same is the same."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from psycopg import sql
from pyspark.sql import SparkSession

from cdc_views.engine.views.analysis import AnalysedView
from cdc_views.engine.views.project_analysis import analyse_views
from cdc_views.plan.compiled import compile_view
from cdc_views.plan.dialect import DIFFERENCES
from cdc_views.source.connection import Connection
from cdc_views.views.definition import parse_view
from cdc_views.views.graph import ViewGraph
from tests.dialect_cases import CASES, SAME


def plain(value: Any) -> Any:
    """A value so that both engines' are compared: a number is its value, a time its text."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | Decimal):
        return Decimal(str(value)).normalize()
    return str(value) if isinstance(value, date | datetime) else value


def ask_postgres(connection: Connection, expressions: Sequence[str]) -> list[Any]:
    return [plain(connection.execute(sql.SQL(f"SELECT {each}")).fetchall()[0][0])
            for each in expressions]  # fmt: skip


def ask_spark(spark: SparkSession, expressions: Sequence[str]) -> list[Any]:
    columns = ", ".join(f"{each} AS c{number}" for number, each in enumerate(expressions))
    return [plain(value) for value in spark.sql(f"SELECT {columns}").collect()[0]]


def test_cases_differ_and_each_engine_can_answer_as_the_other(spark: SparkSession, answering: Connection) -> None:
    postgres = ask_postgres(answering, [case.postgres for case in CASES])
    naive = ask_spark(spark, [case.spark for case in CASES])
    in_spark = ask_spark(spark, [case.in_spark or "NULL" for case in CASES])
    in_postgres = ask_postgres(answering, [case.in_postgres or "NULL" for case in CASES])
    wrong = [
        (case.postgres, there, here, rewritten_here, rewritten_there)
        for case, there, here, rewritten_here, rewritten_there in zip(
            CASES, postgres, naive, in_spark, in_postgres, strict=True
        )
        if there == here
        or (case.in_spark and rewritten_here != there)
        or (case.in_postgres and rewritten_there != here)
    ]
    assert wrong == []


def test_expressions_that_mean_the_same_answer_the_same(spark: SparkSession, answering: Connection) -> None:
    here, there = ask_spark(spark, SAME), ask_postgres(answering, SAME)
    assert [each for each in zip(SAME, here, there, strict=True) if each[1] != each[2]] == []


def noticed(spark: SparkSession, sql: str) -> set[str]:
    """The differences that are said of a view over nothing."""
    definition = parse_view(f"CREATE MATERIALIZED VIEW v AS SELECT {sql} AS x", Path("v.sql"))
    compiled = compile_view(definition, ViewGraph([definition], []), {}, {})
    [(_, analysed)] = analyse_views(spark, [], [compiled])
    assert isinstance(analysed, AnalysedView)
    return {note.difference.name for note in analysed.notes}


def test_explain_says_where_a_view_differs_and_nothing_once_it_is_written_for_spark(spark: SparkSession) -> None:
    silent = [case for case in CASES if case.difference not in noticed(spark, case.spark)]
    assert silent == []
    loud = [case for case in CASES if case.in_spark and case.difference in noticed(spark, case.in_spark)]
    assert loud == [case for case in loud if case.difference == "order of text"]  # a collation of Spark's is one


def test_nothing_is_said_of_what_means_the_same(spark: SparkSession) -> None:
    assert [each for each in SAME if noticed(spark, each) - {"order of text"}] == []


def test_note_names_place_and_text(spark: SparkSession) -> None:
    definition = parse_view("CREATE MATERIALIZED VIEW v AS\nSELECT 1 AS a,\n  7 / 2 AS b", Path("v.sql"))
    compiled = compile_view(definition, ViewGraph([definition], []), {}, {})
    [(_, analysed)] = analyse_views(spark, [], [compiled])
    assert isinstance(analysed, AnalysedView)
    assert [note.problem() for note in analysed.notes] == [
        'v.sql:3:3: "7 / 2": Spark gives a fraction for integers; Postgres gives a whole number'
    ]


def test_every_difference_has_a_case() -> None:
    assert {case.difference for case in CASES} == set(DIFFERENCES)
