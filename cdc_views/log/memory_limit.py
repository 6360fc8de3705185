"""What the events of a cut take of the driver's memory."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from cdc_views.config import LogSettings
from cdc_views.log.reader import BATCH
from cdc_views.log.record import RawRecord, Record

# Measured on events of 0.5 to 10 KB: the objects of a parsed event take some 2.3 KB and 1.2 times its bytes, beside the
# bytes themselves. The fold and the columns that are made of it take about as much again of the values.
EVENT_BYTES: Final = 2048
_TIMES_ITS_SIZE: Final = 4
# So many events of 4 KiB are a sixteenth of what may be held.
_BATCH_SHARE: Final = 16 * 4096
_LEAST_BATCH: Final = 10
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def event_bytes(record: Record) -> int:
    """About how much memory a parsed event takes."""
    return EVENT_BYTES + _TIMES_ITS_SIZE * (0 if record.raw is None else _size(record.raw))


def limit_bytes(settings: LogSettings) -> int:
    """What the events that the driver holds at once may take."""
    return settings.driver_mb << 20 if settings.driver_mb is not None else _quarter_of_the_machine()


def batch_size(settings: LogSettings) -> int:
    """How many events are read at once, so that little is held beyond `most_bytes`."""
    return max(_LEAST_BATCH, min(BATCH, limit_bytes(settings) // _BATCH_SHARE))


@cache
def _quarter_of_the_machine() -> int:
    """Of the memory that this machine, or this container, has."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # "max" is no number
        total = min(total, int(_CGROUP_LIMIT.read_text()))
    return total // 4


def _size(raw: RawRecord) -> int:
    return len(raw) + len(raw.key() or b"")
