"""Which tables a rebuild covers, from which offsets, and whether that is possible."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from cdc_views.base.names import TableName
from cdc_views.engine.capture.declared import Declared
from cdc_views.engine.capture.self_contained import FROM_SNAPSHOT, why_not_self_contained
from cdc_views.engine.epoch.swap import MOST_REPLAYED, published_epoch
from cdc_views.errors import RESET, BadReplay, LogGap, NotSelfContained, UnknownView
from cdc_views.log.kafka.record import Offsets, TopicPartition
from cdc_views.log.log import Log
from cdc_views.plan.compiled import CompiledView
from cdc_views.replay.origin import Origin
from cdc_views.source.catalog import SourceTable
from cdc_views.store.control import ControlRecord, last_takeover


@dataclass(frozen=True)
class RebuildPlan:
    """The mirrors and views to rebuild, parents before children.

    A view is rebuilt together with every table below it: over the live mirrors it would only prove that they have not
    changed since.
    """

    origin: Origin
    sources: Sequence[SourceTable]
    levels: Sequence[Sequence[CompiledView]]

    @property
    def views(self) -> list[CompiledView]:
        """All views, parents before children."""
        return [view for level in self.levels for view in level]

    @property
    def names(self) -> tuple[str, ...]:
        """Every table to rebuild, by its name in the manifest."""
        return (*(str(source.name) for source in self.sources), *(view.definition.name for view in self.views))


def plan_rebuild(declared: Declared, names: Iterable[str] | None, origin: Origin) -> RebuildPlan:
    """Plan the rebuild of the named tables and views (None: all). Raises UnknownView, BadReplay, BadView."""
    sources = {str(source.name): source for source in declared.sources}
    views = {view.definition.name: view for level in declared.levels for view in level}
    wanted: set[str] = set()
    pending = [_known(name, sources, views) for name in names] if names is not None else [*sources, *views]
    while pending:
        name = pending.pop()
        wanted.add(name)
        if name in views:
            pending += [source for source in views[name].inputs if source not in wanted]
    _require_none_stopped(declared, wanted)
    for name, refusal in declared.refused.items():
        if name in wanted:
            raise refusal
    levels = [[view for view in level if view.definition.name in wanted] for level in declared.levels]
    return RebuildPlan(origin, [sources[name] for name in sources if name in wanted], [one for one in levels if one])


def start_offsets(plan: RebuildPlan, log: Log, records: list[ControlRecord]) -> Offsets:
    """The offsets from which the log of each table is read.

    Raises NotSelfContained, BadReplay for an epoch that was not published, LogGap if events would be skipped.
    """
    partitions = log.partitions_of([source.name for source in plan.sources])
    if plan.origin.kind == "earliest":
        begin = log.begin()
        for source in plan.sources:
            _require_self_contained(source, log, begin)
        return {each: begin[each] for each in partitions}
    if plan.origin.kind == "snapshot":
        last = max((record for record in records if record.published_at), key=lambda record: record.seq)
        return {each: last.offsets[str(each)] for each in partitions}
    assert plan.origin.epoch is not None
    epoch = published_epoch(records, plan.origin.epoch)
    assert epoch.committed_at is not None
    _require_mirrors(plan, epoch, records)
    log.require_gapless(epoch.committed_at)
    start = {each: epoch.offsets[str(each)] for each in partitions}
    if plan.origin.kind == "offset":
        _move(start, plan.origin, log.begin())
    return start


def _require_none_stopped(declared: Declared, wanted: Collection[str]) -> None:
    for name in (*declared.stopped, *declared.changed):
        if str(name) in wanted:
            raise BadReplay(f'table "{name}" is stopped: one of its changes cannot be applied', hint=RESET)


def _known(name: str, sources: Iterable[str], views: Iterable[str]) -> str:
    with suppress(ValueError):  # not the name of a table
        for known in (name, str(TableName.parse(name))):
            if known in sources or known in views:
                return known
    raise UnknownView(
        f'this project has no table or view "{name}"', hint="it has " + ", ".join(sorted([*sources, *views]))
    )


def _require_self_contained(source: SourceTable, log: Log, begin: Offsets) -> None:
    reasons = why_not_self_contained(source, log.topic_of(source.name), begin)
    if reasons:
        raise NotSelfContained(
            f'table "{source.name}" cannot be rebuilt from its log alone: {"; ".join(reasons)}', hint=FROM_SNAPSHOT
        )


def _require_mirrors(plan: RebuildPlan, epoch: ControlRecord, records: list[ControlRecord]) -> None:
    takeover = last_takeover(records)
    for source in plan.sources:
        if takeover is None or epoch.generation != takeover.generation or str(source.name) not in epoch.tables:
            raise BadReplay(
                f'epoch {epoch.epoch} has no table "{source.name}" of this generation',
                hint='choose a later epoch; "cdc-views epochs" lists them',
            )
        _require_nothing_parked(source, epoch)


def _require_nothing_parked(source: SourceTable, epoch: ControlRecord) -> None:
    status = epoch.tables[str(source.name)].status
    if status in ("parked", "discarded"):
        raise BadReplay(
            f'table "{source.name}" does not equal Postgres at epoch {epoch.epoch}: it has {status} events',
            hint=f"choose an earlier epoch; {FROM_SNAPSHOT}",
        )


def _move(start: dict[TopicPartition, int], origin: Origin, begin: Offsets) -> None:
    partition, offset = origin.partition, origin.offset
    assert partition is not None
    assert offset is not None
    if partition not in start:
        raise BadReplay(
            f'partition "{partition}" belongs to no table of this rebuild',
            hint="they are " + ", ".join(map(str, sorted(start))),
        )
    if offset > start[partition]:
        raise LogGap(
            f'partition "{partition}": offset {offset} leaves a gap after epoch {origin.epoch}, '
            f"which holds the log up to offset {start[partition]}",
            hint=f"replay from offset {start[partition]} or an earlier one, or onto a later epoch",
        )
    if start[partition] - offset > MOST_REPLAYED:
        raise BadReplay(
            f"offset {offset} is {start[partition] - offset} before the end of epoch {origin.epoch} in partition "
            f'"{partition}", wanted at most {MOST_REPLAYED} to replay at once',
            hint="replay onto an earlier epoch",
        )
    if offset < begin[partition]:
        raise BadReplay(f'partition "{partition}" begins at offset {begin[partition]}, wanted {offset}')
    start[partition] = offset
