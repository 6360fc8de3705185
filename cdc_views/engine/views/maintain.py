"""Step 5: updates every view whose inputs changed in the epoch; parents before children.

An error in a view's query, in the comparison with its stored rows, or in its commit fails that view alone. The view is
tried by its next strategy, ADD and PATCH by KEYS, and KEYS by FULL. If that one fails, too, the view is published as
failed with its last good version, together with the views above it. It is tried again when its inputs change, and by
the next engine.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from pyspark.sql import SparkSession

from cdc_views import faults, metrics
from cdc_views.engine.intent import Intent
from cdc_views.engine.parallel import in_parallel
from cdc_views.engine.spark.jobs import job_group
from cdc_views.engine.spark.lost_driver import require_alive
from cdc_views.engine.tables import Tables
from cdc_views.engine.views.choice import FULL, Choice, Kept, Update
from cdc_views.engine.views.failures import FATAL, failure_of, require_space
from cdc_views.engine.views.inputs import Inputs
from cdc_views.engine.views.internal_views import renew_internal_table
from cdc_views.engine.views.kept import kept_view
from cdc_views.engine.views.planning import plan_of
from cdc_views.engine.views.queries.relations import Relations
from cdc_views.engine.views.queries.small_queries import SmallQueries
from cdc_views.engine.views.search.tables import SearchTable
from cdc_views.engine.views.strategies import TooMany
from cdc_views.errors import Fenced, StackError
from cdc_views.metrics import ViewUpdate, WhyFull, Work
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.incremental.maintenance import Maintenance
from cdc_views.store.commits import naming_disk_errors
from cdc_views.store.control import KeptView
from cdc_views.store.storage import touching

_LOGGER: Final = logging.getLogger(__name__)
_LOST: Final = "its table was removed, or another program has written to it"


@dataclass(frozen=True)
class ViewResult:
    """The version and status of a view after an epoch; `failure` says why the view could not be updated.

    `work` is what the update cost, if there was one.
    """

    version: int
    status: Literal["live", "failed"]
    failure: str | None = None
    work: ViewUpdate | None = None


class NotByChanges(Exception):
    """A view has to be computed in full; the message says which."""


@dataclass(frozen=True)
class ViewWork:
    """What a view cost in an epoch: the work of the driver, and the group of the jobs that Spark ran."""

    driver: Work
    job_group: str


class ViewRunner:
    """Maintains the views, level by level of their graph, except those that are skipped.

    `work` is the work of the last epoch, by view. `tag` is set for work beside the epochs. With `by_changes`, no view
    may be computed in full.
    """

    def __init__(
        self,
        spark: SparkSession,
        levels: Sequence[Sequence[CompiledView]],
        failures: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`failures` maps each view that cannot be run at all to the reason."""
        self.tag: str | None = None
        self.by_changes = False
        self._spark = spark
        self._all_levels = levels
        self._left_out: frozenset[str] = frozenset()
        self._failures = failures
        self._relations: Relations | None = None
        self._queries: SmallQueries | None = None
        self._plans: dict[str, Maintenance] = {}
        self._has_begun = False
        self._lost: set[str] = set()
        self._kept_queries: Kept = {}
        self.work: dict[str, ViewWork] = {}

    @property
    def levels(self) -> list[list[CompiledView]]:
        """The views by the level of their graph, parents before children."""
        return [[view for view in level if view.definition.name not in self._left_out] for level in self._all_levels]

    @property
    def views(self) -> list[CompiledView]:
        """All views, parents before children."""
        return [view for level in self.levels for view in level]

    def leave_out(self, names: Collection[str]) -> None:
        """Leave the views out of the epochs until they are admitted. The views above them must be among them."""
        self._left_out |= frozenset(names)

    def admit(self, names: Collection[str]) -> None:
        """Maintain the views again, from the next epoch on."""
        self._left_out -= frozenset(names)

    def has_failed_to_run(self, name: str) -> bool:
        """Whether a view cannot be run at all."""
        return name in self._failures

    def strategy(self, view: CompiledView, tables: Tables) -> str:
        """The strategy of a view."""
        return "ADD" if isinstance(view, SearchTable) else self._plan(view, tables).strategy

    def read_by(self, view: CompiledView, tables: Tables) -> set[str]:
        """The tables that a view reads, and the internal ones that are to be as new: a search index has two tables."""
        if isinstance(view, SearchTable):
            parts = (each for each in self.views if isinstance(each, SearchTable) and each.documents == view.documents)
            return {view.documents, *(each.definition.name for each in parts)} - {view.definition.name}
        return {*view.inputs, *self._plan(view, tables).internal_views}

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
        dropped = {name for name, table in published.items() if table.kind == "view"} - names - tables.building.keys()
        again = not self._has_begun and any(tables.is_failed(name) for name in names)
        if not all(tables.is_failed(name) for name in self._failures):
            return False
        return not dropped and not again and all(tables.is_published(name) for name in names)

    def renew_lost(self, tables: Tables) -> None:
        """Give the internal views whose tables the last epoch could not use new ones. No attempt may be under way."""
        for name in self._lost:
            renew_internal_table(tables, name)
        self._lost.clear()

    def maintain(self, tables: Tables, commits: Mapping[str, int], intent: Intent) -> dict[str, ViewResult]:
        """Update the views after `commits`, the new versions of the changed mirrors.

        Returns the result of every view that was touched, and of every view that has failed and was not retried.
        Raises NotByChanges if a view has to be computed in full and may not be; others may be committed then.
        """
        self._relations = self._relations or Relations(self._spark, tables.warehouse)
        self._queries = self._queries or SmallQueries(self._spark)
        epoch = _EpochOfViews(
            self._relations,
            self._queries,
            self._plan,
            self._kept_queries,
            tables,
            intent,
            dict(commits),
            self._failures,
            self.tag,
            tries_failed=not self._has_begun,
            by_changes=self.by_changes,
        )
        try:
            for level in self.levels:
                due = [view for view in level if epoch.is_due(view)]
                epoch.keep_others(level)
                brought = in_parallel(epoch.bring, due, tables.parallel_commits)
                epoch.add({view.definition.name: result for view, result in zip(due, brought, strict=True)})
            self._has_begun = True
        finally:
            self.work = epoch.work
            self._lost |= epoch.lost
            self._relations.forget()
        return epoch.results

    def strategies(self, tables: Tables) -> dict[str, str]:
        """The strategy of each view with a SELECT that can be run."""
        return {view.definition.name: self.strategy(view, tables) for view in self._runnable()}

    def kept(self, tables: Tables) -> dict[str, KeptView]:
        """How each of these views is kept, for readers."""
        return {view.definition.name: kept_view(view, self._plan(view, tables)) for view in self._runnable()}

    def _runnable(self) -> list[CompiledView]:
        return [
            view
            for view in self.views
            if view.definition.name not in self._failures and not isinstance(view, SearchTable)
        ]

    def _plan(self, view: CompiledView, tables: Tables) -> Maintenance:
        """How a view is maintained; planned once."""
        name = view.definition.name
        if name not in self._plans:
            self._plans[name] = plan = plan_of(view, tables.specs)
            if plan.fault is not None:
                tables.warehouse.ways.took("view", name, "failed")
                _LOGGER.error('view "%s": planned as %s, after %s', name, plan.strategy, plan.fault)
        return self._plans[name]


class _EpochOfViews:
    """The views' part of one epoch. `changed` maps the tables that have a new version in the epoch to that version."""

    def __init__(
        self,
        relations: Relations,
        queries: SmallQueries,
        plan: Callable[[CompiledView, Tables], Maintenance],
        kept_queries: Kept,
        tables: Tables,
        intent: Intent,
        changed: dict[str, int],
        failures: Mapping[str, str],
        tag: str | None,
        *,
        tries_failed: bool,
        by_changes: bool,
    ) -> None:
        self._failures = failures
        self._tag = tag
        self._tries_failed = tries_failed
        self._relations = relations
        self._plan = plan
        self._tables = tables
        self._intent = intent
        self._changed = changed
        self._choice = Choice(
            tables, Inputs(tables, changed), relations, queries, self._has_failed, kept_queries, by_changes
        )
        self.results: dict[str, ViewResult] = {}
        self.work: dict[str, ViewWork] = {}
        self.lost: set[str] = set()

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
        moved = any(source in self._changed or self._has_failed(source) for source in self._causes(view))
        if self._stopped(view) is not None and not self._tables.is_failed(name):
            return True
        return moved or not self._tables.is_published(name) or (self._tries_failed and self._tables.is_failed(name))

    def _causes(self, view: CompiledView) -> Sequence[str]:
        """The tables whose changes make a view due. A failed search index does not wait for a change of a document."""
        if isinstance(view, SearchTable) and self._tables.is_failed(view.definition.name):
            return (*view.inputs, *view.below)
        return view.inputs

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
        if self._tables.is_internal(name) and self._tables.warehouse.latest_version(self._path(view)) != base:
            self.lost.add(name)
            return ViewResult(base, "failed", _LOST)
        result = self._update(view, base)
        if result.status == "live":
            faults.point("views.after_first_commit")
        return result

    def _path(self, view: CompiledView) -> str:
        return self._tables.specs[view.definition.name].path

    def _has_failed(self, name: str) -> bool:
        return name in self.results and self.results[name].status == "failed"

    def _stopped(self, view: CompiledView) -> str | None:
        """The first stopped mirror that the view reads; None if there is none."""
        stopped = {str(table) for table in self._intent.cut.stopped}
        return next((source for source in view.inputs if source in stopped), None)

    def _update(self, view: CompiledView, base: int) -> ViewResult:
        spec, session = self._tables.specs[view.definition.name], self._relations.session
        work, began = ViewUpdate(), time.monotonic()
        with job_group(session, f"view {spec.name}", self._tag) as group:
            self.work[spec.name] = ViewWork(work, group)
            try:
                with metrics.counting(work):
                    return replace(self._updated(view, base, work), work=work)
            finally:
                work.milliseconds = round((time.monotonic() - began) * 1000)

    def _updated(self, view: CompiledView, base: int, work: ViewUpdate) -> ViewResult:
        """The result of the first strategy that gives the rows; if none does, the view has failed by the last error.

        Notes in `work` why the view is computed in full.
        """
        name, ways, errors = view.definition.name, self._tables.warehouse.ways, dict[str, str]()
        plan = self._plan(view, self._tables)
        why: WhyFull | None = None
        for way, update in self._choice.updates(view, plan, base):
            if way == FULL:
                ways.took("view", name, way)
                work.why_full = why or self._choice.why_full(view, plan)
            try:
                version = self._committed(view, base, update)
            except TooMany as reason:
                _LOGGER.debug('view "%s": not by %s in this epoch: %s', name, way.upper(), reason)
                why = reason.why
                continue
            except (Fenced, StackError):
                raise
            except Exception as error:
                if not self._has_lost(self._internal_tables(view, plan, way)):
                    self._require_of_view(error, view, base)
                errors[way], why = failure_of(error, view), "error"
                if self._tables.is_internal(name):
                    break  # It fails where an expression does, and nobody waits for it.
                continue
            ways.took("view", name, way)
            if errors:
                ways.took("view", name, "failed")
                shown = "; ".join(f"{each.upper()}: {error}" for each, error in errors.items())
                text = 'view "%s": updated by %s, after an error of %s'
                _LOGGER.error(text, name, way.upper(), shown, extra={"fields": {"table": name, "error": "ViewFailed"}})
            return ViewResult(version, "live")
        if self._choice.by_changes:
            raise NotByChanges(f'view "{name}" has to be computed in full')
        return ViewResult(base, "failed", [*errors.values()][-1])

    def _committed(self, view: CompiledView, base: int, update: Update) -> int:
        spec, warehouse = self._tables.specs[view.definition.name], self._tables.warehouse
        folder = Path(spec.path)
        with naming_disk_errors(folder), touching(folder):
            changes = update()
            return base if changes is None else warehouse.commit(spec, base, changes, self._intent.stamp)

    def _internal_tables(self, view: CompiledView, plan: Maintenance, way: str) -> Collection[str]:
        """The internal views whose tables an update reads or writes."""
        own = {view.definition.name} if self._tables.is_internal(view.definition.name) else set[str]()
        return own | (plan.internal_views if way != FULL else set())

    def _has_lost(self, internal: Collection[str]) -> bool:
        """Whether one of these tables is no longer as the engine left it."""
        specs, inputs = self._tables.specs, self._choice.inputs
        is_whole = self._tables.warehouse.is_whole
        lost = {name for name in internal if not is_whole(specs[name].path, inputs.version(name))}
        self.lost |= lost
        return bool(lost)

    def _require_of_view(self, error: Exception, view: CompiledView, base: int) -> None:
        """Raise an error that is not the fault of a view, or that followed its commit."""
        if isinstance(error, FATAL):
            raise error
        path = self._path(view)
        require_alive(self._relations.session, error)  # a JVM that has ended is not the fault of a query
        require_space(error, Path(path))
        if self._tables.warehouse.latest_version(path) != base:
            raise error  # the commit is in the table's log: recovery continues from there
