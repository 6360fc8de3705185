"""What `cdc-views status` and the page show: what is wrong, the stages of the data flow, and a row for every table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cdc_views.engine.capture.captures import reset_of
from cdc_views.engine.service.holder import RUN, held_since, holder
from cdc_views.errors import CdcViewsError, NothingPublished
from cdc_views.log.kafka.topics import topic_names
from cdc_views.serve.epochs.history import is_of
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.watch.freshness import Freshness
from cdc_views.serve.watch.health import ProjectFacts, activity, trouble, trouble_before_the_first_epoch
from cdc_views.serve.watch.stages import Stage, stages_of
from cdc_views.serve.watch.watch import TopicState, Watch, total
from cdc_views.serve.watch.words import in_words, size_in_words
from cdc_views.store.control import (
    BUILDING,
    ControlRecord,
    PublishedDetail,
    TakeoverDetail,
    last_published_of,
    last_takeover,
    open_intent,
    read_control,
    written_at,
)
from cdc_views.store.reading import row_count

COLUMNS: Final = (
    *("table", "status", "version", "path", "failure", "parked", "discarded"),
    *("freshness_s", "behind", "behind_bytes", "strategy", "rows", "last_epoch", "last_ms"),
)
SHOWN: Final = (
    *("table", "status", "freshness_s", "behind", "strategy", "rows", "last_epoch", "last_ms"),
    *("parked", "discarded", "failure"),
)

_LAST_EPOCHS: Final = 20


@dataclass(frozen=True)
class Status:
    """What is wrong, if anything; what the engine does; `lines` for people; and `rows` with COLUMNS."""

    epoch: PublishedEpoch
    trouble: str | None
    activity: str
    stages: Sequence[Stage]
    lines: Sequence[str]
    rows: Sequence[Mapping[str, Any]]


def read_status(warehouse: Path, watch: Watch | None, problem: CdcViewsError | None = None) -> Status:
    """Read the control log, and what the watch knows. `problem`: why there is none.

    Raises NothingPublished, with what is wrong and its remedy if something is.
    """
    pid, records = holder(warehouse), read_control(warehouse)
    try:
        epoch = PublishedEpoch(warehouse, last_published_of(records, warehouse))
    except NothingPublished as error:
        wrong = trouble_before_the_first_epoch(watch, problem, is_running=_runner(warehouse) is not None)
        if wrong is None:
            raise
        remedy, _, what = wrong.partition(": ")
        raise NothingPublished(f"{error.message}: {what}", hint=remedy) from None
    if watch is not None:
        watch.catch_up(records)
    now = datetime.now(UTC)
    project = ProjectFacts(
        pid,
        epoch.record,
        _last_change(records),
        open_intent(records),
        now,
        _silent_s(warehouse, records, now),
        _slowest_s(records),
    )
    wrong = trouble(project, watch, problem)
    return Status(
        epoch,
        wrong,
        activity(project),
        stages_of(project, watch, records),
        [*_lines(project, wrong, watch, problem), *_reset_lines(records)],
        list(_rows(warehouse, epoch, records, watch)),
    )


def lines_before_the_first_epoch(warehouse: Path) -> list[str]:
    """What there is to say while nothing is published."""
    pid = _runner(warehouse)
    engine = "not running" if pid is None else f"running, pid {pid}; working on the first epoch, see its log"
    return [f"engine: {engine}", *_reset_lines(read_control(warehouse))]


def _runner(warehouse: Path) -> int | None:
    """The pid of an engine, also of one that takes its initial snapshot."""
    return holder(warehouse) or holder(warehouse, RUN)


def _lines(
    project: ProjectFacts, wrong: str | None, watch: Watch | None, problem: CdcViewsError | None
) -> Iterator[str]:
    if wrong is not None:
        yield f"fix: {wrong}"
    last = project.last
    assert last.committed_at is not None
    age_s = (project.now - last.committed_at).total_seconds()
    yield f"engine: {activity(project)}"
    yield f"epoch {last.epoch} at {last.position}, {age_s:.1f} s old"
    if watch is None:
        yield "services: not asked" + (f": {problem.message}" if problem is not None else "")
        return
    yield f'connector "{watch.settings.log.connector}": {watch.task_state or "no answer yet"}'
    yield _slot_line(watch)
    yield _topics_line(watch)


def _topics_line(watch: Watch) -> str:
    if (topics := watch.topics) is None:
        return "topics: no answer"
    lag = total(topics)
    about = f", about {size_in_words(lag.lag_bytes)}" if lag.lag_offsets and lag.lag_bytes is not None else ""
    return f"topics: {lag.lag_offsets} offsets behind{about}"


def _slot_line(watch: Watch) -> str:
    name, slot = f'slot "{watch.settings.source.slot}"', watch.slot
    if slot is None:
        return f"{name}: {'no answer' if watch.postgres.value is None and not _is_gone(watch) else 'gone'}"
    backlog = slot.backlog
    age = "" if slot.lag_seconds is None else f" ({in_words(slot.lag_seconds)})"
    limit = "without a limit"
    if backlog.limit_bytes is not None:
        limit = f"of at most {size_in_words(backlog.limit_bytes)}"
        if slot.seconds_to_limit is not None and not backlog.is_active:
            limit += f", reached in about {in_words(slot.seconds_to_limit)}"
    used = "" if backlog.is_active else ", nobody reads from it"
    return (
        f"{name}: {size_in_words(backlog.lag_bytes)} behind{age}, keeps {size_in_words(backlog.kept_bytes)} of WAL "
        f"{limit}{used}"
    )


def _is_gone(watch: Watch) -> bool:
    return watch.postgres.is_known and watch.postgres.failure is None


def _rows(
    warehouse: Path, epoch: PublishedEpoch, records: Sequence[ControlRecord], watch: Watch | None
) -> Iterator[dict[str, Any]]:
    detail = epoch.detail
    failures = {**detail.failures, **detail.building, **{name: why.message for name, why in detail.stopped.items()}}
    fresh = Freshness(records).seconds(datetime.now(UTC))
    behind, takeover = _behind(watch), last_takeover(records)
    strategies = TakeoverDetail.read(takeover).strategies if takeover is not None else {}
    costs = _last_costs(records, epoch.tables)
    for name, table in sorted(epoch.tables.items()):
        last_epoch, last_ms = costs.get(name, (None, None))
        lag = behind.get(name)
        yield {
            "table": name, "status": table.status, "version": table.version, "path": table.path,
            "failure": failures.get(name),
            "parked": detail.parked.get(name, 0), "discarded": detail.discarded.get(name, 0),
            "freshness_s": round(fresh[name], 1), "behind": None if lag is None else lag.lag_offsets,
            "behind_bytes": None if lag is None else lag.lag_bytes, "strategy": strategies.get(name),
            "rows": row_count(warehouse, table.path, table.version), "last_epoch": last_epoch, "last_ms": last_ms,
        }  # fmt: skip

    for name in sorted(detail.building.keys() - epoch.tables.keys()):
        yield {**dict.fromkeys(COLUMNS), "table": name, "status": BUILDING, "failure": detail.building[name]}


def _behind(watch: Watch | None) -> dict[str, TopicState]:
    """How far each mirror is behind, by its name."""
    if watch is None or (topics := watch.topics) is None:
        return {}
    tables = topic_names(watch.settings.log.topic_prefix, watch.settings.source.tables)
    return {str(tables[topic]): lag for topic, lag in topics.items() if topic in tables}


def _last_costs(records: Sequence[ControlRecord], names: Collection[str]) -> dict[str, tuple[int, int | None]]:
    """For each table the last epoch that changed it, and for a view the milliseconds that its update took."""
    found: dict[str, tuple[int, int | None]] = {}
    for record in reversed(records):
        if len(found) == len(names):
            break
        new = [name for name in names if name not in found and is_of(record, name)]
        if new and record.published_at is not None:
            work = PublishedDetail.read(record).view_work
            found |= {name: (record.epoch, work[name].milliseconds if name in work else None) for name in new}
    return found


def _silent_s(warehouse: Path, records: Sequence[ControlRecord], now: datetime) -> float:
    """How long ago the last record was written, or the engine was started, which found an intent of an earlier one."""
    known = [at for at in (written_at(warehouse, records[-1]), held_since(warehouse)) if at is not None]
    return max(0.0, (now - max(known)).total_seconds()) if known else 0.0


def _slowest_s(records: Sequence[ControlRecord]) -> float:
    """How long the slowest of the last epochs with changes took."""
    last = [record for record in records if record.published_at and not record.is_idle][-_LAST_EPOCHS:]
    return max((sum(PublishedDetail.read(each).stage_ms.values()) for each in last), default=0) / 1000


def _last_change(records: Sequence[ControlRecord]) -> ControlRecord | None:
    return next((record for record in reversed(records) if record.published_at and not record.is_idle), None)


def _reset_lines(records: Sequence[ControlRecord]) -> Iterator[str]:
    reset = reset_of(records)
    if reset is None:
        return
    state = "" if reset.is_done else ', whose reset is unfinished: "cdc-views reset" continues it'
    yield f'capture {reset.capture.number}: slot "{reset.capture.slot}"{state}'
    if reset.is_done and reset.left:
        yield f'objects of {len(reset.left)} earlier captures are left: "cdc-views reset --clean" removes them'
