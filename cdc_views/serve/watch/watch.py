"""What is known of a project at this moment: the services, the slot, the topics, and how old each table is.

Nothing here may slow the engine down: each service is looked at in a thread of its own (sampled.py), with a limit, and
what the engine publishes is handed over by `observe`, which keeps it and returns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Self

from cdc_views.base.rate import Rate
from cdc_views.config import Settings
from cdc_views.host.clock import SYSTEM_CLOCK, Clock
from cdc_views.log.debezium.connect import TaskState
from cdc_views.log.kafka.topics import topic_names
from cdc_views.serve.watch.freshness import Freshness
from cdc_views.serve.watch.looks import LIMIT_S, Looks
from cdc_views.serve.watch.offset_bytes import OffsetBytes
from cdc_views.serve.watch.sampled import Sampled
from cdc_views.serve.watch.wal_times import WalTimes
from cdc_views.source.slot_backlog import SlotBacklog
from cdc_views.store.control import ControlRecord

UNREACHABLE: Final = "UNREACHABLE"
"""The state of a task whose Connect does not answer."""
SERVICE_INTERVAL_S: Final = 2.0
TOPICS_INTERVAL_S: Final = 5.0
CONFIRMED_OVER: Final = timedelta(minutes=10)
TOPICS_OVER: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class TopicState:
    """How far the published epoch is behind the end of a topic; `lag_bytes` is an estimate, None without one."""

    lag_offsets: int
    lag_bytes: int | None


def total(topics: Mapping[str, TopicState]) -> TopicState:
    """The sum of all topics; its bytes are not known if those of a topic are not."""
    offsets = sum(each.lag_offsets for each in topics.values())
    known = [each.lag_bytes for each in topics.values() if each.lag_bytes is not None]
    return TopicState(offsets, sum(known) if len(known) == len(topics) else None)


@dataclass(frozen=True)
class SlotState:
    """The slot now.

    `lag_seconds`: nothing that the connector has not confirmed is older. `bytes_per_second`: how fast the WAL grows;
    `confirmed_per_second`: how many bytes of it the connector confirms. `seconds_to_limit`: when the server may begin
    to remove WAL that the slot needs, at that rate. Each is None if it is not known, or if there is no such limit.
    """

    backlog: SlotBacklog
    lag_seconds: float | None
    bytes_per_second: float | None
    confirmed_per_second: float | None
    seconds_to_limit: float | None


class Watch:
    """Use as a context manager: the threads end with it."""

    def __init__(
        self,
        settings: Settings,
        records: Sequence[ControlRecord],
        clock: Clock = SYSTEM_CLOCK,
        *,
        on_task: Callable[[Watch], None] = lambda watch: None,
        looks: Looks | None = None,
    ) -> None:
        """`settings` are those of the current capture, `records` the control log so far.

        `on_task` is called in a thread of its own after each look at the connector. A test may have `looks` of its own.
        """
        self.settings = settings
        self.clock = clock
        self.freshness = Freshness(records)
        self._lock = threading.Lock()
        self._times = WalTimes(records)
        self._bytes = OffsetBytes(topic_names(settings.log.topic_prefix, settings.source.tables), records)
        self._confirmed, self._ended = Rate(CONFIRMED_OVER), Rate(TOPICS_OVER)
        self._looks = looks or Looks(settings)
        limit_s = 2 * LIMIT_S  # a look may connect, and then ask
        self.postgres: Sampled[SlotBacklog | None] = Sampled(self._slot, SERVICE_INTERVAL_S, limit_s)
        self.connect: Sampled[TaskState] = Sampled(self._looks.task, SERVICE_INTERVAL_S, limit_s, lambda: on_task(self))
        self.kafka: Sampled[dict[str, int]] = Sampled(self._topics, TOPICS_INTERVAL_S, limit_s)

    def __enter__(self) -> Self:
        for each in self.services.values():
            each.start()
        return self

    def __exit__(self, *error: object) -> None:
        for each in self.services.values():
            each.close()
        self._looks.close()

    @property
    def services(self) -> dict[str, Sampled[Any]]:
        """The services by name."""
        return {"postgres": self.postgres, "kafka": self.kafka, "connect": self.connect}

    def observe(self, record: ControlRecord) -> None:
        """Take a record that was published."""
        self.freshness.take(record)
        self._bytes.take(record)

    def catch_up(self, records: Sequence[ControlRecord]) -> None:
        """Take those records of the control log that are new; all of another one."""
        last = self.freshness.last
        known = last.seq if last is not None and records and records[-1].seq >= last.seq else -1
        for record in records:
            if record.seq > known:
                self.observe(record)

    def wait(self, limit_s: float) -> None:
        """Wait until every service has answered once, or has failed to."""
        for each in self.services.values():
            each.wait(limit_s)

    @property
    def task_state(self) -> str | None:
        """The state of the connector's task, UNREACHABLE if Connect does not answer; None before the first look."""
        if self.connect.failure is not None:
            return UNREACHABLE
        return None if self.connect.value is None else self.connect.value.state

    @property
    def slot(self) -> SlotState | None:
        """The slot; None if there is none, or if Postgres does not answer."""
        backlog = self.postgres.value
        if backlog is None:
            return None
        with self._lock:
            since, rate = self._times.since(backlog.confirmed), self._times.bytes_per_second()
            confirmed = self._confirmed.per_second()
        return SlotState(
            backlog,
            None if since is None else max(0.0, (self.clock.now() - since).total_seconds()),
            rate,
            confirmed,
            backlog.safe_bytes / rate if backlog.safe_bytes is not None and rate else None,
        )

    @property
    def topics(self) -> dict[str, TopicState] | None:
        """The topics by name; None if Kafka does not answer."""
        if (behind := self.kafka.value) is None:
            return None
        return {topic: TopicState(count, self._bytes.estimate(topic, count)) for topic, count in behind.items()}

    @property
    def records_per_second(self) -> float | None:
        """How many offsets the topics gain, over the last minute; None if it is not known."""
        with self._lock:
            return None if self.kafka.value is None else self._ended.per_second()

    def _topics(self) -> dict[str, int]:
        behind = self._looks.topics(self.freshness.last)
        if (ended := self._looks.ended) is not None:
            with self._lock:
                self._ended.add(ended, self.clock.now())
        return behind

    def _slot(self) -> SlotBacklog | None:
        backlog = self._looks.slot()
        if backlog is not None:
            with self._lock:
                self._times.add(backlog.wal_end, self.clock.now())
                self._times.forget_before(backlog.confirmed)
                self._confirmed.add(backlog.confirmed, self.clock.now())
        return backlog
