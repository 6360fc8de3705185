"""Swap: tables that were made anew take the place of the published ones, in one epoch.

The epoch is an ordinary one, but that the new mirrors' part of the log is read from where they stand,
and that every view above them is due. Its record names the new paths, and what they replaced: a
rollback is a swap to those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import orjson

from cdc_views.engine.epoch import Swap, read_offsets, run_swap
from cdc_views.engine.tables import Tables
from cdc_views.engine.views import ViewRunner
from cdc_views.errors import BadReplay, UnknownView
from cdc_views.log.log import Log
from cdc_views.log.record import Offsets
from cdc_views.store.control import ControlLog, ControlRecord
from cdc_views.store.warehouse import Stamp

REQUEST: Final = "request"
REPLACED: Final = "replaced"


@dataclass(frozen=True)
class Standby:
    """A table beside the published one: `version` of `path` holds the log up to the end of `epoch`."""

    path: str
    version: int
    epoch: int


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
    """Look whether the request can be done; nothing is changed. Raises UnknownView, BadReplay, LogGap."""
    published = tables.published
    if published is None:
        raise BadReplay("nothing is published yet, so there is nothing to replace", hint="run the engine first")
    _require_known(request, tables, published)
    replaced = {
        name: asdict(Standby(table.path, table.version, published.epoch))
        for name, table in published.tables.items()
        if name in request.tables
    }
    return Swap(request.kind, _replay_starts(log, tables, control, request), {REQUEST: request.id, REPLACED: replaced})


def publish_swap(
    log: Log, tables: Tables, views: ViewRunner, control: ControlLog, request: SwapRequest, swap: Swap
) -> ControlRecord:
    """Publish the request's tables. An error leaves the engine between the two: it must start again."""
    tables.replace({name: standby.path for name, standby in request.tables.items()})
    _restore(tables, control, request)
    return run_swap(log, tables, views, control, swap)


def find_swap(records: list[ControlRecord], request: str) -> ControlRecord | None:
    """The record that published a request; None if none did."""
    return next((record for record in reversed(records) if record.detail.get(REQUEST) == request), None)


def _require_known(request: SwapRequest, tables: Tables, published: ControlRecord) -> None:
    for name in request.tables:
        if name not in tables.specs or name not in published.tables:
            raise UnknownView(
                f'the engine has published no table "{name}"', hint="start the engine anew with the present view files"
            )


def _replay_starts(log: Log, tables: Tables, control: ControlLog, request: SwapRequest) -> Offsets:
    """From where the log of each new mirror is to be read again. Raises LogGap."""
    start: dict[Any, int] = {}
    for name, standby in request.tables.items():
        if name not in tables.sources:
            continue
        since = published_epoch(control.records, standby.epoch)
        assert since.committed_at is not None
        log.require_gapless(since.committed_at)
        offsets = read_offsets(since)
        start |= {each: offsets[each] for each in log.partitions_of([tables.sources[name].name])}
    return start


def published_epoch(records: list[ControlRecord], epoch: int) -> ControlRecord:
    """The published record of an epoch. Raises BadReplay."""
    for record in records:
        if record.epoch == epoch and record.published_at is not None:
            return record
    raise BadReplay(f"epoch {epoch} was never published", hint='"cdc-views epochs" lists those that were')


def _restore(tables: Tables, control: ControlLog, request: SwapRequest) -> None:
    """Take back what was committed to a new mirror after the version that the request names.

    That is what an attempt that was given up has left, or, on a table that is rolled back to, what
    somebody else has written.
    """
    takeover = next(record for record in reversed(control.records) if record.kind == "takeover")
    for name, standby in request.tables.items():
        above = tables.warehouse.commits_above(standby.path, standby.version)
        if name in tables.sources and any(commit.changes_content for commit in above):
            stamp = Stamp(takeover.epoch, takeover.attempt, str(tables.position))
            tables.stand_at({name: tables.warehouse.restore(standby.path, standby.version, stamp)})
