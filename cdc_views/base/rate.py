"""How fast a number grows, such as the end of a topic."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta


class Rate:
    """The growth of a number over the last `over`, from what was noted of it."""

    def __init__(self, over: timedelta) -> None:
        self._over = over
        self._noted: deque[tuple[datetime, int]] = deque()

    def add(self, value: int, at: datetime) -> None:
        """Note a value. One that has fallen is of another thing, such as a new slot: what was before is forgotten."""
        if self._noted and value < self._noted[-1][1]:
            self._noted.clear()
        self._noted.append((at, value))
        # The first one that is kept is the last one that is at least so old.
        while len(self._noted) > 2 and at - self._noted[1][0] >= self._over:
            self._noted.popleft()

    def per_second(self) -> float | None:
        """The growth in each second; None before the second value."""
        if len(self._noted) < 2:
            return None
        (began, first), (ended, last) = self._noted[0], self._noted[-1]
        seconds = (ended - began).total_seconds()
        return (last - first) / seconds if seconds > 0 else None
