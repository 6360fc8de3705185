"""Intents and published records: what an epoch writes into the control log, and reads from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cdc_views import faults
from cdc_views.base.names import TableName
from cdc_views.base.stopped import STOPPED
from cdc_views.engine.input.deltas import Deltas
from cdc_views.engine.intent import Intent
from cdc_views.engine.tables import Tables
from cdc_views.engine.views.maintain import ViewResult
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.kafka.record import Offsets, offsets_by_name, offsets_by_partition
from cdc_views.metrics import Stages
from cdc_views.store.control import ControlLog, ControlRecord, CutDetail, IntentDetail, PublishedDetail, TableVersion


def write_intent(control: ControlLog, intent: Intent, generation: str) -> None:
    """Record what an attempt will do, before it does it."""
    cut, swap, retry = intent.cut, intent.swap, intent.retry
    detail = IntentDetail.given(
        start=offsets_by_name(cut.start),
        bulk=tuple(sorted(map(str, cut.bulk))) or None,
        swaps=swap.kind if swap else None,
        quarantine=intent.quarantine,
        retries=tuple(retry.place or ()) if retry else None,
    )
    control.append(
        kind="intent",
        epoch=intent.epoch,
        attempt=intent.attempt,
        generation=generation,
        tables={name: _intended(base, intent.done.get(name)) for name, base in intent.base.items()},
        detail=_cut_detail(cut) | detail.json_fields(),
        **_cut_columns(cut),
    )
    faults.point("epoch.after_intent")


def read_intent(record: ControlRecord) -> Intent:
    """The intent that a record of kind `intent` has, without its swap or retry: these are not repeated."""
    assert record.kind == "intent"
    detail = IntentDetail.read(record)
    cut = cut_of(record, offsets_by_partition(detail.start), read_offsets(record))
    cut = replace(cut, bulk=frozenset(map(TableName.parse, detail.bulk)))
    done = {name: table.version for name, table in record.tables.items() if table.status == "done"}
    return Intent(record.epoch, record.attempt, cut, dict(record.tables), done, quarantine=detail.quarantine)


def is_repeatable(record: ControlRecord) -> bool:
    """Whether recovery may repeat an intent. A swap and a retry are requested again instead."""
    detail = IntentDetail.read(record)
    return detail.swaps is None and detail.retries is None


def cut_of(record: ControlRecord, start: Offsets, end: Offsets) -> Cut:
    """The cut of a record, or the part of it between these offsets."""
    assert record.position is not None
    assert record.complete_to is not None
    assert record.committed_at is not None
    detail = CutDetail.read(record)
    epochs = offsets_by_partition(detail.leader_epochs)
    return Cut(
        record.position,
        record.complete_to,
        record.committed_at,
        start,
        end,
        marker=detail.marker,
        captured=detail.captured,
        leader_epochs={each: epoch for each, epoch in epochs.items() if each in end},
        stopped=detail.stopped_tables,
    )


def read_offsets(record: ControlRecord) -> Offsets:
    """The offset of each partition before which a published record holds the log."""
    return offsets_by_partition(record.offsets)


def publish(
    control: ControlLog,
    tables: Tables,
    intent: Intent,
    commits: Mapping[str, int],
    results: Mapping[str, ViewResult],
    deltas: Deltas,
    stages: Stages,
) -> ControlRecord:
    """Make the epoch visible: one record with the version of every table."""
    counts, swap, retry = deltas.counts, intent.swap, intent.retry
    detail = PublishedDetail.given(
        parked=counts.parked,
        discarded=counts.discarded,
        request=swap.request if swap else retry.request if retry else None,
        replaced=swap.replaced if swap else None,
        building=dict(tables.building),
    )
    # Present even if empty: a record without `changes` only moves the position.
    counted = PublishedDetail(
        changes={name: delta.events for name, delta in deltas.mirrors.items() if delta.events},
        snapshot_rows={name: delta.snapshot_rows for name, delta in deltas.mirrors.items() if delta.snapshot_rows},
        log_bytes={name: delta.log_bytes for name, delta in deltas.mirrors.items() if delta.log_bytes},
        failures={name: result.failure for name, result in results.items() if result.failure},
        stage_ms=stages.milliseconds(),
        ways=tables.warehouse.ways.taken(),
        view_work={name: result.work for name, result in results.items() if result.work is not None},
        upkeep=tables.upkeep_done.taken(),
    )
    return control.append(
        kind=swap.kind if swap else "publish",
        epoch=intent.epoch,
        attempt=intent.attempt,
        generation=tables.generation,
        tables=_manifest(intent, commits, results, deltas) | tables.standing(),
        detail=counted.json_fields() | _cut_detail(intent.cut) | detail.json_fields(),
        **_cut_columns(intent.cut),
    )


def publish_position(control: ControlLog, cut: Cut, tables: Tables) -> ControlRecord:
    """Record that the tables of the last epoch are complete up to a later position too."""
    last = tables.published
    assert last is not None
    standing = PublishedDetail.read(last)
    detail = PublishedDetail.given(
        failures=standing.failures,
        parked=standing.parked,
        discarded=standing.discarded,
        building=dict(tables.building),
    )
    return control.append(
        kind="publish",
        epoch=control.new_epoch(),
        attempt=control.new_attempt(),
        generation=tables.generation,
        tables={
            name: replace(table, status=last.tables[name].status if name in last.tables else "live")
            for name, table in tables.versions().items()
        }
        | tables.standing(),
        detail=_cut_detail(cut) | detail.json_fields(),
        **_cut_columns(cut),
    )


def _manifest(
    intent: Intent, commits: Mapping[str, int], results: Mapping[str, ViewResult], deltas: Deltas
) -> dict[str, TableVersion]:
    stopped = {str(table) for table in intent.cut.stopped}
    manifest = {
        name: replace(base, status=STOPPED if name in stopped else deltas.counts.status(name))
        for name, base in intent.base.items()
    }
    for name, version in commits.items():
        manifest[name] = replace(manifest[name], version=version)
    for name, result in results.items():
        manifest[name] = replace(manifest[name], version=result.version, status=result.status)
    return manifest


def _cut_columns(cut: Cut) -> dict[str, Any]:
    """The columns of a record that describe its cut."""
    return {
        "position": cut.position,
        "complete_to": cut.complete_to,
        "committed_at": cut.committed_at,
        "offsets": offsets_by_name(cut.end),
    }


def _cut_detail(cut: Cut) -> dict[str, Any]:
    """The part of a detail that describes its cut."""
    return CutDetail.given(
        marker=cut.marker,
        captured=cut.captured,
        leader_epochs=offsets_by_name(cut.leader_epochs),
        stopped={str(table): why for table, why in cut.stopped.items()},
    ).json_fields()


def _intended(base: TableVersion, done: int | None) -> TableVersion:
    return replace(base, status="base") if done is None else replace(base, version=done, status="done")
