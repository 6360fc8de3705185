"""Step 5: bring every view whose inputs changed to the epoch; children after parents.

Whatever a view raises in its query, its comparison with the stored rows or its commit fails that view alone. It is
tried once more, then published as failed with its last good version, and the views above it with it. It is tried
again when its inputs change, and by the next engine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cdc_views import faults, metrics
from cdc_views.engine.epoch.parallel import in_parallel
from cdc_views.engine.epoch.tables import Tables
from cdc_views.engine.input.quarantine import NAME as QUARANTINE
from cdc_views.engine.spark.jobs import job_group
from cdc_views.engine.spark.session import require_alive
from cdc_views.engine.views.failures import FATAL, failure_of, require_space
from cdc_views.engine.views.relations import Relations
from cdc_views.engine.views.strategies import STRATEGIES, Recompute
from cdc_views.engine.views.strategies.guards import Bound
from cdc_views.metrics import Work
from cdc_views.plan.compiled import CompiledView
from cdc_views.store.commits.through_spark import naming_disk_errors
from cdc_views.store.storage.disk import touching

if TYPE_CHECKING:
    from cdc_views.engine.epoch.steps import Intent

TRIES: Final = 2


@dataclass(frozen=True)
class ViewResult:
    """Where a view stands after an epoch; `failure` says why it could not be brought there."""

    version: int
    status: Literal["live", "failed"]
    failure: str | None = None


@dataclass(frozen=True)
class ViewWork:
    """What a view cost in an epoch: the driver's own work, and the group of the jobs that Spark ran for it."""

    driver: Work
    job_group: str


class ViewRunner:
    """Maintains the views, level by level of their graph. `work` is that of the last epoch, by view."""

    def __init__(
        self,
        spark: SparkSession,
        levels: Sequence[Sequence[CompiledView]],
        failures: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`failures` has the views that cannot be run at all, and why."""
        self._spark = spark
        self._levels = levels
        self._failures = failures
        self._relations: Relations | None = None
        self._has_begun = False
        self.work: dict[str, ViewWork] = {}

    @property
    def views(self) -> list[CompiledView]:
        """All views, parents before children."""
        return [view for level in self._levels for view in level]

    def above(self, tables: Collection[str]) -> set[str]:
        """The views that read one of these tables, directly or not."""
        found: set[str] = set()
        for view in self.views:
            if any(source in tables or source in found for source in view.inputs):
                found.add(view.definition.name)
        return found

    def are_built(self, tables: Tables) -> bool:
        """Whether the last epoch has every view, in its present definition, and none besides or to be tried again."""
        names = {view.definition.name for view in self.views}
        published = tables.published.tables if tables.published is not None else ()
        dropped = {name for name in published if "." not in name and name != QUARANTINE} - names
        again = not self._has_begun and any(tables.is_failed(name) for name in names)
        if not all(tables.is_failed(name) for name in self._failures):
            return False
        return not dropped and not again and all(tables.is_published(name) for name in names)

    def maintain(self, tables: Tables, commits: Mapping[str, int], intent: Intent) -> dict[str, ViewResult]:
        """Bring the views to the epoch of `commits`, the new versions of the changed mirrors.

        Returns the result of every view that was touched, or that has failed and still stands so.
        """
        self._relations = self._relations or Relations(self._spark, tables.warehouse)
        epoch = _EpochOfViews(
            self._relations, tables, intent, dict(commits), self._failures, tries_failed=not self._has_begun
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


class _EpochOfViews:
    """The views' part of one epoch; `changed` are the tables that have a new version in it."""

    def __init__(
        self,
        relations: Relations,
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
        self._tables = tables
        self._intent = intent
        self._changed = changed
        self.results: dict[str, ViewResult] = {}
        self.work: dict[str, ViewWork] = {}

    def add(self, results: Mapping[str, ViewResult]) -> None:
        self.results |= results
        self._changed |= {name: result.version for name, result in results.items() if result.status == "live"}

    def is_due(self, view: CompiledView) -> bool:
        name = view.definition.name
        if name in self._intent.done:
            return False
        if name in self._failures and not self._tables.is_failed(name):
            return True
        moved = any(source in self._changed or source in self.results for source in view.inputs)
        if self._stopped(view) is not None and not self._tables.is_failed(name):
            return True
        return moved or not self._tables.is_published(name) or (self._tries_failed and self._tables.is_failed(name))

    def keep_others(self, level: Sequence[CompiledView]) -> None:
        """Results of the views that need no work: done by an earlier attempt, or failed before."""
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
            if source in self.results and self.results[source].status == "failed":
                return ViewResult(base, "failed", f'reads view "{source}", which has failed')
        for _ in range(TRIES):
            result = self._try(view, base)
            if result.status == "live":
                faults.point("views.after_first_commit")
                break
        return result

    def _stopped(self, view: CompiledView) -> str | None:
        """A mirror that the view reads and that is stopped."""
        stopped = {str(table) for table in self._intent.cut.stopped}
        return next((source for source in view.inputs if source in stopped), None)

    def _try(self, view: CompiledView, base: int) -> ViewResult:
        spec, session = self._tables.specs[view.definition.name], self._relations.session
        folder = Path(spec.path)
        with job_group(session, f"view {spec.name}") as group:
            work = self.work[spec.name] = ViewWork(Work(), group)
            try:
                with metrics.counting(work.driver), naming_disk_errors(folder), touching(folder):
                    return ViewResult(self._recompute_and_commit(view, base), "live")
            except FATAL:
                raise
            except Exception as error:
                require_alive(session, error)  # a query is not to blame for a JVM that ends
                require_space(error, folder)
                if self._tables.warehouse.latest_version(spec.path) != base:
                    raise  # the commit is in the log: recovery goes on from there
                return ViewResult(base, "failed", failure_of(error, view))

    def _recompute_and_commit(self, view: CompiledView, base: int) -> int:
        tables, name = self._tables, view.definition.name
        spec, session = tables.specs[name], self._relations.session
        inputs = {source: (tables.specs[source].path, self._changed.get(source, tables.version(source)))
                  for source in view.inputs}  # fmt: skip
        with self._relations.reading(inputs) as relations:
            stored = self._stored(view, base, session)
            most = Bound(tables.warehouse.driver_rows, tables.warehouse.driver_bytes)
            changes = STRATEGIES[view.strategy](Recompute(view, spec, session, relations, stored, most))
            return base if changes is None else tables.warehouse.commit(spec, base, changes, self._intent.stamp)

    def _stored(self, view: CompiledView, base: int, session: SparkSession) -> pa.Table | DataFrame | None:
        tables, name = self._tables, view.definition.name
        ways = tables.warehouse.ways
        small = {each: tables.warehouse.is_small(tables.specs[each].path) for each in (name, *view.inputs)}
        for source in view.inputs:
            ways.took("read", source, "driver" if small[source] else "spark")
        if all(small.values()):
            ways.took("diff", name, "driver")
            return tables.warehouse.rows(tables.specs[name], base)
        # A view that was dropped, or changed and changed back, finds the rows that it had.
        if tables.warehouse.is_empty(tables.specs[name].path):
            return None
        ways.took("diff", name, "spark")
        return tables.warehouse.frame(tables.specs[name].path, base, session)
