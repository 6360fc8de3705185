"""Tests views without Kafka and Postgres: the engine itself, over tables and a log in memory.

Everything runs as in production: the cut, the decoder and the fold of Debezium's events, mirrors and views as Delta
tables, Spark, the control log, recovery. Only the writer of the log differs: `MemorySource` decides what Postgres would
have stored, and `MemoryLog` writes what Debezium would have written.
"""

from __future__ import annotations

import math
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_views import faults
from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.config import INTERPRETED, LogSettings, UpkeepSettings
from cdc_views.engine.capture.declared import compile_declared
from cdc_views.engine.epoch.recovery import recover, take_over
from cdc_views.engine.epoch.steps import EpochWriter
from cdc_views.engine.intent import Retry
from cdc_views.engine.parallel import in_parallel
from cdc_views.engine.spark.jobs import spark_work
from cdc_views.engine.tables import Tables, as_published
from cdc_views.engine.upkeep.maintenance import Upkeep
from cdc_views.engine.views.analysis import Shapes, TextColumns
from cdc_views.engine.views.declare import declare_search_tables, declare_view, mirrored_text_columns
from cdc_views.engine.views.internal_views import InternalTable, add_internal_table, internal_tables, levels_of
from cdc_views.engine.views.maintain import ViewRunner, ViewWork
from cdc_views.engine.views.planning import plan_of
from cdc_views.engine.views.queries.relations import Relations
from cdc_views.engine.views.saved import is_saved
from cdc_views.engine.views.search.tables import SearchTable
from cdc_views.engine.views.view_tables import own_columns, view_path
from cdc_views.errors import BadView, NotRunning, UnequalRows, UnknownView, ViewFailed
from cdc_views.errors.log_offset import LogOffset
from cdc_views.host.clock import SYSTEM_CLOCK, Clock
from cdc_views.metrics import Work
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.explain import Explanation, explain
from cdc_views.store.control import ControlLog, ControlRecord, TableVersion
from cdc_views.store.reading import read_table
from cdc_views.store.storage import touching
from cdc_views.store.warehouse import TableSpec, Warehouse
from cdc_views.testing.changes import Change
from cdc_views.testing.crash import crash_at
from cdc_views.testing.local_spark import local_spark
from cdc_views.testing.memory.ddl import read_tables
from cdc_views.testing.memory.memory_log import MemoryLog
from cdc_views.testing.memory.memory_source import MemorySource
from cdc_views.testing.rows import Row, assert_equal, exact_difference
from cdc_views.testing.saved_searches import create_matches
from cdc_views.views.definition import ViewDefinition, parse_view
from cdc_views.views.graph import ViewGraph
from cdc_views.views.references import parse_query

_VALIDITY_S: Final = LogSettings.model_fields["min_compaction_lag_ms"].default / 1000
_NAME: Final = re.compile(r"\bVIEW\s+(\w+)", re.IGNORECASE)
_QUERIES_AT_ONCE: Final = 4
GENERATION: Final = "harness"


@dataclass(frozen=True)
class ViewChanges:
    """The changes of a view in an epoch. An updated row is in both lists."""

    inserted: list[Row]
    deleted: list[Row]


@dataclass(frozen=True)
class Cost:
    """The cost of a view in an epoch; zero if the epoch did not touch it.

    `keys_looked_up` and `rows_found` are those of all lookups in its inputs and its stored rows. The changed rows of
    its inputs are found, too, and all rows of a table that is read as a whole. `rows_recomputed` are the rows that its
    query returned, if the driver collected them. Rows and files read are those that were decoded and opened for it,
    counted each time. An input that several views share counts for each of them. `rows_written` are the rows in its
    new data files, `commits` its new versions, `jobs` the jobs of Spark. Its internal views count as parts of it.
    """

    keys_looked_up: int = 0
    rows_found: int = 0
    rows_recomputed: int = 0
    rows_read: int = 0
    files_read: int = 0
    rows_written: int = 0
    commits: int = 0
    jobs: int = 0


@dataclass(frozen=True)
class _Step:
    """The version of a view before the last epoch (None: it did not exist), and what that epoch did for it."""

    before: TableVersion | None
    work: Sequence[ViewWork]


@dataclass(frozen=True)
class _View:
    compiled: CompiledView
    spec: TableSpec
    level: int
    text_columns: TextColumns
    internal: Sequence[InternalTable]
    search: Sequence[SearchTable]

    @property
    def names_beside(self) -> list[str]:
        """The internal tables that belong to it."""
        return [*(each.spec.name for each in self.internal), *(each.definition.name for each in self.search)]


class ViewHarness:
    """A separate engine. Use it as a context manager."""

    def __init__(
        self,
        tables: str | Iterable[str],
        spark: SparkSession | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        warehouse: Path | None = None,
        allow_direct: bool = True,
        partitions: int = 2,
        parallel: int = 4,
        upkeep: UpkeepSettings | None = None,
        on_bad_event: Literal["stop", "park"] = "stop",
    ) -> None:
        """Read the tables. Raises BadTable, UnsupportedType.

        `tables` are CREATE TABLE statements for Postgres. Without `spark`, a local session is started, and stopped at
        the end. Without `warehouse`, a temporary folder is used, and removed at the end. `allow_direct=False` leaves
        every read and commit to Spark. `partitions` is the number of partitions per topic, `parallel` the number of
        views that run at once. `upkeep` enables due upkeep after each epoch. `on_bad_event` is the setting of that
        name.
        """
        self.clock = clock
        self._declared = read_tables(tables)
        self._source = MemorySource(self._declared, clock)
        self._log = MemoryLog(
            [table.source for table in self._declared], clock, partitions=partitions, validity_s=_VALIDITY_S
        )
        self._given = spark
        self._warehouse = warehouse
        self._allow_direct = allow_direct
        self._parallel = parallel
        self._upkeep = upkeep
        self.on_bad_event = on_bad_event
        self._views: dict[str, _View] = {}
        self._steps: dict[str, _Step] = {}
        self._has_crashed = True
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as started:
            self._spark = self._given or started.enter_context(local_spark())
            if self._warehouse is None:
                self._warehouse = Path(tempfile.mkdtemp(prefix="cdc-views-harness-"))
                started.callback(shutil.rmtree, self._warehouse, ignore_errors=True)
            self._root = self._warehouse
            self._start()
            self._resources = started.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._has_crashed = True
        self._resources.close()

    # ---- views

    def create_view(self, sql: str) -> Explanation:
        """Declare a view over existing tables and views. It is built before its first use.

        It may also be declared after a crash, as a file may be edited before a restart.
        Raises BadView, UnsupportedView.
        """
        definition = self._parsed(sql)
        parents = self._parents(definition)
        graph = ViewGraph([*(view.compiled.definition for view in parents.values()), definition], self._names)
        compiled = compile_declared(
            definition, graph, [table.source for table in self._declared], _compiled(parents.values())
        )
        declare_view(self._shapes, self._tables, self._text_columns, compiled)
        self._forget_internal_views(definition.name)
        inputs = (self._shapes, self._tables.specs, self._text_columns)
        internal = internal_tables(*inputs, compiled) if self._allow_direct else []
        for each in internal:
            add_internal_table(self._tables, each.spec)
        search = [table for level in declare_search_tables(self._tables, [compiled]) for table in level]
        level = max((parents[name].level + 1 for name in compiled.inputs if name in parents), default=0)
        spec = replace(self._tables.specs[definition.name], path=view_path(compiled))
        self._views[definition.name] = _View(
            compiled, spec, level, self._text_columns[definition.name], internal, search
        )
        self._writer.views = ViewRunner(self._spark, self._levels())
        return explain(compiled, plan_of(compiled, self._tables.specs))

    def drop_view(self, name: str) -> None:
        """Drop a view. Raises UnknownView, or BadView if another view reads it."""
        self._view(name)
        readers = [other for other, view in self._views.items() if name in view.compiled.inputs]
        if readers:
            raise BadView(f'view "{name}" is read by view "{readers[0]}"', hint="drop that one first")
        self._forget_internal_views(name)
        del self._views[name]
        self._tables.remove(name)
        self._writer.views = ViewRunner(self._spark, self._levels())

    def _forget_internal_views(self, name: str) -> None:
        for each in self._views[name].names_beside if name in self._views else ():
            self._tables.remove(each)

    @property
    def views(self) -> list[str]:
        """The names of all views, in the order of their declaration."""
        return list(self._views)

    # ---- changes

    def apply(self, changes: Iterable[Change]) -> None:
        """Make the changes in one transaction, and run one epoch with it.

        Raises UnknownTable, BadChange and its subclasses; nothing has changed then.
        """
        self.apply_transactions([list(changes)])

    def apply_transactions(self, transactions: Iterable[Iterable[Change]]) -> None:
        """Make several transactions, and run one epoch with all. Raises like `apply`; earlier transactions stay."""
        self._build()
        before = self._last
        for changes in transactions:
            self._log.write(self._source.commit(changes))
        self.run_epoch()
        self._steps = {name: self._step(name, before) for name in self._views}

    def put(
        self, table: str, key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes]] | None = None
    ) -> LogOffset:
        """Write a record of any bytes into a table's topic; the next epoch meets it. Returns where it is."""
        return self._log.put(TableName.parse(table), key, value, headers)

    def retry(self, place: LogOffset | None = None) -> ControlRecord:
        """Apply parked events again: those of the key of the event at `place`, or all. Raises UnknownEvent."""
        self._require_running()
        if place is not None:
            self._writer.quarantine.find(place)
        return self._writer.run_retry(Retry(place))

    def discard(self, place: LogOffset) -> None:
        """Give one event up, and apply what waits for it. Raises UnknownEvent."""
        self._require_running()
        if self._writer.quarantine.discard(self._control, place) != "stopped":
            self.retry(place)

    def run_epoch(self, idle_interval_s: float = 0) -> ControlRecord | None:
        """Run the next epoch as the engine does. Returns None if nothing has changed and nothing is due yet.

        Without changes, a position is published at most every `idle_interval_s` of the clock.
        """
        self._require_running()
        with self._writing():
            record = self._writer.run(idle_interval_s)
        if self._upkeep is not None:
            self._maintenance.run()
        return record

    # ---- results

    def rows(self, name: str) -> list[Row]:
        """The stored rows of a view, or the rows of a table's mirror, in no order. Raises ViewFailed."""
        self._build()
        return self._stored(name, self._live(name))

    def recomputed(self, name: str) -> list[Row]:
        """The rows that Spark computes for the view's SQL over the mirrors; views that it reads are recomputed, too."""
        return self.recomputed_all([self._view(name).compiled.definition.name])[name]

    def recomputed_all(self, names: Iterable[str] | None = None) -> dict[str, list[Row]]:
        """The same for many views, or for all, several at a time."""
        self._build()
        views = [self._view(name) for name in (self._views if names is None else names)]
        made: dict[str, str] = {}
        try:
            with self._scratch.reading(self._mirrors_below(views)) as mirrors:
                queries = [self._query(view, mirrors, made) for view in views]
                found = in_parallel(lambda query: self._scratch.session.sql(query).toArrow(), queries, _QUERIES_AT_ONCE)
        finally:
            for name in made.values():
                self._scratch.session.catalog.dropTempView(name)
            self._scratch.forget()
        return {
            view.spec.name: _tuples(rows.rename_columns(own_columns(view.compiled, view.spec)))
            for view, rows in zip(views, found, strict=True)
        }

    def verify(self) -> None:
        """Compare every view with its SQL, run from scratch. Raises UnequalRows with the view, ViewFailed."""
        problems = []
        for name, wanted in self.recomputed_all().items():
            try:
                assert_equal(self.rows(name), wanted, f'view "{name}"')
            except UnequalRows as error:
                problems.append(error.message)
        if problems:
            raise UnequalRows("\n".join(problems))

    def changes(self, name: str) -> ViewChanges:
        """The rows that the last `apply` inserted into and deleted from a view; all rows if it was built since.

        Raises ViewFailed.
        """
        self._build()
        after = self._live(self._view(name).spec.name)
        before = self._steps[name].before
        if before is not None and before.version == after.version:
            return ViewChanges([], [])
        old_rows = [] if before is None else self._stored(name, before)
        return ViewChanges(*exact_difference(self._stored(name, after), old_rows))

    def cost(self, name: str) -> Cost:
        """The cost of a view in the last `apply`, or of building it, if it was built since."""
        self._build()
        driver, rows_read, files_read, jobs = Work(), 0, 0, 0
        for work in self._steps[self._view(name).spec.name].work:
            spark = spark_work(self._spark, work.job_group)
            driver.add(work.driver)
            rows_read, files_read, jobs = rows_read + spark.rows_read, files_read + spark.files_read, jobs + spark.jobs
        return Cost(
            keys_looked_up=driver.keys_looked_up,
            rows_found=driver.rows_found,
            rows_recomputed=driver.rows_recomputed,
            rows_read=driver.rows_read + rows_read,
            files_read=driver.files_read + files_read,
            rows_written=driver.rows_written,
            commits=driver.commits,
            jobs=jobs,
        )

    def internal_views(self, name: str) -> list[str]:
        """The internal views that the engine keeps for a view."""
        self._build()
        return [each.spec.name for each in self._view(name).internal]

    @property
    def warehouse(self) -> Path:
        """The folder of the Delta tables and the control log."""
        return self._root

    @property
    def position(self) -> Lsn:
        """The position after the last transaction."""
        return self._log.end

    @property
    def records(self) -> list[ControlRecord]:
        """Every record of the control log, oldest first."""
        return self._control.records

    # ---- crashes

    @contextmanager
    def crash_at(self, point: str, *, times: int = 1) -> Iterator[None]:
        """Let the engine crash in the block when it reaches the point; call `restart` next. Raises FaultNotReached.

        Views that are not built yet are built first, so the crash happens in the work of the block.
        """
        if not self._has_crashed:
            self._build()
        with crash_at(point, times=times):
            try:
                yield
            except faults.InjectedFault:
                self._has_crashed = True
                raise

    def restart(self) -> None:
        """Do what a new process does: take over the warehouse, recover, and continue to the end of the log."""
        self._has_crashed = True
        before = self._tables.published
        self._start()
        self.run_epoch(idle_interval_s=math.inf)
        self._steps = {name: self._step(name, before) for name in self._views}

    # ---- inside

    def _start(self) -> None:
        self._control = ControlLog.open(self._root, uuid4().hex, self.clock)
        self._tables = Tables(
            Warehouse(self._root, self._spark, allow_direct=self._allow_direct),
            GENERATION,
            [table.source for table in self._declared],
            self._parallel,
            as_published(self._control.published_in(GENERATION)),
        )
        self._text_columns = mirrored_text_columns(self._tables)
        for view in self._views.values():
            self._tables.add(view.spec)
            for each in view.internal:
                add_internal_table(self._tables, each.spec)
            declare_search_tables(self._tables, [view.compiled])
            self._text_columns[view.spec.name] = view.text_columns
        self._shapes = Shapes(self._spark)
        self._scratch = Relations(self._spark, self._tables.warehouse)
        for name, value in INTERPRETED.items():
            self._scratch.session.conf.set(name, value)
        runner = ViewRunner(self._spark, self._levels())
        self._writer = EpochWriter(self._log, self._tables, runner, self._control, parks=self.on_bad_event == "park")
        with self._writing():
            takeover = take_over(self._control, self._tables, {})
            if self._tables.published is None:
                self._tables.skip(self._log.begin())
            self._begin(takeover)
            recover(self._writer)
        self._maintenance = Upkeep(self._root, self._tables, self._control, self._upkeep or UpkeepSettings())
        self._has_crashed = False

    def _begin(self, takeover: ControlRecord) -> None:
        """What an engine does between its takeover and its recovery: nothing, as no view is built beside the epochs."""

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Do around the work what the engine does."""
        with self._control.writing(), touching(self._root):
            yield

    def _require_running(self) -> None:
        if self._has_crashed:
            raise NotRunning("the harness does not run", hint='use it in "with", and call restart() after a crash')

    @property
    def _last(self) -> ControlRecord:
        assert self._tables.published is not None
        return self._tables.published

    @property
    def _names(self) -> list[TableName]:
        return [table.source.name for table in self._declared]

    def _levels(self) -> list[list[CompiledView]]:
        depth = max((view.level + 1 for view in self._views.values()), default=0)
        levels: list[list[CompiledView]] = []
        for level in range(depth):
            views = [view for view in self._views.values() if view.level == level]
            internal = (each for view in views for each in view.internal)
            levels += [*levels_of(internal), [view.compiled for view in views]]
        search = [table for view in self._views.values() for table in view.search]
        parts: list[list[CompiledView]] = [
            [table for table in search if table.part == part] for part in ("postings", "totals")
        ]
        return [*levels, *parts]

    def _build(self) -> None:
        """Run an epoch for the views declared since the last one."""
        self._require_running()
        built = self._tables.published.tables if self._tables.published is not None else None
        wanted = {name: [name, *view.names_beside] for name, view in self._views.items()}
        new = [
            name for name, parts in wanted.items() if built is None or not all(map(self._tables.is_published, parts))
        ]
        if built is None or new:
            self.run_epoch()
            self._steps |= {name: self._step(name, None) for name in new}

    def _step(self, name: str, before: ControlRecord | None) -> _Step:
        earlier = None if before is None else before.tables.get(name)
        names = [name, *self._views[name].names_beside]
        return _Step(earlier, [work for each in names if (work := self._writer.views.work.get(each)) is not None])

    def _parsed(self, sql: str) -> ViewDefinition:
        found = _NAME.search(sql)
        return parse_view(sql, Path(f"{found[1] if found else 'view'}.sql"))

    def _parents(self, definition: ViewDefinition) -> dict[str, _View]:
        """The views that a view reads, directly or indirectly, and the existing view of its name."""
        found: dict[str, _View] = {}
        pending = [reference.name.lower() for reference in parse_query(definition).references]
        pending.append(definition.name)
        while pending:
            name = pending.pop()
            if name in self._views and name not in found:
                found[name] = self._views[name]
                pending.extend(found[name].compiled.inputs)
        return found

    def _view(self, name: str) -> _View:
        if name not in self._views:
            raise UnknownView(f'unknown view "{name}"', hint=f"there are {', '.join(self._views) or 'none'}")
        return self._views[name]

    def _live(self, name: str) -> TableVersion:
        """The current version of a view, or of a table's mirror."""
        table = str(TableName.parse(name))
        is_table = name not in self._views and table in self._tables.sources
        found = self._last.tables[table if is_table else self._view(name).spec.name]
        if found.status == "failed":
            raise ViewFailed(f'view "{name}" has failed: {self._tables.failure(name)}')
        return found

    def _stored(self, name: str, table: TableVersion) -> list[Row]:
        view = self._views.get(name)
        columns = None if view is None else own_columns(view.compiled, view.spec)
        rows = read_table(self._root, table.path, table.version, columns)
        return _tuples(rows.select(columns or rows.column_names))

    def _mirrors_below(self, views: Iterable[_View]) -> dict[str, tuple[str, int]]:
        """Path and version of every mirror that the views read, directly or indirectly."""
        pending, seen = [source for view in views for source in view.compiled.inputs], set[str]()
        while pending:
            source = pending.pop()
            if source not in seen and source in self._views:
                pending.extend(self._views[source].compiled.inputs)
            seen.add(source)
        mirrors = {source: self._last.tables[source] for source in seen if source not in self._views}
        return {source: (table.path, table.version) for source, table in mirrors.items()}

    def _query(self, view: _View, mirrors: Mapping[str, str], made: dict[str, str]) -> str:
        """The view's SQL over the mirrors; `made` has the temporary views for the views that it reads."""
        for source in view.compiled.inputs:
            if source in self._views and source not in made:
                parent = self._views[source]
                frame = self._scratch.session.sql(self._query(parent, mirrors, made))
                made[source] = f"_cv_from_scratch_{source}"
                frame.toDF(*own_columns(parent.compiled, parent.spec)).createOrReplaceTempView(made[source])
        if is_saved(view.compiled):
            name = made[f"matches of {view.spec.name}"] = f"_cv_matches_of_{view.spec.name}"
            create_matches(self._scratch.session, name, view.compiled, self._tables.specs, {**mirrors, **made})
            return f"SELECT * FROM {name}"
        return view.compiled.query({**mirrors, **made})


def _tuples(rows: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def _compiled(views: Iterable[_View]) -> Mapping[str, CompiledView]:
    return {view.spec.name: view.compiled for view in views}
