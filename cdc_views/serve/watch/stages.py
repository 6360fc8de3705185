"""The stages of the data flow: where each is, how far behind, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal

from cdc_views.serve.watch.health import ProjectFacts, activity
from cdc_views.serve.watch.sampled import Sampled
from cdc_views.serve.watch.watch import UNREACHABLE, Watch, total
from cdc_views.serve.watch.words import size_in_words
from cdc_views.store.control import ControlRecord, PublishedDetail

_RATE_OVER: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class Stage:
    """A stage. What is not known, or what a stage does not have, is None.

    `position` is an LSN. The lag is what a stage has not done yet: in bytes of WAL, in seconds, in offsets of topics
    with an estimate of their bytes. The rate is over the last ten minutes for bytes of WAL, written or confirmed, and
    over the last minute for offsets, row changes and epochs.
    """

    name: Literal["postgres", "connect", "kafka", "engine", "readers"]
    state: Literal["good", "bad", "unknown"]
    text: str
    position: str | None = None
    lag_bytes: int | None = None
    lag_seconds: float | None = None
    lag_offsets: int | None = None
    bytes_per_second: float | None = None
    records_per_second: float | None = None
    changes_per_second: float | None = None
    epochs_per_minute: float | None = None


def stages_of(project: ProjectFacts, watch: Watch | None, records: Sequence[ControlRecord]) -> list[Stage]:
    """The stages from the source to its readers. Without a watch, those of services are unknown."""
    return [_postgres(watch), _connect(watch), _kafka(watch), _engine(project, records), _readers(project, records)]


def _postgres(watch: Watch | None) -> Stage:
    if watch is None:
        return Stage("postgres", *_NOT_ASKED)
    if (silent := _no_answer(watch.postgres)) is not None:
        return Stage("postgres", *silent)
    if (slot := watch.slot) is None:
        return Stage("postgres", "bad", f'replication slot "{watch.settings.source.slot}" is gone')
    backlog = slot.backlog
    kept = f"keeps {size_in_words(backlog.kept_bytes)} of WAL for the connector"
    limit = "" if backlog.limit_bytes is None else f", at most {size_in_words(backlog.limit_bytes)}"
    state: Literal["good", "bad"] = "bad" if backlog.wal_status == "lost" else "good"
    rate = slot.bytes_per_second
    return Stage("postgres", state, kept + limit, position=str(backlog.wal_end), bytes_per_second=rate)


def _connect(watch: Watch | None) -> Stage:
    if watch is None:
        return Stage("connect", *_NOT_ASKED)
    state, slot = watch.task_state, watch.slot
    if state is None or state == UNREACHABLE:
        return Stage("connect", "unknown" if state is None else "bad", "no answer yet" if state is None else _SILENT)
    return Stage(
        "connect",
        "good" if state == "RUNNING" else "bad",
        f'connector "{watch.settings.log.connector}" is {state}',
        position=None if slot is None else str(slot.backlog.confirmed),
        lag_bytes=None if slot is None else slot.backlog.lag_bytes,
        lag_seconds=None if slot is None else slot.lag_seconds,
        bytes_per_second=None if slot is None else slot.confirmed_per_second,
    )


def _kafka(watch: Watch | None) -> Stage:
    if watch is None:
        return Stage("kafka", *_NOT_ASKED)
    if (silent := _no_answer(watch.kafka)) is not None:
        return Stage("kafka", *silent)
    states = watch.topics or {}
    topics, lag = "1 topic" if len(states) == 1 else f"{len(states)} topics", total(states)
    return Stage(
        "kafka",
        "good",
        f"one log for each table: {topics}",
        lag_offsets=lag.lag_offsets,
        lag_bytes=lag.lag_bytes,
        records_per_second=watch.records_per_second,
    )


def _engine(project: ProjectFacts, records: Sequence[ControlRecord]) -> Stage:
    is_good = project.pid is not None and not project.is_stuck and not project.is_slow
    recent = [each for each in _recent(project, records) if not each.is_idle]
    changes = sum(sum(PublishedDetail.read(each).changes.values()) for each in recent)
    return Stage(
        "engine",
        "good" if is_good else "bad",
        activity(project),
        position=str((project.intent or project.last).position),
        changes_per_second=changes / _RATE_OVER.total_seconds(),
    )


def _readers(project: ProjectFacts, records: Sequence[ControlRecord]) -> Stage:
    last = project.last
    assert last.committed_at is not None
    age_s = max(0.0, (project.now - last.committed_at).total_seconds())
    return Stage(
        "readers",
        "good",
        f"read epoch {last.epoch}",
        position=str(last.position),
        lag_seconds=age_s,
        epochs_per_minute=len(_recent(project, records)) / (_RATE_OVER / timedelta(minutes=1)),
    )


def _recent(project: ProjectFacts, records: Sequence[ControlRecord]) -> list[ControlRecord]:
    """What was published in the time over which rates are taken."""
    known = [(each, each.published_at) for each in records if each.published_at is not None]
    return [each for each, at in known if project.now - at <= _RATE_OVER]


_SILENT: Final = "does not answer"
_NOT_ASKED: Final[tuple[Literal["unknown"], str]] = ("unknown", "not asked")


def _no_answer(service: Sampled[Any]) -> tuple[Literal["bad", "unknown"], str] | None:
    """Why nothing is known of a service; None if it has answered."""
    if service.failure is not None:
        return "bad", f"{_SILENT} ({service.failure})"
    return None if service.is_known else ("unknown", "no answer yet")
