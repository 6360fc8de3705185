"""Step 5: updates every view whose inputs changed in the epoch; parents before children.

An error in a view's query, in the comparison with its stored rows, or in its commit fails that view alone. The view is
tried once more, and then published as failed with its last good version, together with the views above it. It is
tried again when its inputs change, and by the next engine.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cdc_views import faults, metrics
from cdc_views.engine.intent import Intent
from cdc_views.engine.parallel import in_parallel
from cdc_views.engine.spark.jobs import job_group
from cdc_views.engine.spark.lost_driver import require_alive
from cdc_views.engine.tables import Tables
from cdc_views.engine.views.failures import FATAL, failure_of, require_space
from cdc_views.engine.views.inputs import Inputs
from cdc_views.engine.views.planning import plan_of
from cdc_views.engine.views.relations import Relations
from cdc_views.engine.views.small_queries import SmallQueries
from cdc_views.engine.views.strategies import (
    STRATEGIES,
    Incremental,
    Plan,
    Recompute,
    TooMany,
    add,
    add_groups,
    keys,
    patch,
)
from cdc_views.engine.views.strategies.guards import Bound
from cdc_views.metrics import Work
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.incremental.maintenance import Maintenance
from cdc_views.store.commits import naming_disk_errors
from cdc_views.store.control import INTERNAL_VIEW_FOLDER
from cdc_views.store.storage import touching
from cdc_views.store.warehouse import Changes

_LOGGER: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class ViewResult:
    """The version and status of a view after an epoch; `failure` says why the view could not be updated.

    `work` is what the update cost, if there was one.
    """

    version: int
    status: Literal["live", "failed"]
    failure: str | None = None
    work: Work | None = None


@dataclass(frozen=True)
class ViewWork:
    """What a view cost in an epoch: the work of the driver, and the group of the jobs that Spark ran."""

    driver: Work
    job_group: str


class ViewRunner:
    """Maintains the views, level by level of their graph. `work` is the work of the last epoch, by view."""

    def __init__(
        self,
        spark: SparkSession,
        levels: Sequence[Sequence[CompiledView]],
        failures: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`failures` maps each view that cannot be run at all to the reason."""
        self._spark = spark
        self._levels = levels
        self._failures = failures
        self._relations: Relations | None = None
        self._queries: SmallQueries | None = None
        self._plans: dict[str, Maintenance] = {}
        self._has_begun = False
        self.work: dict[str, ViewWork] = {}

    @property
    def views(self) -> list[CompiledView]:
        """All views, parents before children."""
        return [view for level in self._levels for view in level]

    def above(self, tables: Collection[str]) -> set[str]:
        """The views that read one of these tables, directly or through other views."""
        found: set[str] = set()
        for view in self.views:
            if any(source in tables or source in found for source in view.inputs):
                found.add(view.definition.name)
        return found

    def are_built(self, tables: Tables) -> bool:
        """Whether the last epoch has exactly these views, as they are defined now, and none is to be retried."""
        names = {view.definition.name for view in self.views}
        published = tables.published.tables if tables.published is not None else {}
        dropped = {name for name, table in published.items() if table.kind == "view"} - names
        again = not self._has_begun and any(tables.is_failed(name) for name in names)
        if not all(tables.is_failed(name) for name in self._failures):
            return False
        return not dropped and not again and all(tables.is_published(name) for name in names)

    def maintain(self, tables: Tables, commits: Mapping[str, int], intent: Intent) -> dict[str, ViewResult]:
        """Update the views after `commits`, the new versions of the changed mirrors.

        Returns the result of every view that was touched, and of every view that has failed and was not retried.
        """
        self._relations = self._relations or Relations(self._spark, tables.warehouse)
        self._queries = self._queries or SmallQueries(self._spark)
        epoch = _EpochOfViews(
            self._relations,
            self._queries,
            self._plan,
            tables,
            intent,
            dict(commits),
            self._failures,
            tries_failed=not self._has_begun,
        )
        try:
            for level in self._levels:
                due = [view for view in level if epoch.is_due(view)]
                epoch.keep_others(level)
                brought = in_parallel(epoch.bring, due, tables.parallel_commits)
                epoch.add({view.definition.name: result for view, result in zip(due, brought, strict=True)})
            self._has_begun = True
        finally:
            self.work = epoch.work
            self._relations.forget()
        return epoch.results

    def _plan(self, view: CompiledView, tables: Tables) -> Maintenance:
        """How a view is maintained; planned once."""
        name = view.definition.name
        if name not in self._plans:
            self._plans[name] = plan_of(view, tables.specs)
        return self._plans[name]


class _EpochOfViews:
    """The views' part of one epoch. `changed` maps the tables that have a new version in the epoch to that version."""

    def __init__(
        self,
        relations: Relations,
        queries: SmallQueries,
        plan: Callable[[CompiledView, Tables], Maintenance],
        tables: Tables,
        intent: Intent,
        changed: dict[str, int],
        failures: Mapping[str, str],
        *,
        tries_failed: bool,
    ) -> None:
        self._failures = failures
        self._tries_failed = tries_failed
        self._relations = relations
        self._queries = queries
        self._plan = plan
        self._tables = tables
        self._intent = intent
        self._changed = changed
        self._inputs = Inputs(tables, changed)
        self.results: dict[str, ViewResult] = {}
        self.work: dict[str, ViewWork] = {}

    def add(self, results: Mapping[str, ViewResult]) -> None:
        self.results |= results
        for name, result in results.items():
            if result.status == "live" and self._is_changed(name, result.version):
                self._changed[name] = result.version

    def _is_changed(self, name: str, version: int) -> bool:
        """Whether a view's table has other rows at this version than the last epoch has published."""
        return not self._tables.is_live(name) or name in self._intent.done or version != self._tables.version(name)

    def is_due(self, view: CompiledView) -> bool:
        name = view.definition.name
        if name in self._intent.done:
            return False
        if name in self._failures and not self._tables.is_failed(name):
            return True
        moved = any(source in self._changed or self._has_failed(source) for source in view.inputs)
        if self._stopped(view) is not None and not self._tables.is_failed(name):
            return True
        return moved or not self._tables.is_published(name) or (self._tries_failed and self._tables.is_failed(name))

    def keep_others(self, level: Sequence[CompiledView]) -> None:
        """Add the results of the views that need no work: done by an earlier attempt, or failed before."""
        for name in (view.definition.name for view in level if not self.is_due(view)):
            if name in self._intent.done:
                self.add({name: ViewResult(self._intent.done[name], "live")})
            elif self._tables.is_failed(name):
                self.results[name] = ViewResult(self._tables.version(name), "failed", self._tables.failure(name))

    def bring(self, view: CompiledView) -> ViewResult:
        name = view.definition.name
        base = self._tables.version(name)
        if name in self._failures:
            return ViewResult(base, "failed", self._failures[name])
        if (stopped := self._stopped(view)) is not None:
            return ViewResult(base, "failed", f'reads table "{stopped}", which is stopped')
        for source in view.inputs:
            if self._has_failed(source):
                return ViewResult(base, "failed", f'reads view "{source}", which has failed')
        result = self._try(view, base, is_incremental=True)
        # An internal view fails where an expression does, and nobody waits for it.
        if result.status == "failed" and not self._is_internal(view):
            first, result = result, self._try(view, base, is_incremental=False)
            if result.status == "live":
                self._tables.warehouse.ways.took("view", name, "failed")
                _LOGGER.error('view "%s": computed in full, after an error: %s', name, first.failure)
        if result.status == "live":
            faults.point("views.after_first_commit")
        return result

    def _is_internal(self, view: CompiledView) -> bool:
        return self._tables.specs[view.definition.name].path.startswith(INTERNAL_VIEW_FOLDER)

    def _has_failed(self, name: str) -> bool:
        return name in self.results and self.results[name].status == "failed"

    def _stopped(self, view: CompiledView) -> str | None:
        """The first stopped mirror that the view reads; None if there is none."""
        stopped = {str(table) for table in self._intent.cut.stopped}
        return next((source for source in view.inputs if source in stopped), None)

    def _try(self, view: CompiledView, base: int, *, is_incremental: bool) -> ViewResult:
        spec, session = self._tables.specs[view.definition.name], self._relations.session
        folder = Path(spec.path)
        with job_group(session, f"view {spec.name}") as group:
            earlier = self.work.get(spec.name)
            work, began = earlier.driver if earlier is not None else Work(), time.monotonic()
            self.work[spec.name] = ViewWork(work, group)
            try:
                with metrics.counting(work), naming_disk_errors(folder), touching(folder):
                    changes = self._changes(view, base, is_incremental=is_incremental)
                    commit = self._tables.warehouse.commit
                    version = base if changes is None else commit(spec, base, changes, self._intent.stamp)
                    return ViewResult(version, "live", work=work)
            except FATAL:
                raise
            except Exception as error:
                require_alive(session, error)  # a JVM that has ended is not the fault of a query
                require_space(error, folder)
                if self._tables.warehouse.latest_version(spec.path) != base:
                    raise  # the commit is in the table's log: recovery continues from there
                return ViewResult(base, "failed", failure_of(error, view), work)
            finally:
                work.milliseconds += round((time.monotonic() - began) * 1000)

    def _changes(self, view: CompiledView, base: int, *, is_incremental: bool) -> Changes | None:
        name, ways = view.definition.name, self._tables.warehouse.ways
        for way, update in self._incremental(view, base) if is_incremental else ():
            try:
                changes = update()
            except TooMany:
                continue
            ways.took("view", name, way)
            return changes
        ways.took("view", name, "full")
        return self._recomputed(view, base)

    def _incremental(self, view: CompiledView, base: int) -> Iterator[tuple[str, Callable[[], Changes | None]]]:
        """The strategies to try before FULL; none if its table or an internal view is not as of the last epoch."""
        tables, name = self._tables, view.definition.name
        plan = self._plan(view, tables)
        if plan.text is None or not tables.is_live(name) or not self._can_look_up():
            return
        internal = plan.keys.internal_views if plan.keys is not None else frozenset()
        if any(self._has_failed(each) or not tables.is_live(each) for each in internal):
            return
        versions = {source: self._inputs.versions(source) for source in (*view.inputs, *internal)}
        known = {source: found for source, found in versions.items() if found is not None}
        if len(known) < len(versions):
            return
        spec, text, warehouse = tables.specs[name], plan.text, tables.warehouse

        def work(chosen: Plan) -> Incremental[Plan]:
            return Incremental(view, spec, base, chosen, text, self._inputs, known, warehouse, self._queries)

        if plan.adds is not None:
            yield "add", partial(add, work(plan.adds))
        if plan.patch is not None:
            yield "patch", partial(patch, work(plan.patch))
        if plan.group_adds is not None:
            yield "add", partial(add_groups, work(plan.group_adds))
        if plan.keys is not None:
            yield "keys", partial(keys, work(plan.keys))

    def _can_look_up(self) -> bool:
        return self._tables.warehouse.allows_direct and self._queries.is_possible

    def _recomputed(self, view: CompiledView, base: int) -> Changes | None:
        tables = self._tables
        spec, session = tables.specs[view.definition.name], self._relations.session
        inputs = {source: (tables.specs[source].path, self._inputs.version(source)) for source in view.inputs}
        with self._relations.reading(inputs) as relations:
            stored = self._stored(view, base, session)
            most = Bound(tables.warehouse.driver_rows, tables.warehouse.driver_bytes)
            return STRATEGIES["FULL"](Recompute(view, spec, session, relations, stored, most))

    def _stored(self, view: CompiledView, base: int, session: SparkSession) -> pa.Table | DataFrame | None:
        tables, name = self._tables, view.definition.name
        ways = tables.warehouse.ways
        small = {each: tables.warehouse.is_small(tables.specs[each].path) for each in (name, *view.inputs)}
        for source in view.inputs:
            ways.took("read", source, "driver" if small[source] else "spark")
        if all(small.values()):
            ways.took("diff", name, "driver")
            return tables.warehouse.rows(tables.specs[name], base)
        # The table of a view that was dropped, or changed and changed back, still has the rows that it had.
        if tables.warehouse.is_empty(tables.specs[name].path):
            return None
        ways.took("diff", name, "spark")
        return tables.warehouse.frame(tables.specs[name].path, base, session)
