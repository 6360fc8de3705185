"""A watch over services that answer what a test gives them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from cdc_views.base.lsn import Lsn
from cdc_views.config import LogSettings, Settings, SourceSettings
from cdc_views.errors import NotRunning
from cdc_views.log.debezium.connect import TaskState
from cdc_views.serve.prometheus.engine import Metrics
from cdc_views.serve.watch.connector_alarm import ConnectorAlarm
from cdc_views.serve.watch.looks import Looks
from cdc_views.serve.watch.watch import Watch
from cdc_views.source.slot_backlog import SlotBacklog
from cdc_views.store.control import ControlRecord, TableVersion
from cdc_views.testing.hand_clock import HandClock

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MB = 1 << 20
SETTINGS = Settings.model_validate(
    {
        "source": SourceSettings(dsn="host=nowhere", tables=("public.t",)),  # type: ignore[arg-type]
        "log": LogSettings(bootstrap_servers="nowhere", connect_url="http://nowhere"),
    }
)
EPOCH = ControlRecord(
    seq=3, term=1, writer="w", kind="publish", epoch=7, attempt=9, position=Lsn(100 * MB), complete_to=Lsn(100 * MB),
    committed_at=NOON, published_at=NOON, offsets={"app.public.t/0": 5},
    tables={
        "public.t": TableVersion("mirrors/public/t/1", 1, "live", "mirror"),
        "v": TableVersion("views/v/1", 1, "failed", "view"),
        "w": TableVersion("views/w/1", 1, "live", "view"),
        "_cv_w_1": TableVersion("internal_views/_cv_w_1/1", 1, "failed", "internal"),
    },
    detail={
        "changes": {"public.t": 5}, "log_bytes": {"public.t": 2000}, "failures": {"v": "DIVIDE_BY_ZERO"},
        "stage_ms": {"cut": 250, "views": 750}, "upkeep": {"ms": 500, "compaction": 2}, "ways": {"view": {"w": "keys"}},
        "view_work": {
            "w": {"keys_looked_up": 2, "rows_found": 7, "rows_recomputed": 3, "rows_read": 20, "files_read": 1,
                  "rows_written": 1, "commits": 1, "milliseconds": 250},
        },
    },
)  # fmt: skip
# EPOCH has read 2,000 bytes after this one, in four offsets.
BEFORE = replace(EPOCH, seq=1, epoch=6, attempt=8, offsets={"app.public.t/0": 1})


def backlog(*, confirmed: int, wal_end: int, limit: int | None = None, wal_status: str = "reserved") -> SlotBacklog:
    """A slot that keeps what is not confirmed. All sizes are in MiB."""
    safe = None if limit is None else (limit - (wal_end - confirmed)) * MB
    limit_bytes = None if limit is None else limit * MB
    at = Lsn(confirmed * MB)
    return SlotBacklog(limit is None, wal_status, safe, limit_bytes, at, at, Lsn(wal_end * MB))


@dataclass
class Answers(Looks):
    """What the services answer; None: nothing."""

    backlog: SlotBacklog | None = None
    state: str | None = "RUNNING"
    behind: dict[str, int] | None = field(default_factory=dict)
    ends: int | None = None

    def slot(self) -> SlotBacklog | None:
        return self.backlog

    def task(self) -> TaskState:
        if self.state is None:
            raise NotRunning("nobody answers")
        return TaskState(self.state)

    def topics(self, published: ControlRecord | None) -> dict[str, int]:
        if self.behind is None:
            raise NotRunning("nobody answers")
        return self.behind

    @property
    def ended(self) -> int | None:
        return self.ends

    def close(self) -> None:
        pass


class Watched:
    """A watch whose looks are taken when the test says so, by a clock that begins at noon."""

    def __init__(self, records: list[ControlRecord] | None = None) -> None:
        self.clock = HandClock(NOON)
        self.answers = Answers()
        self.watch = Watch(SETTINGS, records or [], self.clock, on_task=ConnectorAlarm(), looks=self.answers)

    def look(self, after_s: float = 0) -> None:
        """Let this time pass, and look at every service."""
        self.clock.advance(after_s)
        for service in self.watch.services.values():
            service.look()


def full_metrics() -> Metrics:
    """Metrics of which each has a value: every service has answered, and some looks have failed."""
    watched = Watched([BEFORE, EPOCH])
    watched.answers.backlog = backlog(confirmed=100, wal_end=110, limit=110)
    watched.answers.behind = None
    watched.look(after_s=10)
    watched.answers.behind = {"app.public.t": 3}
    watched.look(after_s=10)
    metrics = Metrics(watched.watch)
    metrics.observe(EPOCH)
    with metrics.counting_errors():
        logging.getLogger("cdc_views").warning("x", extra={"fields": {"error": "MarkerTimeout"}})
    return metrics
