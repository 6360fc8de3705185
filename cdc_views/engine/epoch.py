"""One epoch: from a cut of the log to a published record in the control log.

A crash before `publish` leaves nothing that a reader can see; `recovery` finishes the same epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from cdc_views import faults
from cdc_views.captured import CapturedSet
from cdc_views.engine.abandon import abandon
from cdc_views.engine.deltas import Deltas, read_deltas
from cdc_views.engine.mirrors import commit_mirrors
from cdc_views.engine.parallel import beside
from cdc_views.engine.quarantine import NAME, Entry, Retry, commit_step, keep_stopped, version_of
from cdc_views.engine.tables import Tables
from cdc_views.engine.views import ViewResult, ViewRunner
from cdc_views.errors import CdcViewsError, EventError
from cdc_views.log.cut import Cut, CutLog
from cdc_views.log.record import Offsets, offsets_by_name, offsets_by_partition
from cdc_views.log_offset import LogOffset
from cdc_views.metrics import Stages
from cdc_views.names import TableName
from cdc_views.stopped import STOPPED, stopped_detail, stopped_in
from cdc_views.store.control import ControlLog, ControlRecord, TableVersion
from cdc_views.store.warehouse import Stamp

BULK: Final = "bulk"  # in the detail of an intent: tables that Spark reads from the log
MARKER: Final = "marker"  # in the detail of an intent and of a published record: the number of its cut's marker
CAPTURED: Final = "captured"  # there, too: what describes the captured tables at its position
LEADER_EPOCHS: Final = "leader_epochs"  # there, too: of each partition, as it was when the cut ended
SWAPS: Final = "swaps"  # in the detail of an intent: what kind of record it will publish
RETRIES: Final = "retries"  # in the detail of an intent: the parked event whose key is tried again; empty for all
QUARANTINE: Final = "quarantine"  # in the detail of an intent: the version of the quarantine that it starts from
# In the detail of a published record, and true as long as no epoch changes them.
_STANDING: Final = ("failures", "parked", "discarded")


@dataclass(frozen=True)
class Swap:
    """How an epoch differs in which rebuilt tables are published in the place of others.

    Their part of the log is read again from `start`; `detail` goes into the published record.
    """

    kind: Literal["swap", "rollback"]
    start: Offsets
    detail: Mapping[str, Any]


@dataclass(frozen=True)
class Intent:
    """What this attempt will do; a crash repeats exactly this.

    `base` are the versions that the epoch starts from, `done` those that an earlier attempt at the
    same epoch has committed already. `swap` is set where the epoch puts rebuilt tables in place, `retry` where it
    applies parked events again. What is parked when it begins is in the version `quarantine` of that table.
    """

    epoch: int
    attempt: int
    cut: Cut
    base: dict[str, TableVersion]
    done: dict[str, int] = field(default_factory=dict)
    swap: Swap | None = None
    quarantine: int | None = None
    retry: Retry | None = None

    @property
    def stamp(self) -> Stamp:
        """What every commit of this attempt carries."""
        return Stamp(self.epoch, self.attempt, str(self.cut.position))


def run_epoch(
    log: CutLog, tables: Tables, views: ViewRunner, control: ControlLog, idle_interval_s: float
) -> ControlRecord | None:
    """Run the next epoch and return its published record; None if nothing changed and nothing was due."""
    stages = Stages()
    cut = next_cut(log, tables)  # 1. a position, and offsets that hold all of it
    stages.done("cut")
    faults.point("epoch.after_cut")
    has_stopped = cut.stopped.keys() != tables.stopped().keys()
    if tables.published is not None and not log.has_changes(cut) and not has_stopped and views.are_built(tables):
        return move_position(control, cut, tables, idle_interval_s)
    intent = Intent(control.new_epoch(), control.new_attempt(), cut, tables.versions(), quarantine=version_of(tables))
    writing = beside(lambda: _write_down(control, intent, tables))  # 2. from here on a crash repeats exactly this
    return finish_epoch(log, tables, views, control, intent, stages, writing)


def run_retry(log: CutLog, tables: Tables, views: ViewRunner, control: ControlLog, retry: Retry) -> ControlRecord:
    """Run an epoch that applies parked events again. After a crash it is abandoned, not repeated."""
    intent = intend(control, next_cut(log, tables), tables, retry=retry)
    return finish_epoch(log, tables, views, control, intent, Stages())


def run_swap(
    log: CutLog, tables: Tables, views: ViewRunner, control: ControlLog, cut: Cut, swap: Swap
) -> ControlRecord:
    """Run the epoch of a cut that publishes `tables.standing_in`. After a crash it is abandoned, not repeated."""
    intent = intend(control, cut, tables, swap=swap)
    return finish_epoch(log, tables, views, control, intent, Stages())


def finish_epoch(
    log: CutLog,
    tables: Tables,
    views: ViewRunner,
    control: ControlLog,
    intent: Intent,
    stages: Stages,
    writing: AbstractContextManager[None] | None = None,
) -> ControlRecord:
    """Steps 3 to 6: the part that recovery repeats. Nothing is committed before `writing`, of the intent, has ended.

    At an event that cannot be applied the epoch is abandoned, and the event's error raised, unless events are parked.
    Where the connector has left rows out of the log, RowsLost is raised; where only a later cut can tell, the epoch is
    abandoned for one with that.
    """
    began = control.clock.now()
    with writing or nullcontext():
        deltas = read_deltas(log, intent, tables)  # 3. old and new row of every key that changed
    if deltas.step.refused and not tables.parks:
        raise _stopped(tables, control, intent, deltas.step.refused)
    stages.done("deltas")
    try:
        kept = commit_step(tables, deltas.step, intent.done, intent.stamp)  # what is parked, before what is not
        faults.point("quarantine.after_commit")
        commits = commit_mirrors(tables, deltas.mirrors, intent)  # 4. one version per changed mirror
    except EventError as error:
        return _bad_in_bulk(log, tables, views, control, intent, error)
    if intent.cut.bulk:
        # What Spark has read of the log is right only if nothing of it was compacted away meanwhile.
        log.require_repeatable(intent.cut)
        log.require_read_in_time(began)
        if tables.committed_at is not None:
            log.require_gapless(tables.committed_at)
    lost_rows, counts = tables.lost_rows, deltas.counts
    if lost_rows is not None and not lost_rows.is_sure(log, tables, intent.cut, commits, counts):
        return _cut_again(log, tables, views, control, intent)
    stages.done("mirrors")
    faults.point("epoch.after_mirrors")
    changed = tables.mirrors_standing_in() | commits
    results = views.maintain(tables, changed, intent)  # 5. find, recompute, diff, commit; children after parents
    stages.done("views")
    faults.point("epoch.before_publish")
    commits |= kept
    record = publish(control, tables, intent, commits, results, deltas, stages)  # 6. all of it visible, or nothing
    faults.point("epoch.after_publish")
    tables.advance(record)
    return record


def next_cut(log: CutLog, tables: Tables) -> Cut:
    """Everything up to now that no epoch holds. The driver reads tables of whose log not all is to be applied."""
    entries = [] if tables.quarantine is None else tables.quarantine.at(tables.version(NAME))
    sifted = {TableName.parse(entry.table) for entry in entries}
    return log.cut(tables.offsets, tables.position, tables.committed_at, sifted, tables.stopped())


def _stopped(
    tables: Tables, control: ControlLog, intent: Intent, refused: Sequence[tuple[CdcViewsError, Entry]]
) -> CdcViewsError:
    """Give the epoch up and keep the events; the error of the first."""
    error, entry = refused[0]
    abandon(tables, control, intent, intent.done, f"stopped before {entry.place}")
    keep_stopped(tables, control, [entry for _, entry in refused])
    hint = '"cdc-views quarantine list" shows it, and docs/bad_events.md what can be done'
    stopping = copy(error)  # with its fields
    stopping.hint = f"{error.hint}; {hint}" if error.hint else hint
    return stopping


def _bad_in_bulk(
    log: CutLog, tables: Tables, views: ViewRunner, control: ControlLog, intent: Intent, error: EventError
) -> ControlRecord:
    """Stop at an event that a task of a bulk reading has met, or have the driver read its table."""
    at = error.log_offset
    if at is None:
        raise error
    if not tables.parks:
        raise _stopped(tables, control, intent, [(error, _entry_of(log, at, intent, error))])
    abandon(tables, control, intent, intent.done, f"met {at}, which is parked")
    cut = replace(intent.cut, bulk=intent.cut.bulk - {log.table_of(at.topic)})
    again = intend(control, cut, tables, swap=intent.swap, retry=intent.retry)
    return finish_epoch(log, tables, views, control, again, Stages())


def _cut_again(log: CutLog, tables: Tables, views: ViewRunner, control: ControlLog, intent: Intent) -> ControlRecord:
    """Give the epoch up for one with a later cut."""
    abandon(tables, control, intent, intent.done, "only a later cut can tell whether the connector has left rows out")
    again = intend(control, next_cut(log, tables), tables, swap=intent.swap, retry=intent.retry)
    return finish_epoch(log, tables, views, control, again, Stages())


def _entry_of(log: CutLog, at: LogOffset, intent: Intent, error: EventError) -> Entry:
    record = log.record_at(at)
    if record is None:
        raise error
    return Entry.of(str(log.table_of(at.topic)), record, error.problem, "stopped", intent.epoch)


def move_position(control: ControlLog, cut: Cut, tables: Tables, idle_interval_s: float) -> ControlRecord | None:
    """Say that the last epoch's tables hold at a later position too; not oftener than every `idle_interval_s`."""
    last = tables.published
    assert last is not None
    assert last.published_at is not None
    if (control.clock.now() - last.published_at).total_seconds() < idle_interval_s:
        tables.skip(cut.end)
        return None
    record = control.append(
        kind="publish",
        epoch=control.new_epoch(),
        attempt=control.new_attempt(),
        generation=tables.generation,
        position=cut.position,
        complete_to=cut.complete_to,
        committed_at=cut.committed_at,
        offsets=offsets_by_name(cut.end),
        tables={
            name: replace(table, status=last.tables[name].status if name in last.tables else "live")
            for name, table in tables.versions().items()
        },
        detail={name: last.detail[name] for name in _STANDING if name in last.detail} | _told(cut),
    )
    tables.advance(record)
    return record


def intend(control: ControlLog, cut: Cut, tables: Tables, done: dict[str, int] | None = None,
           epoch: int | None = None, swap: Swap | None = None, quarantine: int | None = None,
           retry: Retry | None = None) -> Intent:  # fmt: skip
    """Write down what the next attempt will do. A recovery keeps the `epoch` and names what is `done`."""
    start = version_of(tables) if quarantine is None else quarantine
    if swap is not None:
        cut = replace(cut, start={**cut.start, **swap.start})
    intent = Intent(epoch or control.new_epoch(), control.new_attempt(), cut, tables.versions(), done or {}, swap,
                    start, retry)  # fmt: skip
    _write_down(control, intent, tables)
    return intent


def _write_down(control: ControlLog, intent: Intent, tables: Tables) -> None:
    cut, swap = intent.cut, intent.swap
    control.append(
        kind="intent",
        epoch=intent.epoch,
        attempt=intent.attempt,
        generation=tables.generation,
        position=cut.position,
        complete_to=cut.complete_to,
        committed_at=cut.committed_at,
        offsets=offsets_by_name(cut.end),
        tables={name: _intended(base, intent.done.get(name)) for name, base in intent.base.items()},
        detail={
            "start": offsets_by_name(cut.start),
            **_told(cut),
            **({BULK: sorted(map(str, cut.bulk))} if cut.bulk else {}),
            **({SWAPS: swap.kind} if swap else {}),
            **({} if intent.quarantine is None else {QUARANTINE: intent.quarantine}),
            **({RETRIES: list(intent.retry.place or ())} if intent.retry else {}),
        },
    )
    faults.point("epoch.after_intent")


def read_intent(record: ControlRecord) -> Intent:
    """The intent that a record of kind `intent` wrote down."""
    assert record.kind == "intent"
    cut = cut_of(record, offsets_by_partition(record.detail["start"]), offsets_by_partition(record.offsets))
    done = {name: table.version for name, table in record.tables.items() if table.status == "done"}
    cut = replace(cut, bulk=frozenset(map(TableName.parse, record.detail.get(BULK, ()))))
    quarantine = record.detail.get(QUARANTINE)
    return Intent(record.epoch, record.attempt, cut, dict(record.tables), done, quarantine=quarantine)


def cut_of(record: ControlRecord, start: Offsets, end: Offsets) -> Cut:
    """The cut of a record that has one, or a part of it."""
    assert record.position is not None
    assert record.complete_to is not None
    assert record.committed_at is not None
    marker, captured = record.detail.get(MARKER), record.detail.get(CAPTURED)
    epochs = offsets_by_partition(record.detail.get(LEADER_EPOCHS, {}))
    return Cut(record.position, record.complete_to, record.committed_at, start, end, marker=marker,
               captured=None if captured is None else CapturedSet.model_validate(captured),
               leader_epochs={each: epoch for each, epoch in epochs.items() if each in end},
               stopped=stopped_in(record.detail))  # fmt: skip


def publish(
    control: ControlLog,
    tables: Tables,
    intent: Intent,
    commits: dict[str, int],
    results: dict[str, ViewResult],
    deltas: Deltas,
    stages: Stages,
) -> ControlRecord:
    """Make the epoch visible: one record with the version of every table."""
    mirrors, counts = deltas.mirrors, deltas.counts
    stopped = {str(table) for table in intent.cut.stopped}
    manifest = {
        name: TableVersion(base.path, base.version, STOPPED if name in stopped else counts.status(name))
        for name, base in intent.base.items()
    }
    for name, version in commits.items():
        manifest[name] = replace(manifest[name], version=version)
    for name, result in results.items():
        manifest[name] = replace(manifest[name], version=result.version, status=result.status)
    return control.append(
        kind=intent.swap.kind if intent.swap else "publish",
        epoch=intent.epoch,
        attempt=intent.attempt,
        generation=tables.generation,
        position=intent.cut.position,
        complete_to=intent.cut.complete_to,
        committed_at=intent.cut.committed_at,
        offsets=offsets_by_name(intent.cut.end),
        tables=manifest,
        detail={
            "changes": {name: delta.events for name, delta in mirrors.items() if delta.events},
            "snapshot_rows": {name: delta.snapshot_rows for name, delta in mirrors.items() if delta.snapshot_rows},
            "failures": {name: result.failure for name, result in results.items() if result.failure},
            "stage_ms": stages.milliseconds(),
            "ways": tables.warehouse.ways.taken(),
            "upkeep": tables.upkeep_done.taken(),  # between the last epoch and this one
            **_told(intent.cut),
            **counts.detail(),
            **(intent.swap.detail if intent.swap else {}),
            **(intent.retry.detail if intent.retry else {}),
        },
    )


def read_offsets(record: ControlRecord) -> Offsets:
    """Up to before which offset of each partition a published record holds the log."""
    return offsets_by_partition(record.offsets)


def _told(cut: Cut) -> dict[str, Any]:
    told = {
        MARKER: cut.marker,
        CAPTURED: None if cut.captured is None else cut.captured.model_dump(),
        LEADER_EPOCHS: offsets_by_name(cut.leader_epochs) or None,
        STOPPED: stopped_detail(cut.stopped) or None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _intended(base: TableVersion, done: int | None) -> TableVersion:
    return TableVersion(base.path, base.version, "base") if done is None else TableVersion(base.path, done, "done")
