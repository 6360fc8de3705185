"""Looks at one service every few seconds in a thread of its own, so that a slow service delays nobody."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from cdc_views.host.waiting import wait_until

Value = TypeVar("Value")

_LOGGER: Final = logging.getLogger(__name__)

OVERDUE: Final = "Overdue"
"""The failure of a service that does not answer at all, not even with an error."""
_JOIN_LIMIT_S: Final = 1.0


@dataclass(frozen=True)
class _Sample(Generic[Value]):
    """The answer to a look, which may be None."""

    value: Value


class Sampled(Generic[Value]):
    """Calls `look` every `interval_s` seconds from `start` to `close`.

    A look that takes longer than `limit_s` counts as failed while it lasts. After each look, `on_look` is called in the
    thread.
    """

    def __init__(
        self, look: Callable[[], Value], interval_s: float, limit_s: float, on_look: Callable[[], None] = lambda: None
    ) -> None:
        self.failures: Counter[str] = Counter()
        """The looks that failed, by the name of the error."""
        self._look = look
        self._interval_s = interval_s
        self._limit_s = limit_s
        self._on_look = on_look
        self._last: _Sample[Value] | None = None
        self._failure: str | None = None
        self._began_s: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def value(self) -> Value | None:
        """What the last look has returned; None if it failed, and before the first one has ended."""
        return None if self._last is None or self.failure is not None else self._last.value

    @property
    def failure(self) -> str | None:
        """The name of the error of the last look, or OVERDUE; None if it was good, and before the first has ended."""
        began_s = self._began_s
        if began_s is not None and time.monotonic() - began_s > self._limit_s:
            return OVERDUE
        return self._failure

    @property
    def is_known(self) -> bool:
        """Whether a look has ended, well or not."""
        return self._last is not None or self.failure is not None

    def wait(self, limit_s: float) -> None:
        """Wait until a look has ended, well or not."""
        wait_until(lambda: self.is_known, limit_s)

    def close(self) -> None:
        """End the thread. It may take longer than this call if the service does not answer."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_LIMIT_S)

    def look(self) -> None:
        """Look once, in this thread."""
        self._began_s = time.monotonic()
        try:
            self._last = _Sample(self._look())
            self._failure = None
        except Exception as error:  # whatever it is, the engine goes on
            self._failure = type(error).__name__
            self.failures[self._failure] += 1
        self._began_s = None
        try:
            self._on_look()
        except Exception:  # else the thread would end, and the last value would be shown for good
            _LOGGER.exception("an error after a look at a service")

    def _run(self) -> None:
        while not self._ended.is_set():
            self.look()
            self._ended.wait(self._interval_s)
