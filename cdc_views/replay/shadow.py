"""Shadow tables: mirrors and views made anew beside the live ones, which no reader sees.

What a shadow mirror holds is told by its own Delta log: a version whose stamp is that of a published
epoch holds the table's log up to the end of that epoch. So a killed rebuild finds what it had done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import SparkSession

from cdc_views.engine.epoch.mirrors import commit_mirrors
from cdc_views.engine.epoch.steps import Intent, cut_of, read_offsets
from cdc_views.engine.epoch.tables import REBUILT, Tables
from cdc_views.engine.input.bulk import BulkReader
from cdc_views.engine.input.deltas import read_deltas
from cdc_views.engine.views.declare import declare_views
from cdc_views.engine.views.maintain import ViewResult, ViewRunner
from cdc_views.errors import ViewFailed
from cdc_views.log.log import Log
from cdc_views.log.record import Offsets
from cdc_views.lsn import Lsn
from cdc_views.replay.plan import RebuildPlan
from cdc_views.store.commits.through_spark import Rows, WrittenRows
from cdc_views.store.control.control_log import ControlRecord
from cdc_views.store.delta_log.versions import Stamp, TableCommit
from cdc_views.store.warehouse import Changes, Warehouse

# Of the first takeover of a warehouse: known, and of no published epoch.
FIRST_ATTEMPT: Final = 1
# Of one step of catching up, if one epoch is not more.
MOST_OFFSETS: Final = 200_000


@dataclass(frozen=True)
class Reached:
    """A mirror holds the log up to the end of `epoch`, and may hold some of what follows, up to `position`."""

    epoch: ControlRecord
    position: Lsn


class Shadows:
    """The shadow tables of one rebuild."""

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Warehouse,
        generation: str,
        plan: RebuildPlan,
        rebuild: str,
        bulk: BulkReader,
    ) -> None:
        self.plan = plan
        self.tables = Tables(warehouse, generation, plan.sources, place=lambda name, path: f"{path}{REBUILT}{rebuild}")
        # They have rows though no epoch was published with them: a change of them is no first build.
        self.tables.standing_in = frozenset(self.tables.sources)
        self.tables.bulk = bulk
        declare_views(spark, self.tables, plan.views)
        self._views = ViewRunner(spark, plan.levels)

    def found(self, name: str, epochs: Mapping[int, ControlRecord]) -> Reached | None:
        """What a mirror holds; None if nothing yet.

        What a swap that was given up has committed to it is taken back: it is of after that epoch.
        """
        warehouse, path = self.tables.warehouse, self.tables.specs[name].path
        above: list[TableCommit] = []
        for commit in reversed(warehouse.history.commits_above(path, 0)):
            epoch = epochs.get(commit.stamp.epoch) if commit.stamp is not None else None
            # A fence names the last epoch too, under the attempt of its takeover.
            if epoch is not None and commit.stamp is not None and commit.stamp.attempt == epoch.attempt:
                if any(later.changes_content for later in above):
                    warehouse.restore(path, commit.version, commit.stamp)
                return Reached(epoch, Lsn.parse(commit.stamp.position))
            above.append(commit)
        return None

    def fill(self, name: str, rows: Rows | WrittenRows, stamp: Stamp) -> None:
        """Give an empty mirror its first rows, in one commit; what a killed rebuild has left there is taken back."""
        warehouse, spec = self.tables.warehouse, self.tables.specs[name]
        if warehouse.history.commits_above(spec.path, 0):
            # Not under the stamp of the rows, or an empty mirror would pass for them.
            warehouse.restore(spec.path, 0, replace(stamp, attempt=FIRST_ATTEMPT))
        changes = rows if isinstance(rows, WrittenRows) else Changes(deleted=None, rows=rows, all_new=True)
        self.tables.stand_at({name: warehouse.commit(spec, self.standing(name), changes, stamp)})

    def standing(self, name: str) -> int:
        """The newest version of a shadow."""
        return self.tables.warehouse.latest_version(self.tables.specs[name].path)

    def catch_up(self, log: Log, name: str, start: Offsets, to: ControlRecord, at: ControlRecord) -> None:
        """Bring a mirror to a published epoch, its log read from `start`, on the way to the epoch `at`.

        Only that one must be exact: of an earlier one rows may be missing that were compacted away since, and
        whose later versions are read next.
        """
        partitions = log.partitions_of([self.tables.sources[name].name])
        ends = read_offsets(to)
        cut = cut_of(at, {each: start[each] for each in partitions}, {each: ends[each] for each in partitions})
        cut = replace(cut, bulk=log.too_long(cut.start, cut.end))
        self.tables.stand_at({name: self.standing(name)})
        intent = Intent(to.epoch, to.attempt, cut, self.tables.versions())
        deltas = read_deltas(log, intent, self.tables)
        deltas.require_none_refused()
        commits = commit_mirrors(self.tables, deltas.mirrors, intent)
        if not commits:
            # Nothing of this table: an empty version says how far it is.
            commits = {name: self.tables.warehouse.fence(self.tables.specs[name].path, intent.stamp)}
        self.tables.stand_at(commits)

    def compute_views(self, at: ControlRecord) -> dict[str, ViewResult]:
        """Compute the views over the shadow mirrors, which hold the epoch `at`. Raises ViewFailed."""
        self.tables.stand_at({name: self.standing(name) for name in self.tables.specs})
        intent = Intent(at.epoch, at.attempt, cut_of(at, {}, {}), self.tables.versions())
        results = self._views.maintain(self.tables, {}, intent)
        for name, result in results.items():
            if result.status == "failed":
                raise ViewFailed(f'view "{name}" fails over the tables that were made anew: {result.failure}')
        self.tables.stand_at({name: result.version for name, result in results.items()})
        return results


def stamp_of(epoch: ControlRecord, position: Lsn | None = None) -> Stamp:
    """What a version carries that holds the log up to the end of an epoch, and rows of up to `position`."""
    return Stamp(epoch.epoch, epoch.attempt, str(position if position is not None else epoch.position))


def steps(epochs: Sequence[ControlRecord], since: ControlRecord, to: ControlRecord) -> Iterator[ControlRecord]:
    """Yield epochs between two, `to` last, with at most so much log between them as the driver may hold."""
    last, candidate = since, None
    for epoch in epochs:
        if not since.seq < epoch.seq <= to.seq:
            continue
        if candidate is not None and _distance(last, epoch) > MOST_OFFSETS:
            yield candidate
            last = candidate
        candidate = epoch
    if candidate is not None:
        yield candidate


def _distance(one: ControlRecord, other: ControlRecord) -> int:
    return sum(offset - one.offsets.get(partition, 0) for partition, offset in other.offsets.items())
