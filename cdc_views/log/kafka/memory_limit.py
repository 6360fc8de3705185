"""How much of the driver's memory the events of a cut take, and how much they may take."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from cdc_views.config import LogSettings
from cdc_views.log.kafka.reader import BATCH
from cdc_views.log.kafka.record import Record

# Measured on events of 0.5 to 10 KB: the objects of a parsed event take some 2.3 KB and 1.2 times its bytes, beside the
# bytes themselves. The fold and the columns made from it take about as much again for the values.
EVENT_BYTES: Final = 2048
_TIMES_ITS_SIZE: Final = 4
# A batch of 4 KiB events takes at most a sixteenth of the limit.
_BATCH_SHARE: Final = 16 * 4096
_LEAST_BATCH: Final = 10
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def event_bytes(record: Record) -> int:
    """Return about how much memory a parsed event takes, in bytes."""
    return EVENT_BYTES + _TIMES_ITS_SIZE * record.log_bytes


def limit_bytes(settings: LogSettings) -> int:
    """Return how much the events may take that the driver holds at once, in bytes."""
    return settings.driver_mb << 20 if settings.driver_mb is not None else _quarter_of_the_machine()


def batch_size(settings: LogSettings) -> int:
    """Return how many events to read at once, so that little more than `limit_bytes` is held."""
    return max(_LEAST_BATCH, min(BATCH, limit_bytes(settings) // _BATCH_SHARE))


@cache
def _quarter_of_the_machine() -> int:
    """A quarter of the memory of this machine, or of this container, in bytes."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # "max" is not a number
        total = min(total, int(_CGROUP_LIMIT.read_text()))
    return total // 4
