"""Swap: tables that were made anew take the place of the published ones, in one epoch.

The epoch is an ordinary one, but that the new mirrors' part of the log is read from where they stand,
and that every view above them is due. Its record names the new paths, and what they replaced: a
rollback is a swap to those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

import orjson

from cdc_views.engine.epoch.steps import Swap, next_cut, read_offsets, run_swap
from cdc_views.engine.epoch.tables import Tables
from cdc_views.engine.views.maintain import ViewRunner
from cdc_views.errors import RESET, BadReplay, UnknownView
from cdc_views.log.cut import Cut
from cdc_views.log.log import Log
from cdc_views.log.record import Offsets, TopicPartition
from cdc_views.lsn import Lsn
from cdc_views.store.control.control_log import ControlLog, ControlRecord, last_takeover
from cdc_views.store.control.retention import REPLACED
from cdc_views.store.warehouse import Stamp, Warehouse

REQUEST: Final = "request"
# Records that a swap reads at once and holds in memory; a rebuild is nearer than that when it asks for one.
MOST_REPLAYED: Final = 500_000


@dataclass(frozen=True)
class Standby:
    """A table beside the published one: `version` of `path` holds the log up to the end of `epoch`.

    It may hold some of what follows, but nothing from `position` on.
    """

    path: str
    version: int
    epoch: int
    position: str | None = None


@dataclass(frozen=True)
class SwapRequest:
    """What is to be published in the place of what; `id` tells whether it was done already."""

    id: str
    kind: Literal["swap", "rollback"]
    tables: Mapping[str, Standby]

    def text(self) -> str:
        """The request as JSON."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def parse(cls, text: str | bytes) -> SwapRequest:
        """Read what `text` gives."""
        fields = orjson.loads(text)
        return cls(fields["id"], fields["kind"], read_standbys(fields["tables"]))


def read_standbys(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Standby]:
    """Tables by name, as a request or a published swap has them in JSON."""
    return {name: Standby(**table) for name, table in tables.items()}


def plan_swap(log: Log, tables: Tables, control: ControlLog, request: SwapRequest) -> Swap:
    """Look whether the request can be done; nothing is changed.

    Raises UnknownView, BadReplay, LogGap, ForeignCommit.
    """
    published = tables.published
    if published is None:
        raise BadReplay("nothing is published yet, so there is nothing to replace", hint="run the engine first")
    require_present(tables.warehouse, request)
    for name, standby in request.tables.items():
        _require_usable(name, standby, tables, published)
    replaced = {
        name: asdict(Standby(table.path, table.version, published.epoch))
        for name, table in published.tables.items()
        if name in request.tables
    }
    start = _replay_starts(log, tables, control, request)
    return Swap(request.kind, start, {REQUEST: request.id, REPLACED: replaced})


def publish_swap(
    log: Log, tables: Tables, views: ViewRunner, control: ControlLog, request: SwapRequest, swap: Swap
) -> ControlRecord:
    """Publish the request's tables.

    An error after `tables.standing_in` was set leaves the engine between the two: it must start again. Raises BadReplay
    before that, if the log can only be read to where a new table is ahead of it, or a table of it is stopped.
    """
    cut = next_cut(log, tables)
    _require_none_stopped(request, cut, views)
    for name, standby in request.tables.items():
        if standby.position is not None and cut.complete_to < Lsn.parse(standby.position):
            raise BadReplay(
                f'table "{name}" was made as of {standby.position}, and the log can be read to {cut.complete_to}',
                hint="a change of schema or a TRUNCATE stands between: the engine's next epoch names it",
            )
    tables.replace({name: standby.path for name, standby in request.tables.items()})
    _restore(tables, control, request)
    return run_swap(log, tables, views, control, cut, swap)


def _require_none_stopped(request: SwapRequest, cut: Cut, views: ViewRunner) -> None:
    """What is made of a stopped table, or of its log since then, holds what the table's mirror is not to have."""
    stopped = {str(table) for table in cut.stopped}
    without = stopped | views.above(stopped)
    for name in request.tables:
        if name in without:
            raise BadReplay(f'table "{name}" is stopped, or reads one that is', hint=RESET)


def require_present(warehouse: Warehouse, request: SwapRequest) -> None:
    """The request's tables are there. Raises BadReplay: one that was removed would only be made again, empty."""
    for standby in request.tables.values():
        found = warehouse.latest_version(standby.path)
        if found < standby.version:
            raise BadReplay(
                f'table "{standby.path}" ends at version {found}, wanted {standby.version}',
                hint="it was removed or damaged; rebuild it",
            )


def find_swap(records: list[ControlRecord], request: str) -> ControlRecord | None:
    """The record that published a request; None if none did."""
    return next((record for record in reversed(records) if record.detail.get(REQUEST) == request), None)


def _require_usable(name: str, standby: Standby, tables: Tables, published: ControlRecord) -> None:
    if name not in tables.specs or name not in published.tables:
        raise UnknownView(
            f'the engine has published no table "{name}"', hint="start the engine anew with the present view files"
        )
    if not tables.is_made_of(name, standby.path):
        raise BadReplay(
            f'table "{standby.path}" was made for another definition of "{name}"',
            hint="the view was edited since: rebuild it as it is now",
        )
    tables.warehouse.create(replace(tables.specs[name], path=standby.path))  # looks at its columns and its writers


def _replay_starts(log: Log, tables: Tables, control: ControlLog, request: SwapRequest) -> Offsets:
    """From where the log of each new mirror is to be read again. Raises LogGap, BadReplay."""
    start: dict[TopicPartition, int] = {}
    for name, standby in request.tables.items():
        if name not in tables.sources:
            continue
        since = published_epoch(control.records, standby.epoch)
        assert since.committed_at is not None
        status = since.tables[name].status
        if request.kind == "rollback" and status != "live":
            raise BadReplay(
                f'table "{name}" of epoch {since.epoch} does not equal Postgres: it has {status} events',
                hint="rebuild it with --from snapshot --swap",
            )
        log.require_gapless(since.committed_at)
        offsets = read_offsets(since)
        start |= {each: offsets[each] for each in log.partitions_of([tables.sources[name].name])}
    behind = sum(tables.offsets[each] - offset for each, offset in start.items())
    if behind > MOST_REPLAYED:
        raise BadReplay(
            f"the new tables are {behind} offsets behind, wanted at most {MOST_REPLAYED} to be read at once",
            hint="rebuild them with --swap, which catches up first",
        )
    return start


def published_epoch(records: list[ControlRecord], epoch: int) -> ControlRecord:
    """The published record of an epoch. Raises BadReplay."""
    for record in records:
        if record.epoch == epoch and record.published_at is not None:
            return record
    raise BadReplay(
        f"the control log has no epoch {epoch}",
        hint='"cdc-views epochs" lists those that it has; older ones are removed (docs/upkeep.md)',
    )


def _restore(tables: Tables, control: ControlLog, request: SwapRequest) -> None:
    """Take back what was committed to a new mirror after the version that the request names.

    That is what an attempt that was given up has left, or, on a table that is rolled back to, what
    somebody else has written.
    """
    takeover = last_takeover(control.records)
    assert takeover is not None
    for name, standby in request.tables.items():
        above = tables.warehouse.history.commits_above(standby.path, standby.version)
        if name in tables.sources and any(commit.changes_content for commit in above):
            base = tables.version(name)
            control.require_writer()  # after `base` was read: a later engine's version is the next one, or later
            stamp = Stamp(takeover.epoch, takeover.attempt, str(tables.position))
            tables.stand_at({name: tables.warehouse.restore(standby.path, standby.version, stamp, base)})
