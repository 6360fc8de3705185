"""Logs when the connector does not run, what that makes Postgres keep, and when it runs again."""

from __future__ import annotations

import logging
from typing import Final

from cdc_views.serve.watch.watch import UNREACHABLE, Watch
from cdc_views.serve.watch.words import in_words, kept_wal

# These pass by themselves: the task has not begun yet, or begins again. A deleted connector stays in STARTING.
_PASSING: Final = frozenset({"STARTING", "RESTARTING"})
_PASSING_LIMIT_S: Final = 30.0
# One look alone may fail on a machine that is busy.
_LOOKS: Final = 2
_REPEAT_S: Final = 60.0
_LOGGER: Final = logging.getLogger(__name__)


class ConnectorAlarm:
    """Called after each look at the connector, in one thread."""

    def __init__(self) -> None:
        self._bad_looks = 0
        self._ran_s: float | None = None
        self._down_since_s: float | None = None
        self._logged_s = 0.0

    def __call__(self, watch: Watch) -> None:
        """Log what is new, and repeat once a minute what is still so."""
        state, now_s = watch.task_state or "STARTING", watch.clock.monotonic()
        if state == "RUNNING":
            self._note_running(watch, now_s)
        elif state not in _PASSING or (self._ran_s is not None and now_s - self._ran_s >= _PASSING_LIMIT_S):
            self._note_down(watch, state, now_s)

    def _note_down(self, watch: Watch, state: str, now_s: float) -> None:
        self._bad_looks += 1
        if self._down_since_s is None:
            self._down_since_s = now_s
        if self._bad_looks < _LOOKS or (self._logged_s and now_s - self._logged_s < _REPEAT_S):
            return
        self._logged_s = now_s
        slot = watch.slot
        kept = "Postgres does not answer either" if slot is None else kept_wal(slot)
        fields = {"connector": watch.settings.log.connector, "state": state, **_numbers(watch)}
        _LOGGER.warning("%s: %s", _problem(watch.settings.log.connector, state), kept, extra={"fields": fields})

    def _note_running(self, watch: Watch, now_s: float) -> None:
        if self._logged_s and self._down_since_s is not None:
            connector, down_s = watch.settings.log.connector, now_s - self._down_since_s
            fields = {"connector": connector, "state": "RUNNING", "down_s": round(down_s, 1)}
            _LOGGER.info('connector "%s" runs again, after %s', connector, in_words(down_s), extra={"fields": fields})
        self._ran_s, self._bad_looks, self._down_since_s, self._logged_s = now_s, 0, None, 0.0


def _problem(connector: str, state: str) -> str:
    if state == UNREACHABLE:
        return f'Kafka Connect does not answer, so connector "{connector}" may not run'
    return f'the task of connector "{connector}" is {state}, wanted RUNNING'


def _numbers(watch: Watch) -> dict[str, int]:
    slot = watch.slot
    if slot is None:
        return {}
    found = {"slot_kept_bytes": slot.backlog.kept_bytes, "slot_safe_bytes": slot.backlog.safe_bytes}
    if slot.seconds_to_limit is not None:
        found["seconds_to_limit"] = round(slot.seconds_to_limit)
    return {name: value for name, value in found.items() if value is not None}
