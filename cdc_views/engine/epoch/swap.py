"""Swap: one epoch publishes shadow tables in place of the published tables.

It is an ordinary epoch with two differences: the log of the swapped mirrors is read from where they stand, and every
view above them is due. Its record has the new paths and the tables that they replaced; a rollback swaps these in again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

import orjson

from cdc_views.base.lsn import Lsn
from cdc_views.engine.epoch.records import read_offsets
from cdc_views.engine.epoch.steps import EpochWriter
from cdc_views.engine.intent import Swap
from cdc_views.engine.tables import Tables
from cdc_views.engine.views.maintain import ViewRunner
from cdc_views.errors import RESET, BadReplay, UnknownView
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.kafka.record import Offsets, TopicPartition
from cdc_views.store.control import ControlLog, ControlRecord, ShadowTable, last_takeover, request_of
from cdc_views.store.warehouse import Stamp, Warehouse

# A swap reads this many records at most, at once and into memory. A rebuild catches up further before it asks for one.
MOST_REPLAYED: Final = 500_000


@dataclass(frozen=True)
class SwapRequest:
    """The tables to publish in place of those of the same names. By its `id` one knows whether it was done already."""

    id: str
    kind: Literal["swap", "rollback"]
    tables: Mapping[str, ShadowTable]

    def text(self) -> str:
        """The request as JSON."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def parse(cls, text: str | bytes) -> SwapRequest:
        """Parse the JSON."""
        fields = orjson.loads(text)
        return cls(fields["id"], fields["kind"], read_shadows(fields["tables"]))


def read_shadows(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, ShadowTable]:
    """Parse tables by name, as a request has them in JSON."""
    return {name: ShadowTable(**table) for name, table in tables.items()}


def plan_swap(writer: EpochWriter, request: SwapRequest) -> Swap:
    """Check whether the request can be done. Nothing is changed.

    Raises UnknownView, BadReplay, LogGap, ForeignCommit.
    """
    tables = writer.tables
    published = tables.published
    if published is None:
        raise BadReplay("nothing is published yet, so there is nothing to replace", hint="run the engine first")
    require_present(tables.warehouse, request)
    for name, shadow in request.tables.items():
        _require_usable(name, shadow, tables, published)
    replaced = {
        name: ShadowTable(table.path, table.version, published.epoch)
        for name, table in published.tables.items()
        if name in request.tables
    }
    return Swap(request.kind, _replay_starts(writer, request), request.id, replaced)


def publish_swap(writer: EpochWriter, request: SwapRequest, swap: Swap) -> ControlRecord:
    """Publish the tables of the request.

    After an error that follows the change of `tables.shadows`, the engine must be restarted. Raises BadReplay
    before that, if the log cannot be read up to the position of a shadow table, or if a table of the request is
    stopped.
    """
    cut = writer.next_cut()
    _require_none_stopped(request, cut, writer.views)
    for name, shadow in request.tables.items():
        if shadow.position is not None and cut.complete_to < Lsn.parse(shadow.position):
            raise BadReplay(
                f'table "{name}" was made as of {shadow.position}, and the log can be read to {cut.complete_to}',
                hint="a schema change or a TRUNCATE lies between: the engine's next epoch names it",
            )
    writer.tables.replace({name: shadow.path for name, shadow in request.tables.items()})
    _restore(writer.tables, writer.control, request)
    return writer.run_swap(cut, swap)


def _require_none_stopped(request: SwapRequest, cut: Cut, views: ViewRunner) -> None:
    """Raise BadReplay for a stopped table, or a view above one: its shadow has changes that must not be published."""
    stopped = {str(table) for table in cut.stopped}
    without = stopped | views.above(stopped)
    for name in request.tables:
        if name in without:
            raise BadReplay(f'table "{name}" is stopped, or reads one that is', hint=RESET)


def require_present(warehouse: Warehouse, request: SwapRequest) -> None:
    """Raise BadReplay unless the tables of the request exist: a removed one would be created again, empty."""
    for shadow in request.tables.values():
        found = warehouse.latest_version(shadow.path)
        if found < shadow.version:
            raise BadReplay(
                f'table "{shadow.path}" ends at version {found}, wanted {shadow.version}',
                hint="it was removed or damaged; rebuild it",
            )


def find_swap(records: list[ControlRecord], request: str) -> ControlRecord | None:
    """The record that answered a request; None if there is none."""
    return next((record for record in reversed(records) if request_of(record) == request), None)


def _require_usable(name: str, shadow: ShadowTable, tables: Tables, published: ControlRecord) -> None:
    if name not in tables.specs or name not in published.tables:
        raise UnknownView(
            f'the engine has published no table "{name}"', hint="restart the engine with the present view files"
        )
    if not tables.is_made_of(name, shadow.path):
        raise BadReplay(
            f'table "{shadow.path}" was made for another definition of "{name}"',
            hint="the view was edited since: rebuild it as it is now",
        )
    tables.warehouse.create(replace(tables.specs[name], path=shadow.path))  # checks its columns and its writers


def _replay_starts(writer: EpochWriter, request: SwapRequest) -> Offsets:
    """The offsets from which the log of each shadow mirror must be read again. Raises LogGap, BadReplay."""
    log, tables, control = writer.log, writer.tables, writer.control
    start: dict[TopicPartition, int] = {}
    for name, shadow in request.tables.items():
        if name not in tables.sources:
            continue
        since = published_epoch(control.records, shadow.epoch)
        assert since.committed_at is not None
        status = since.tables[name].status
        if request.kind == "rollback" and status != "live":
            raise BadReplay(
                f'table "{name}" of epoch {since.epoch} does not equal Postgres: it has {status} events',
                hint="rebuild it with --from snapshot --swap",
            )
        log.require_gapless(since.committed_at)
        offsets = read_offsets(since)
        start |= {each: offsets[each] for each in tables.offsets if str(log.table_of(each.topic)) == name}
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
    """Roll back what was committed to a shadow mirror after the version that the request names.

    These are commits of an abandoned attempt, or, in a rollback, commits of somebody else.
    """
    takeover = last_takeover(control.records)
    assert takeover is not None
    for name, shadow in request.tables.items():
        above = tables.warehouse.history.commits_above(shadow.path, shadow.version)
        if name in tables.sources and any(commit.changes_content for commit in above):
            base = tables.version(name)
            control.require_writer()  # after `base` was read: a version of a later engine is above it
            stamp = Stamp(takeover.epoch, takeover.attempt, str(tables.position))
            tables.stand_at({name: tables.warehouse.restore(shadow.path, shadow.version, stamp, base)})
