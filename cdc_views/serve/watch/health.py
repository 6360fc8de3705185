"""What a project is doing, and what is wrong with it: one sentence that begins with the remedy.

An engine that runs publishes at least its position every few seconds, also when nothing changes. So a recent epoch
without changes means idle, and an old one means that something is stuck, unless the engine is computing an epoch, whose
intent is then in the control log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cdc_views.config import Settings
from cdc_views.errors import RESET, CdcViewsError, NotRunning
from cdc_views.serve.watch.sampled import Sampled
from cdc_views.serve.watch.watch import UNREACHABLE, SlotState, Watch
from cdc_views.serve.watch.words import in_words, kept_wal
from cdc_views.store.control import ControlRecord, PublishedDetail

STUCK_AFTER_S: Final = 30.0
SLOW_AFTER_S: Final = 300.0
_SLOW_TIMES: Final = 10
_NEAR_S: Final = 3600.0
_NEAR_PART: Final = 0.2
_FINE: Final = frozenset({"RUNNING", "STARTING", "RESTARTING"})


@dataclass(frozen=True)
class ProjectFacts:
    """What can be known of a project without its services.

    `pid` is that of its engine, if one runs. `last` is the last published record, `changed` the last one with changes,
    `intent` the open intent, each if there is one. `silent_s` is how long ago the control log got its last record, or
    the engine was started, and `slowest_s` how long the slowest of the last epochs took.
    """

    pid: int | None
    last: ControlRecord
    changed: ControlRecord | None
    intent: ControlRecord | None
    now: datetime
    silent_s: float = 0.0
    slowest_s: float = 0.0

    @property
    def published_ago_s(self) -> float:
        """How long ago the last epoch was published."""
        assert self.last.published_at is not None
        return max(0.0, (self.now - self.last.published_at).total_seconds())

    @property
    def is_stuck(self) -> bool:
        """Whether an engine runs, publishes nothing, and is not computing an epoch."""
        return self.pid is not None and self.intent is None and self.published_ago_s > STUCK_AFTER_S

    @property
    def is_slow(self) -> bool:
        """Whether an engine has been computing an epoch for so long that it may hang."""
        limit_s = max(SLOW_AFTER_S, _SLOW_TIMES * self.slowest_s)
        return self.pid is not None and self.intent is not None and self.silent_s > limit_s


def activity(project: ProjectFacts) -> str:
    """What the engine is doing, in a few words."""
    ago = in_words(project.published_ago_s)
    if project.pid is None:
        return "not running"
    running = f"running, pid {project.pid}"
    if project.is_stuck:
        return f"{running}; stuck: it has published nothing for {ago}, and is not computing an epoch"
    if project.intent is not None and project.is_slow:
        return f"{running}; slow: it has been computing epoch {project.intent.epoch} for {in_words(project.silent_s)}"
    if project.intent is not None:
        return f"{running}; computing epoch {project.intent.epoch}, the last one was published {ago} ago"
    if project.last.is_idle:
        since = "" if project.changed is None else f" since epoch {project.changed.epoch}"
        return f"{running}; idle: nothing has changed{since}, and it looked {ago} ago"
    changes = sum(PublishedDetail.read(project.last).changes.values())
    return f"{running}; following: epoch {project.last.epoch} with {changes} changes was published {ago} ago"


def trouble(project: ProjectFacts, watch: Watch | None, problem: CdcViewsError | None = None) -> str | None:
    """What is wrong, with its remedy first; None if nothing is.

    Without a watch, the services are not known; `problem` is the reason, if it is one.
    """
    found = [] if watch is None else [*_of_slot(watch), *_of_services(watch)]
    if isinstance(problem, NotRunning) and project.pid is None:
        found.append(f"{problem.hint}: {problem.message}")
    found += [*_of_engine(project)]
    found += [] if watch is None else [*_of_limit(watch)]
    found += [*_of_progress(project), *_of_tables(project)]
    return found[0] if found else None


def trouble_before_the_first_epoch(
    watch: Watch | None, problem: CdcViewsError | None, *, is_running: bool
) -> str | None:
    """The same while nothing is published: what keeps an engine, if one runs, from its first epoch."""
    if watch is not None:
        return next(_of_services(watch), None)
    return f"{problem.hint}: {problem.message}" if isinstance(problem, NotRunning) and not is_running else None


def _of_slot(watch: Watch) -> Iterator[str]:
    if not watch.postgres.is_known or watch.postgres.failure is not None:
        return
    name, slot = watch.settings.source.slot, watch.slot
    if slot is None:
        yield f'{RESET}: replication slot "{name}" is gone, and with it the changes since'
    elif slot.backlog.wal_status == "lost":
        yield f'{RESET}: replication slot "{name}" is lost: {kept_wal(slot)}'


def _of_engine(project: ProjectFacts) -> Iterator[str]:
    if project.pid is None:
        yield (
            'run "cdc-views run": no engine is running, and readers see the source as it was '
            f"{in_words(_age_s(project))} ago"
        )


def _of_services(watch: Watch) -> Iterator[str]:
    settings, slot, state = watch.settings, watch.slot, watch.task_state
    kept = "" if slot is None else f"; {kept_wal(slot)}"
    starts = _starts(settings)
    if state == UNREACHABLE:
        yield f"{starts('Kafka Connect', 'log.connect_url')}: Kafka Connect does not answer{kept}"
    elif state is not None and state not in _FINE:
        remedy = f'see the log of Connect, and "cdc-views check"; then restart connector "{settings.log.connector}"'
        yield f"{remedy}: its task is {state}, wanted RUNNING{kept}"
    for service, name, setting in (
        (watch.postgres, "Postgres", "source.dsn"),
        (watch.kafka, "Kafka", "log.bootstrap_servers"),
    ):
        if _is_down(service):
            yield f"{starts(name, setting)}: {name} does not answer ({service.failure})"


def _of_limit(watch: Watch) -> Iterator[str]:
    slot = watch.slot
    if slot is not None and _is_near(slot):
        yield (
            "raise max_slot_wal_keep_size, or look for what the connector waits for: slot "
            f'"{watch.settings.source.slot}" may be lost; {kept_wal(slot)}'
        )


def _of_progress(project: ProjectFacts) -> Iterator[str]:
    if project.is_stuck:
        yield (
            "see the log of the engine, which says what it waits for: nothing was published for "
            f"{in_words(project.published_ago_s)}, and it is not computing an epoch"
        )
    if project.intent is not None and project.is_slow:
        slowest = f", and the slowest of the last ones took {in_words(project.slowest_s)}" if project.slowest_s else ""
        yield (
            "see the log of the engine, and start it again if it hangs: it has been computing epoch "
            f"{project.intent.epoch} for {in_words(project.silent_s)}{slowest}"
        )


def _of_tables(project: ProjectFacts) -> Iterator[str]:
    detail = PublishedDetail.read(project.last)
    for table, stopped in detail.stopped.items():
        yield f'{stopped.hint or RESET}: table "{table}" is stopped: {stopped.message}'
    for table, keys in detail.parked.items():
        yield f'see "cdc-views quarantine list": table "{table}" has {keys} parked keys'
    for view, failure in detail.failures.items():
        if view in project.last.mirrors_and_views:
            yield f'correct the view or its data, and start the engine again: view "{view}" has failed: {failure}'


def _starts(settings: Settings) -> Callable[[str, str], str]:
    if settings.stack == "native":
        return lambda name, setting: 'run "cdc-views up"'
    return lambda name, setting: f"start {name}, or correct {setting}"


def _is_down(service: Sampled[Any]) -> bool:
    return service.is_known and service.failure is not None


def _is_near(slot: SlotState) -> bool:
    """Whether the slot may be lost soon."""
    backlog = slot.backlog
    if backlog.safe_bytes is None or backlog.limit_bytes is None:
        return False
    is_soon = slot.seconds_to_limit is not None and slot.seconds_to_limit < _NEAR_S
    is_little = backlog.safe_bytes < _NEAR_PART * backlog.limit_bytes
    return backlog.wal_status == "unreserved" or (is_little and (is_soon or not backlog.is_active))


def _age_s(project: ProjectFacts) -> float:
    assert project.last.committed_at is not None
    return max(0.0, (project.now - project.last.committed_at).total_seconds())
