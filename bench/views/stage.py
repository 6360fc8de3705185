"""An engine over the base tables: everything of it except Postgres, Kafka and Debezium."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.database import ALERTS
from bench.flatness import EPOCH_S, PARTITIONS, UPKEEP
from bench.views.data import Data, demo_tables
from cdc_views.engine.capture.declared import compile_declared
from cdc_views.engine.epoch.steps import EpochWriter
from cdc_views.engine.spark.jobs import spark_work
from cdc_views.engine.tables import Tables
from cdc_views.engine.upkeep.maintenance import Upkeep
from cdc_views.engine.views.declare import declare_views
from cdc_views.engine.views.maintain import ViewRunner, ViewWork
from cdc_views.engine.views.queries.relations import Relations
from cdc_views.engine.views.strategies import STRATEGIES, Recompute
from cdc_views.engine.views.strategies.guards import Bound
from cdc_views.errors import CheckFailed
from cdc_views.plan.compiled import CompiledView
from cdc_views.store.control import ControlLog, ControlRecord, PublishedDetail, TableVersion
from cdc_views.store.delta_log import quoted
from cdc_views.store.warehouse import Changes, Stamp, Warehouse
from cdc_views.testing.hand_clock import HandClock
from cdc_views.testing.memory.memory_log import MemoryLog
from cdc_views.views.definition import ViewDefinition, read_views
from cdc_views.views.graph import ViewGraph

OWN_VIEWS: Final = Path(__file__).with_name("sql")
_DAY_S: Final = 86_400.0
_HIDDEN: Final = "_cv_"


@dataclass(frozen=True)
class Epoch:
    """What the views stage of one epoch took, in milliseconds, and the views that are above the changed tables.

    `costs` has for each view that the engine worked on what it recorded of this work.
    """

    views_ms: float
    due: frozenset[str]
    costs: Mapping[str, Mapping[str, int | float | str]]


class Stage:
    """A warehouse with the measured tables of the demo and all views. The views are built by the first epoch."""

    def __init__(self, root: Path, spark: SparkSession, rows: int, folders: Sequence[Path]) -> None:
        """`rows` is the number of rows of all base tables together; the views are those of these folders."""
        sources = demo_tables()
        self.root = root
        self._spark = spark
        self._clock = HandClock()
        self._log = MemoryLog(sources.values(), self._clock, partitions=PARTITIONS, validity_s=_DAY_S)
        self._tables = Tables(Warehouse(root, spark), "bench", sources.values())
        self._control = ControlLog.open(root, uuid4().hex, self._clock)
        self._control.take_over("bench")
        self.data = Data(rows, sources, {name: self._tables.specs[f"public.{name}"].schema for name in sources})
        for name in sources:
            for piece in self.data.base(name):
                self._commit(f"public.{name}", Changes(None, piece, all_new=True))
        self._tables.advance(self._publish())
        levels = _levels(self._tables, folders)
        self.views: dict[str, CompiledView] = {view.definition.name: view for level in levels for view in level}
        declare_views(spark, self._tables, self.views.values())
        self._all = ViewRunner(spark, levels)
        self._relations = Relations(spark, self._tables.warehouse)
        self._writer = EpochWriter(self._log, self._tables, self._all, self._control)
        self._maintenance = Upkeep(root, self._tables, self._control, UPKEEP)

    def close(self) -> None:
        """Free the memory of the generator of rows."""
        self.data.close()

    def epoch(self, changes: int) -> Epoch:
        """Commit changes at the source, and run one turn of the engine's loop. Raises CheckFailed if a view fails."""
        return self._run(self._all, changes)

    def recompute(self, view: str, changes: int) -> float:
        """Commit changes to the mirrors, and then run the strategy FULL for one view. Returns milliseconds of FULL.

        No view is maintained for these changes: this ends the incremental epochs of the stage.
        """
        self._run(ViewRunner(self._spark, []), changes)
        tables, compiled = self._tables, self.views[view]
        began = time.monotonic()
        inputs = {source: (tables.specs[source].path, tables.version(source)) for source in compiled.inputs}
        with self._relations.reading(inputs) as relations:
            most = Bound(tables.warehouse.driver_rows, tables.warehouse.driver_bytes)
            work = Recompute(compiled, tables.specs[view], self._relations.session, relations, self._stored(view), most)
            difference = STRATEGIES["FULL"](work)
            if difference is not None:
                self._commit(view, difference)
        took_ms = (time.monotonic() - began) * 1000
        self._relations.forget()
        return took_ms

    def published(self, name: str) -> TableVersion:
        """Path and version of a mirror (`schema.table`) or view."""
        assert self._tables.published is not None
        return self._tables.published.tables[name]

    def rows(self, view: str) -> int:
        """The number of stored rows of a view."""
        return self._frame(view).count()

    def differing(self) -> list[str]:
        """The views whose stored rows are not those that Spark computes for their SQL now."""
        return [name for name, view in self.views.items() if not self._is_equal(name, view)]

    def _run(self, runner: ViewRunner, changes: int) -> Epoch:
        self._clock.sleep(EPOCH_S)
        self._writer.views = runner
        if changes:
            self._log.write(self.data.changes(changes))
        record = self._writer.run(idle_interval_s=0)
        assert record is not None
        found = PublishedDetail.read(record)
        if found.failures:
            raise CheckFailed("; ".join(f'view "{name}": {why}' for name, why in found.failures.items()))
        strategies = found.ways.get("view", {})
        costs = {name: {"strategy": strategies.get(name, "full").upper(), **dict(self._cost(work))}
                 for name, work in runner.work.items()}  # fmt: skip
        self._maintenance.slot()
        return Epoch(found.stage_ms["views"], frozenset(runner.above(found.changes)), costs)

    def _cost(self, work: ViewWork) -> Iterator[tuple[str, int | float | str]]:
        """Everything that the engine noted of the work on a view, and what Spark counted."""
        yield from _values(work)
        yield from ((f"spark_{what}", value) for what, value in _values(spark_work(self._spark, work.job_group)))

    def _is_equal(self, name: str, view: CompiledView) -> bool:
        session = self._spark.newSession()
        relations = {source: f"bench_input_{number}" for number, source in enumerate(view.inputs)}
        for source, relation in relations.items():
            self._frame(source, session).createOrReplaceTempView(relation)
        stored = self._frame(name, session)
        stored.createOrReplaceTempView("bench_stored")
        session.sql(view.query(relations)).toDF(*stored.columns).createOrReplaceTempView("bench_wanted")
        columns = ", ".join(map(quoted, stored.columns))
        [found] = session.sql(
            "SELECT count(*) FROM (SELECT 1 FROM (SELECT *, 1 AS _cv_side FROM bench_wanted "
            "UNION ALL SELECT *, -1 AS _cv_side FROM bench_stored) both "
            f"GROUP BY {columns} HAVING sum(_cv_side) <> 0) odd"
        ).collect()
        return bool(found[0] == 0)

    def _frame(self, name: str, session: SparkSession | None = None) -> DataFrame:
        """The published rows of a mirror or view, without hidden columns."""
        table = self.published(name)
        frame = self._tables.warehouse.frame(table.path, table.version, session)
        return frame.drop(*(column for column in frame.columns if column.startswith(_HIDDEN)))

    def _stored(self, view: str) -> pa.Table | DataFrame | None:
        """The stored rows of a view as FULL takes them."""
        tables, warehouse = self._tables, self._tables.warehouse
        spec, version = tables.specs[view], tables.version(view)
        if all(warehouse.is_small(tables.specs[each].path) for each in (view, *self.views[view].inputs)):
            return warehouse.rows(spec, version)
        if warehouse.is_empty(spec.path):
            return None
        return warehouse.frame(spec.path, version, self._relations.session)

    def _commit(self, name: str, changes: Changes) -> None:
        spec, stamp = self._tables.specs[name], Stamp(0, self._control.new_attempt(), "0/0")
        self._tables.stand_at({name: self._tables.warehouse.commit(spec, self._tables.version(name), changes, stamp)})

    def _publish(self) -> ControlRecord:
        cut = self._log.cut(self._log.begin(), None)
        tables = {name: replace(table, status="live") for name, table in self._tables.versions().items()}
        return self._control.append(
            kind="publish", epoch=self._control.new_epoch(), attempt=self._control.new_attempt(), generation="bench",
            position=cut.position, complete_to=cut.complete_to, committed_at=datetime.now(UTC),
            offsets={str(partition): offset for partition, offset in cut.end.items()}, tables=tables,
        )  # fmt: skip


def measured_views(folders: Sequence[Path]) -> list[ViewDefinition]:
    """The views of these folders, but for the saved searches."""
    return [view for folder in folders for view in read_views(folder) if view.name != ALERTS]


def _levels(tables: Tables, folders: Sequence[Path]) -> list[list[CompiledView]]:
    """The measured views of these folders, parents before children."""
    graph = ViewGraph(measured_views(folders), [source.name for source in tables.sources.values()])
    compiled: dict[str, CompiledView] = {}
    levels: list[list[CompiledView]] = []
    for level in graph.levels:
        levels.append([compile_declared(view, graph, tables.sources.values(), compiled) for view in level])
        compiled |= {view.definition.name: view for view in levels[-1]}
    return levels


def _values(counted: Any) -> Iterator[tuple[str, int | float | str]]:
    """The values in a dataclass by their names, those of nested ones too; without names of job groups."""
    for each in fields(counted):
        value = getattr(counted, each.name)
        if is_dataclass(value):
            yield from _values(value)
        elif isinstance(value, int | float | str) and each.name != "job_group":
            yield each.name, value
