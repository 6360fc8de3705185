"""Reading a range of offsets again, as it was when it was cut."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Final

from cdc_views.config import LogSettings
from cdc_views.errors import LogGap, OffsetCompacted, TopicChanged
from cdc_views.log.cut import Cut
from cdc_views.log.reader import Reader
from cdc_views.log.record import Offsets, Record, TopicPartition, parse_records

_WAIT_S: Final = 0.05


def require_readable(begin: Offsets, start: Offsets, available: Offsets, end: Offsets) -> None:
    """Raise OffsetCompacted if offsets from `start` on are gone, TopicChanged if those before `end` never were."""
    for partition, wanted in start.items():
        if begin[partition] > wanted:
            raise OffsetCompacted(
                f'topic "{partition.topic}" partition {partition.partition}: first offset is {begin[partition]}, '
                f"wanted {wanted}",
                hint="the log no longer holds the changes that the mirrors need; start with a new snapshot",
            )
    for partition, wanted in end.items():
        if available[partition] < wanted:
            raise TopicChanged(
                f'topic "{partition.topic}" partition {partition.partition} ends at offset {available[partition]}, '
                f"wanted {wanted}",
                hint="the topic lost records or was made anew; start with a new slot and new topics",
            )


def read_range(settings: LogSettings, cut: Cut, limit_s: float) -> dict[TopicPartition, list[Record]]:
    """Read what lies from `cut.start` to before `cut.end`, by partition."""
    records: dict[TopicPartition, list[Record]] = {partition: [] for partition in cut.end}
    wanted = {partition: end for partition, end in cut.end.items() if cut.start[partition] < end}
    if not wanted:
        return records
    deadline = time.monotonic() + limit_s
    with closing(Reader(settings)) as reader:
        reader.assign({partition: cut.start[partition] for partition in wanted})
        while not reader.reached(wanted):
            if time.monotonic() > deadline:
                raise LogGap(
                    f"the cut at position {cut.position} could not be read again in {limit_s:.0f} s",
                    hint="a later cut holds all of it",
                )
            for record in parse_records(reader.read(_WAIT_S)):
                partition = TopicPartition(record.topic, record.partition)
                if record.offset < wanted[partition]:
                    records[partition].append(record)
    return records
