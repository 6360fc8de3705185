"""Shadow tables: the mirrors and views that a rebuild creates beside the live ones, and that no reader sees.

The Delta log of a shadow mirror says what the mirror holds: a version with the stamp of a published epoch holds the
table's log up to the end of that epoch. So a rebuild that was killed finds what it had done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import SparkSession

from cdc_views.base.lsn import Lsn
from cdc_views.engine.epoch.mirrors import commit_mirrors
from cdc_views.engine.epoch.records import cut_of, read_offsets
from cdc_views.engine.input.bulk import BulkReader
from cdc_views.engine.input.deltas import Input
from cdc_views.engine.intent import Intent
from cdc_views.engine.tables import SHADOW_SEPARATOR, Tables
from cdc_views.engine.views.declare import declare_views
from cdc_views.engine.views.maintain import ViewResult, ViewRunner
from cdc_views.errors import ViewFailed
from cdc_views.log.kafka.record import Offsets
from cdc_views.log.log import Log
from cdc_views.replay.plan import RebuildPlan
from cdc_views.store.commits import RowData, WrittenRows
from cdc_views.store.control import ControlRecord
from cdc_views.store.delta_log import Stamp, TableCommit
from cdc_views.store.warehouse import Changes, Warehouse

# The attempt of the first takeover of a warehouse: known, but not of a published epoch.
FIRST_ATTEMPT: Final = 1
# The most offsets in one step of catching up, unless a single epoch has more.
MOST_OFFSETS: Final = 200_000


@dataclass(frozen=True)
class Reached:
    """What a mirror holds: the log up to the end of `epoch`, and perhaps later changes up to `position`."""

    epoch: ControlRecord
    position: Lsn


class ShadowTables:
    """The shadow tables of one rebuild. `rebuild` is its id, which ends their paths."""

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
        self.tables = Tables(
            warehouse, generation, plan.sources, find_path=lambda name, path: f"{path}{SHADOW_SEPARATOR}{rebuild}"
        )
        # They have rows, though no epoch was published with them: a change of one is not its first build.
        self.tables.shadows = frozenset(self.tables.sources)
        self._bulk = bulk
        declare_views(spark, self.tables, plan.views)
        self._views = ViewRunner(spark, plan.levels)

    def found(self, name: str, epochs: Mapping[int, ControlRecord]) -> Reached | None:
        """What a mirror holds; None if nothing yet. `epochs` are the published ones.

        Commits of a swap that was aborted are rolled back, since they are later than that epoch.
        """
        warehouse, path = self.tables.warehouse, self.tables.specs[name].path
        above: list[TableCommit] = []
        for commit in reversed(warehouse.history.commits_above(path, 0)):
            epoch = epochs.get(commit.stamp.epoch) if commit.stamp is not None else None
            # A fence has the last epoch in its stamp too, but with the attempt of its takeover.
            if epoch is not None and commit.stamp is not None and commit.stamp.attempt == epoch.attempt:
                if any(later.changes_content for later in above):
                    warehouse.restore(path, commit.version, commit.stamp)
                return Reached(epoch, Lsn.parse(commit.stamp.position))
            above.append(commit)
        return None

    def fill(self, name: str, rows: RowData | WrittenRows, stamp: Stamp) -> None:
        """Commit the first rows of a mirror, in one commit. Commits that a killed rebuild has left are rolled back."""
        warehouse, spec = self.tables.warehouse, self.tables.specs[name]
        if warehouse.history.commits_above(spec.path, 0):
            # Not with the stamp of the rows, or the empty mirror would count as filled.
            warehouse.restore(spec.path, 0, replace(stamp, attempt=FIRST_ATTEMPT))
        changes = rows if isinstance(rows, WrittenRows) else Changes(deleted=None, rows=rows, all_new=True)
        self.tables.stand_at({name: warehouse.commit(spec, self.newest_version(name), changes, stamp)})

    def newest_version(self, name: str) -> int:
        """The newest Delta version of a shadow table."""
        return self.tables.warehouse.latest_version(self.tables.specs[name].path)

    def catch_up(self, log: Log, name: str, start: Offsets, to: ControlRecord, at: ControlRecord) -> None:
        """Read the log of a mirror from the offsets `start` to the end of the published epoch `to`, and commit it.

        `at` is the epoch that the rebuild catches up with. Only `at` must be exact: an earlier state may lack rows that
        were compacted away since and whose later versions are read next.
        """
        partitions = log.partitions_of([self.tables.sources[name].name])
        ends = read_offsets(to)
        cut = cut_of(at, {each: start[each] for each in partitions}, {each: ends[each] for each in partitions})
        cut = replace(cut, bulk=log.too_long(cut.start, cut.end))
        self.tables.stand_at({name: self.newest_version(name)})
        intent = Intent(to.epoch, to.attempt, cut, self.tables.versions())
        deltas = Input(log, self.tables, bulk=self._bulk).deltas(intent)
        deltas.require_none_refused()
        commits = commit_mirrors(self.tables, deltas.mirrors, intent)
        if not commits:
            # The table did not change: an empty version records how much of the log it holds.
            commits = {name: self.tables.warehouse.fence(self.tables.specs[name].path, intent.stamp)}
        self.tables.stand_at(commits)

    def compute_views(self, at: ControlRecord) -> dict[str, ViewResult]:
        """Compute the views over the shadow mirrors, which hold the epoch `at`. Raises ViewFailed."""
        self.tables.stand_at({name: self.newest_version(name) for name in self.tables.specs})
        intent = Intent(at.epoch, at.attempt, cut_of(at, {}, {}), self.tables.versions())
        results = self._views.maintain(self.tables, {}, intent)
        for name, result in results.items():
            if result.status == "failed":
                raise ViewFailed(f'view "{name}" fails over the shadow tables: {result.failure}')
        self.tables.stand_at({name: result.version for name, result in results.items()})
        return results


def stamp_of(epoch: ControlRecord, position: Lsn | None = None) -> Stamp:
    """The stamp of a version that holds the log up to the end of an epoch, and perhaps rows up to `position`."""
    return Stamp(epoch.epoch, epoch.attempt, str(position if position is not None else epoch.position))


def steps(epochs: Sequence[ControlRecord], since: ControlRecord, to: ControlRecord) -> Iterator[ControlRecord]:
    """Yield epochs after `since` up to `to`, at most MOST_OFFSETS apart where the epochs allow it."""
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
