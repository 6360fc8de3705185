"""How long the log keeps what the mirrors need, compared with how long ago it was read.

Every version of a row stays for min.compaction.lag.ms. A tombstone stays for delete.retention.ms more, counted from the
first cleaning that meets it, so this is a lower bound (apache/kafka LogCleaner, delete horizon). An engine that was
down for longer may have missed a delete, and could never know.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from cdc_views.errors import RESET, LogGap
from cdc_views.log.kafka.topics import Topic

# The clocks of source, brokers and engine differ. For topics that keep less, the margin is at most a tenth.
_CLOCK_MARGIN_S: Final = 60.0


class LogRetention:
    """Remembers when the log was last read to its end."""

    def __init__(self, mirrored: Sequence[Topic], every_version: Sequence[Topic]) -> None:
        """`every_version` lists the topics of which no version of a row may be missed."""
        keeps_s = min((topic.min_compaction_lag_ms for topic in mirrored), default=0) / 1000
        self.validity_s = _less_margin(keeps_s)
        limits = [topic.min_compaction_lag_ms + topic.delete_retention_ms for topic in mirrored]
        limits += [topic.min_compaction_lag_ms for topic in every_version]
        self.limit_s = _less_margin(min(limits, default=0) / 1000)
        self.reading_limit_s = _less_margin(min((topic.delete_retention_ms for topic in mirrored), default=0) / 1000)
        self._interval_s = min(self.limit_s / 4, 600.0)
        self._caught_up_s: float | None = None
        self._looked_s = 0.0

    def start(self, caught_up_at: datetime | None) -> None:
        """Start at offsets that were the end of the log at that time; None: at the first offsets."""
        self._caught_up_s = None if caught_up_at is None else caught_up_at.timestamp()

    def is_due(self, now_s: float) -> bool:
        """Whether it is time to see if the log was read to its end; true once per interval."""
        if 0 <= now_s - self._looked_s < self._interval_s:  # negative after the clock was set back
            return False
        self._looked_s = now_s
        return True

    def caught_up(self, now_s: float) -> None:
        """Take note that everything that was in the log at this time has been read. Raises LogGap."""
        if self._caught_up_s is not None:
            self.require_gapless(self._caught_up_s, now_s)
        self._caught_up_s = now_s

    def has_every_version(self, now_s: float) -> bool:
        """Whether everything written since the log was last read to its end is far too young to be compacted away."""
        return self._caught_up_s is not None and now_s - self._caught_up_s <= self.validity_s / 2

    def require_gapless(self, since_s: float, now_s: float) -> None:
        """Raise LogGap unless the log still has everything that was deleted after `since_s`."""
        if now_s - since_s > self.limit_s:
            raise LogGap(
                f"the log was last read to its end {now_s - since_s:.0f} s ago, and keeps what was deleted "
                f"for {self.limit_s:.0f} s",
                hint=f"changes may have been compacted away; {RESET}",
            )


def _less_margin(seconds: float) -> float:
    return seconds - min(_CLOCK_MARGIN_S, seconds / 10)
