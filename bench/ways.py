"""What each of the two ways of a commit and of a lookup takes, by its size: where the thresholds of `store` belong."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final

import click
import pyarrow as pa
from pyspark.sql import SparkSession

from bench import command
from bench.flatness import Growing, base_rows
from cdc_views.config import EngineSettings, StoreSettings
from cdc_views.engine.spark.session import start_session
from cdc_views.stack.fetch import delta_jars
from cdc_views.store.reading import read_table
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse

SCHEMA: Final = pa.schema([("id", pa.int64()), ("holder", pa.string()), ("balance", pa.decimal128(12, 2))])
_UNLIMITED: Final = StoreSettings(direct_rows=2**31, lookup_keys=2**31, driver_rows=2**31)


class Way:
    """A table of its own that is written and read in one way."""

    def __init__(self, name: str, warehouse: Warehouse, commits: str, lookups: str) -> None:
        self.spec = TableSpec(f"by {name}", name, SCHEMA, ("id",))
        self._warehouse = warehouse
        self._steps = {"commit": commits, "lookup": lookups}
        self._attempts = count(1)
        self.version = warehouse.create(self.spec)

    def go_on_from(self, other: Way) -> None:
        """Commit to what another way has written to the same table."""
        self.version, self._attempts = other.version, other._attempts

    def commit(self, changes: Changes) -> None:
        """Make the next version."""
        stamp = Stamp(1, next(self._attempts), "0/0")
        self.version = self._warehouse.commit(self.spec, self.version, changes, stamp)

    def lookup(self, keys: pa.Table) -> pa.Table:
        """Rows of the newest version."""
        return self._warehouse.lookup(self.spec, self.version, keys)

    def took_ms(self, step: str, work: Callable[[], object]) -> float:
        """How long it took, and that it went this way."""
        self._warehouse.ways.taken()
        began = time.monotonic()
        work()
        took_ms = (time.monotonic() - began) * 1000
        taken = self._warehouse.ways.taken()
        assert taken == {step: {self.spec.name: self._steps[step]}}, f"went another way: {taken}"
        return took_ms


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default=1_000_000, show_default=True, help="Of the tables.")
@click.option("--commits", default="100,1000,10000,50000,200000,400000", show_default=True, help="Changes of a commit.")
@click.option("--lookups", default="100,1000,10000,50000,200000", show_default=True, help="Keys of a lookup.")
@click.option("--samples", default=5, show_default=True, help="For each median.")
@click.option("--memory", default="2g", show_default=True, help="Heap of the Spark driver.")
def main(rows: int, commits: str, lookups: str, samples: int, memory: str) -> None:
    """Measure both ways of a commit and of a lookup, in turns, on two tables that are given the same changes.

    One way is the driver's own (a direct commit, an index from key to row), the other Spark's (MERGE, a join). The
    changes (70 % updates, 20 % inserts, 10 % deletes) and the keys are scattered over the table. Of each size one
    sample is not counted, in which indexes are built and Spark's code is compiled. There is no upkeep.

    \b
    commit_<changes>_direct_ms, commit_<changes>_spark_ms   medians
    lookup_<keys>_index_ms, lookup_<keys>_spark_ms          medians
    equal   both lookups found the same rows, and in the end both tables hold the same

    The thresholds between the ways are the settings store.direct_rows and store.lookup_keys (docs/settings.md).

    Example: python -m bench.ways --rows 100000 --commits 100,1000 --lookups 100 --samples 1
    """
    options = {"rows": rows, "commits": commits, "lookups": lookups, "samples": samples}

    def measure() -> dict[str, Any]:
        with _spark(memory) as spark, tempfile.TemporaryDirectory(prefix="cdc-views-bench-") as root:
            return measure_ways(spark, Path(root), rows, _numbers(commits), _numbers(lookups), samples)

    command.run("ways", options, measure)


def measure_ways(
    spark: SparkSession, root: Path, rows: int, commits: Sequence[int], lookups: Sequence[int], samples: int
) -> dict[str, Any]:
    """The figures, of two tables of so many rows below `root`."""
    own = Way("own", Warehouse(root, spark, _UNLIMITED), "direct", "index")
    by_spark = Way("spark", Warehouse(root, spark, _UNLIMITED, allow_direct=False), "spark", "spark")
    # Only to fill a table one need not wait for Spark.
    filling = Way("spark", Warehouse(root, spark, _UNLIMITED), "direct", "index")
    for piece in base_rows(rows):
        for way in (own, filling):
            way.commit(Changes(None, piece.cast(SCHEMA), all_new=True))
    by_spark.go_on_from(filling)
    growing, chance = Growing(rows, Random(1)), Random(2)
    figures: dict[str, Any] = {"equal": True}
    for size in commits:
        command.tell(f"commits of {size:,} changes")
        pairs = [_commit(own, by_spark, _changes(growing, size)) for _ in range(samples + 1)]
        figures |= _medians(f"commit_{size}", ("direct", "spark"), pairs)
    for size in lookups:
        command.tell(f"lookups of {size:,} keys")
        asked = (pa.table({"id": chance.sample(range(rows), min(size, rows))}) for _ in range(samples + 1))
        pairs = [_look_up(own, by_spark, keys, figures) for keys in asked]
        figures |= _medians(f"lookup_{size}", ("index", "spark"), pairs)
    figures["equal"] &= _is_same(*(read_table(root, way.spec.path, way.version) for way in (own, by_spark)))
    return figures


def _commit(own: Way, by_spark: Way, changes: Changes) -> tuple[float, float]:
    return (
        own.took_ms("commit", lambda: own.commit(changes)),
        by_spark.took_ms("commit", lambda: by_spark.commit(changes)),
    )


def _look_up(own: Way, by_spark: Way, keys: pa.Table, figures: dict[str, Any]) -> tuple[float, float]:
    found: list[pa.Table] = []
    took = (
        own.took_ms("lookup", lambda: found.append(own.lookup(keys))),
        by_spark.took_ms("lookup", lambda: found.append(by_spark.lookup(keys))),
    )
    figures["equal"] &= _is_same(*found)
    return took


def _medians(name: str, ways: tuple[str, str], pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    counted = zip(*pairs[1:], strict=True)
    return {f"{name}_{way}_ms": round(median(taken), 1) for way, taken in zip(ways, counted, strict=True)}


def _changes(growing: Growing, size: int) -> Changes:
    drawn = list(growing.changes(size))
    stored = [(key, f"holder {key % 1000}", new) for key, _, new in drawn if new is not None]
    rows = pa.table([list(column) for column in zip(*stored, strict=True)], schema=SCHEMA)
    deleted = pa.table({"id": pa.array([key for key, _, new in drawn if new is None], pa.int64())})
    return Changes(deleted, rows, all_new=False)


def _is_same(one: pa.Table, other: pa.Table) -> bool:
    return bool(one.sort_by("id").cast(SCHEMA).equals(other.sort_by("id").cast(SCHEMA)))


@contextmanager
def _spark(memory: str) -> Iterator[SparkSession]:
    session = start_session(EngineSettings(driver_memory=memory), delta_jars())
    try:
        yield session
    finally:
        session.stop()


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


if __name__ == "__main__":
    main()
