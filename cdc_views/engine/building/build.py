"""Builds views as the epochs would, but beside them: from the tables of one published epoch to those of another.

The first epoch that a build moves to is computed in full, and each further one by the strategies of the views, from the
rows that changed in between. What was committed is no attempt at an epoch: after a crash, the build starts over, with
new tables.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from cdc_views import faults
from cdc_views.engine.building.groups import Group
from cdc_views.engine.epoch.records import cut_of, read_offsets
from cdc_views.engine.intent import Intent
from cdc_views.engine.tables import Tables
from cdc_views.engine.views.maintain import ViewRunner
from cdc_views.store.control import ControlRecord


class CannotBuild(Exception):
    """The views cannot be built beside the epochs: the next epoch is to try, and says why it cannot either."""


class Build:
    """Views that no epoch has. `at` is the epoch that they have reached, with them; None before the first.

    `fills` counts how often they were computed from a whole epoch.
    """

    def __init__(self, spark: SparkSession, tables: Tables, group: Group, takeover: ControlRecord) -> None:
        """`tables` are those of the engine, the group's included; `takeover` is the record of its takeover."""
        assert tables.published is not None
        self.at: ControlRecord | None = None
        self.fills = 0
        self.specs = {view.definition.name: tables.specs[view.definition.name] for level in group for view in level}
        self._tables = tables.beside(tables.published)
        self._views = ViewRunner(spark, group)
        self._takeover = takeover
        views = [view for level in group for view in level]
        self._read = {source for view in views for source in self._views.read_by(view, self._tables)} - set(self.specs)

    @property
    def names(self) -> set[str]:
        """The names of the views."""
        return set(self.specs)

    @property
    def is_by_changes(self) -> bool:
        """Whether the changes of an epoch suffice for every view."""
        return "FULL" not in self._views.strategies(self._tables).values()

    def bring_to(self, epoch: ControlRecord, tag: str | None = None, *, by_changes: bool = False) -> None:
        """Bring the views to the state of a published epoch, not older than `at`.

        With a tag, the jobs of Spark have it, and give way to those of the epochs. `by_changes`: no view may be
        computed in full.

        Raises CannotBuild, NotByChanges, after which the views are to `start_over`, and what stops the engine: Fenced,
        DiskFull, DriverLost.
        """
        tables, self._views.tag, self._views.by_changes = self._tables, tag, by_changes
        self._require_usable(epoch)
        if self.at is None:
            self.fills += 1
            tables.published = epoch
            tables.stand_at({name: epoch.tables[name].version for name in self._read})
        changed = {
            name: epoch.tables[name].version
            for name in self._read
            if epoch.tables[name].version != tables.version(name)
        }
        takeover, cut = self._takeover, cut_of(epoch, {}, read_offsets(epoch))
        results = self._views.maintain(
            tables, changed, Intent(takeover.epoch, takeover.attempt, cut, tables.versions())
        )
        faults.point("building.after_fill" if self.at is None else "building.after_following")
        if failed := {name: result.failure for name, result in results.items() if result.status == "failed"}:
            raise CannotBuild(str(failed))
        tables.stand_at({**changed, **{name: result.version for name, result in results.items()}})
        versions = tables.versions()
        built = {name: replace(versions[name], status="live") for name in self.specs}
        tables.published = self.at = replace(epoch, tables={**epoch.tables, **built})

    def start_over(self) -> None:
        """Forget the epoch that the views have reached: `bring_to` computes them from a whole epoch again."""
        warehouse = self._tables.warehouse
        self._tables.stand_at({name: warehouse.latest_version(spec.path) for name, spec in self.specs.items()})
        self.at = None

    def _require_usable(self, epoch: ControlRecord) -> None:
        """Raise CannotBuild unless the epoch has all tables that the views read, at the same paths as before."""
        for name in sorted(self._read):
            found = epoch.tables.get(name)
            if found is None or found.path != self._tables.specs[name].path or found.is_standing:
                raise CannotBuild(f'epoch {epoch.epoch} has table "{name}" as {found}')
