"""The time of recomputing each view in full, on the data of a stage: by Spark, DuckDB and Postgres.

All recompute the views one after the other, parents before children, and keep the result in a table of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeVar
from uuid import uuid4

import duckdb
import psycopg

from bench.rig import create_database, drop_database, scratch
from bench.views.stage import Stage
from bench.views.tables import TABLES
from cdc_views.demo.data import SCHEMA_FILE
from cdc_views.plan.compiled import CompiledView
from cdc_views.stack.local import LocalStack
from cdc_views.store.reading import scan
from cdc_views.views.definition import ViewDefinition

ONCE_FROM: Final = 10_000_000
"""From this many base rows on, a baseline is measured once."""

SAMPLES: Final = 3
# Enough to reach every view.
_CHANGES: Final = 100
_WORK_MEM: Final = "256MB"
_PIECE: Final = 1 << 20
_COUNT: Final = "SELECT count(*) FROM {}"

_FOLDERS: Final = {name: Path(__file__).with_name(name) for name in ("duckdb", "postgres")}
_ARRAYS: Final = {"posts": "tags", "products": "tags"}

Statement = TypeVar("Statement", str, bytes)


@dataclass(frozen=True)
class Recomputed:
    """By view: the time of recomputing it in full, in milliseconds, and the number of its rows if that is known."""

    took_ms: Mapping[str, float]
    rows: Mapping[str, int]


def by_spark(stage: Stage, rows: int) -> Recomputed:
    """The engine's own strategy FULL, which compares the result with the stored rows and commits the difference.

    Ends the incremental epochs of the stage.
    """
    return Recomputed({name: _median_ms(partial(stage.recompute, name, _CHANGES), rows) for name in stage.views}, {})


def by_duckdb(copy: duckdb.DuckDBPyConnection, views: Mapping[str, CompiledView], rows: int) -> Recomputed:
    """CREATE OR REPLACE TABLE, over a copy of the base tables in a database file."""

    def recompute(name: str) -> float:
        return _took_ms(
            f"CREATE OR REPLACE TABLE {name} AS {select_for('duckdb', views[name].definition)}", copy.execute
        )

    took_ms = {name: _median_ms(partial(recompute, name), rows) for name in views}
    return Recomputed(took_ms, {name: _count(copy.execute(_COUNT.format(name)).fetchone()) for name in took_ms})


def by_postgres(dsn: str, views: Mapping[str, CompiledView], rows: int) -> Recomputed:
    """REFRESH MATERIALIZED VIEW, in a database with the base tables."""
    took_ms: dict[str, float] = {}
    found: dict[str, int] = {}
    with psycopg.connect(dsn, autocommit=True) as server:
        server.execute(f"SET work_mem = '{_WORK_MEM}'")
        for name, view in views.items():
            select = select_for("postgres", view.definition)
            server.execute(f"CREATE MATERIALIZED VIEW {name} AS {select} WITH NO DATA".encode())
            refresh = f"REFRESH MATERIALIZED VIEW {name}".encode()
            took_ms[name] = _median_ms(partial(_took_ms, refresh, server.execute), rows)
            server.execute(f"ANALYZE {name}".encode())
            found[name] = _count(server.execute(_COUNT.format(name).encode()).fetchone())
    return Recomputed(took_ms, found)


def select_for(baseline: str, view: ViewDefinition) -> str:
    """The SELECT of a view for a baseline: the view's own, unless the baseline needs other SQL."""
    own = _FOLDERS[baseline] / f"{view.name}.sql"
    return own.read_text().strip().removesuffix(";") if own.exists() else view.sql


@contextmanager
def copied(stage: Stage, folder: Path, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Copy the published mirrors into a database file of DuckDB, which may use as much memory as Spark's heap."""
    with duckdb.connect(str(folder / "copy.duckdb")) as copy:
        copy.execute(f"SET memory_limit = '{memory.upper()}B'")
        copy.execute("SET TimeZone = 'UTC'")
        copy.execute("SET preserve_insertion_order = false")  # takes less memory
        for name in TABLES:
            table = stage.published(f"public.{name}")
            copy.register("mirror", scan(stage.root, table.path, table.version))
            copy.execute(f"CREATE TABLE {name} AS SELECT * FROM mirror")
            copy.unregister("mirror")
        yield copy


@contextmanager
def loaded(copy: duckdb.DuckDBPyConnection, folder: Path, state: Path | None) -> Iterator[str]:
    """Load the copy into a database of a stack's Postgres; yields its DSN. Without `state`, a stack is started."""
    with scratch() as stack_folder, LocalStack(state or stack_folder / "stack") as stack:
        name = f"bench_{uuid4().hex[:10]}"
        dsn = create_database(stack, name)
        try:
            _load(copy, folder, dsn)
            yield dsn
        finally:
            drop_database(stack, name)


def _load(copy: duckdb.DuckDBPyConnection, folder: Path, dsn: str) -> None:
    file = folder / "table.csv"
    with psycopg.connect(dsn, autocommit=True) as server:
        server.execute(SCHEMA_FILE.read_bytes())
        for name in TABLES:
            columns = "*"
            if array := _ARRAYS.get(name):
                columns = f"* REPLACE ('{{' || array_to_string({array}, ',') || '}}' AS {array})"
            copy.execute(f"COPY (SELECT {columns} FROM {name}) TO '{file}' (HEADER false, NULLSTR '\\N')")
            target = f"COPY {name} FROM STDIN (FORMAT csv, NULL '\\N')".encode()
            with open(file, "rb") as rows, server.cursor().copy(target) as into:
                while piece := rows.read(_PIECE):
                    into.write(piece)
        file.unlink()
        server.execute("VACUUM ANALYZE")


def _took_ms(statement: Statement, execute: Callable[[Statement], object]) -> float:
    began = time.monotonic()
    execute(statement)
    return (time.monotonic() - began) * 1000


def _count(found: tuple[Any, ...] | None) -> int:
    assert found is not None
    return int(found[0])


def _median_ms(sample: Callable[[], float], rows: int) -> float:
    """The median of some samples after one that does not count; with many base rows, the only sample."""
    if rows >= ONCE_FROM:
        return sample()
    sample()
    return median(sample() for _ in range(SAMPLES))
