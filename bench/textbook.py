"""The text-book job: Spark's Structured Streaming over all topics, foreachBatch, one MERGE per table and batch.

    python -m bench.textbook --project FOLDER --out FOLDER [--until-end]

Its session has the settings of the engine's own, its tables have the settings of ours, deletion vectors too. In its
favour: a batch merges only the tables that it has events of.
"""

from __future__ import annotations

import time
from functools import reduce
from pathlib import Path
from typing import Final

import click
import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from bench.baseline import Baseline, result
from bench.jars import kafka_source_jars
from cdc_views.engine.spark.session import start_session
from cdc_views.source.catalog import SourceTable
from cdc_views.stack.fetch import delta_jars
from cdc_views.store.warehouse import Warehouse

# Bounds a batch while it catches up; in the steady state no batch comes near it.
MOST_OFFSETS: Final = 200_000

_DELETED: Final = "_deleted"


class TextbookJob:
    """One streaming query over all topics of a baseline."""

    def __init__(self, baseline: Baseline, spark: SparkSession) -> None:
        self._baseline = baseline
        self._spark = spark
        warehouse = Warehouse(baseline.folder, spark)
        for table in baseline.tables.values():
            warehouse.create(baseline.spec(table))

    def run(self, *, until_end: bool) -> float:
        """Merge for ever, or up to what is in the topics now; returns the seconds that took."""
        began = time.monotonic()
        stream = (
            self._spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self._baseline.settings.log.bootstrap_servers)
            .option("subscribe", ",".join(self._baseline.tables))
            .option("startingOffsets", "earliest")
            .option("kafka.isolation.level", "read_committed")
            .option("maxOffsetsPerTrigger", MOST_OFFSETS)
            .load()
        )
        writer = stream.writeStream.foreachBatch(self._merge_batch)
        writer = writer.option("checkpointLocation", str(self._baseline.folder / "_checkpoint"))
        (writer.trigger(availableNow=True) if until_end else writer).start().awaitTermination()
        return time.monotonic() - began

    def _merge_batch(self, batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            present = {row["topic"] for row in batch.select("topic").distinct().collect()}
            for topic, table in self._baseline.tables.items():
                if topic in present:
                    self._merge(table, batch.where(F.col("topic") == topic))
        finally:
            batch.unpersist()

    def _merge(self, table: SourceTable, events: DataFrame) -> None:
        folder = self._baseline.folder / str(table.name)
        keys = (F.col(f"t.{column}") == F.col(f"s.{column}") for column in table.key)
        values: dict[str, str | Column] = {column.name: F.col(f"s.{column.name}") for column in table.columns}
        is_deleted = F.col(f"s.{_DELETED}")
        (
            DeltaTable.forPath(events.sparkSession, str(folder))
            .alias("t")
            .merge(last_rows(table, self._baseline.spec(table).schema, events).alias("s"), reduce(Column.__and__, keys))
            .whenMatchedDelete(is_deleted)
            .whenMatchedUpdate(~is_deleted, values)
            .whenNotMatchedInsert(~is_deleted, values)
            .execute()
        )


def last_rows(table: SourceTable, schema: pa.Schema, events: DataFrame) -> DataFrame:
    """The rows after the last event of each key, those that are gone by their key alone, marked."""
    json = {field.name: _json_type(field.type) for field in schema}
    key_fields = ", ".join(f"`{name}` {json[name]}" for name in table.key)
    row_fields = ", ".join(f"`{name}`: {kind}" for name, kind in json.items())
    parsed = events.select(
        "partition",
        "offset",
        F.from_json(F.col("key").cast("string"), key_fields).alias("key"),
        F.from_json(F.col("value").cast("string"), f"op STRING, after STRUCT<{row_fields}>").alias("event"),
    )
    newest = Window.partitionBy(*(F.col(f"key.{name}") for name in table.key)).orderBy(F.desc("offset"))
    last = parsed.withColumn("age", F.row_number().over(newest)).where("age = 1")
    columns = [
        (F.col(f"key.{name}") if name in table.key else _value(F.col(f"event.after.{name}"), schema.field(name).type))
        .alias(name)
        for name in schema.names
    ]  # fmt: skip
    # A tombstone has no value at all.
    is_deleted = F.coalesce(F.col("event.op") == "d", F.lit(True)).alias(_DELETED)
    return last.select(*columns, is_deleted)


def _json_type(kind: pa.DataType) -> str:
    """What Debezium's JSON has for a column of a mirror; other types the benchmark's tables do not have."""
    if pa.types.is_list(kind):
        return f"ARRAY<{_json_type(kind.value_type)}>"
    simple = {pa.int64(): "BIGINT", pa.int32(): "INT", pa.bool_(): "BOOLEAN", pa.date32(): "INT"}
    return simple.get(kind, "STRING")  # texts; decimals and times come as texts too


def _value(raw: Column, kind: pa.DataType) -> Column:
    if pa.types.is_decimal(kind):
        return raw.cast(f"DECIMAL({kind.precision},{kind.scale})")
    if pa.types.is_timestamp(kind):
        return raw.cast("TIMESTAMP")
    if pa.types.is_date(kind):
        return F.date_add(F.lit("1970-01-01").cast("DATE"), raw)
    return raw


@click.command()
@click.option("--project", required=True, type=click.Path(path_type=Path), help="Says where the topics are.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of its Delta tables.")
@click.option("--until-end", is_flag=True, help="Stop at what is in the topics now.")
def main(project: Path, out: Path, until_end: bool) -> None:
    """Mirror the topics of a project by a streaming query that merges."""
    baseline = Baseline.of(project, out)
    spark = start_session(baseline.settings.engine, [*delta_jars(), *kafka_source_jars()])
    try:
        click.echo(result(reading_s=round(TextbookJob(baseline, spark).run(until_end=until_end), 3)))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
