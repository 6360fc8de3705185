"""Reading a range of offsets again, as it was when it was cut."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from typing import Final

from cdc_views.config import LogSettings
from cdc_views.errors import RESET, CutTooLarge, NotRunning, OffsetCompacted
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.kafka.at_least_once import Redeliveries
from cdc_views.log.kafka.memory_limit import event_bytes, limit_bytes
from cdc_views.log.kafka.reader import Reader
from cdc_views.log.kafka.record import Offsets, RawRecord, Record, TopicPartition, parse_records

_WAIT_S: Final = 0.05
_SILENCE_LIMIT_S: Final = 60.0
# What was fetched beyond the end of a piece is thrown away.
_PREFETCHED: Final = 5_000


def require_readable(begin: Offsets, start: Offsets) -> None:
    """Raise OffsetCompacted if the log no longer has these offsets."""
    for partition, wanted in start.items():
        if begin[partition] > wanted:
            raise OffsetCompacted(
                f'topic "{partition.topic}" partition {partition.partition}: first offset is {begin[partition]}, '
                f"wanted {wanted}",
                hint=f"the log no longer holds the changes that the mirrors need; {RESET}",
            )


def require_kept(settings: LogSettings, end: Offsets, leader_epochs: Mapping[TopicPartition, int]) -> None:
    """Have the brokers compare the leader epochs of the records before these offsets.

    Raises OffsetCompacted, NotRunning.
    """
    deadline = time.monotonic() + _SILENCE_LIMIT_S
    with closing(Reader(settings, prefetched=1)) as reader:
        reader.assign(end, leader_epochs)
        while not reader.answered >= end.keys():
            reader.read(_WAIT_S)
            if time.monotonic() > deadline:
                silent = min(end.keys() - reader.answered)
                raise NotRunning(f'partition "{silent}" could not be read', hint="see the log of the brokers")


def is_end(settings: LogSettings, end: Offsets, available: Offsets, limit_s: float) -> bool:
    """Whether the partitions hold no record from these offsets on: only transaction markers, or nothing."""
    deadline = time.monotonic() + limit_s
    behind = {partition: offset for partition, offset in available.items() if offset > end[partition]}
    if not behind:
        return True
    with closing(Reader(settings)) as reader:
        reader.assign({partition: end[partition] for partition in behind})
        while not reader.reached(behind):
            if reader.read(_WAIT_S) or time.monotonic() > deadline:
                return False
    return True


def read_piece(settings: LogSettings, partition: TopicPartition, start: int, end: int) -> Iterator[list[RawRecord]]:
    """Yield the records of one partition from `start` to before `end`, in batches. Raises NotRunning."""
    for records in read_pieces(settings, {partition: start}, {partition: end}):
        is_within = not records or records[-1].offset() < end
        yield records if is_within else [record for record in records if record.offset() < end]


def read_pieces(settings: LogSettings, start: Offsets, end: Offsets) -> Iterator[list[RawRecord]]:
    """Yield the records of some partitions from `start` to at least `end`, in batches. Raises NotRunning."""
    with closing(Reader(settings, prefetched=_PREFETCHED)) as reader:
        reader.assign(start)
        yield from _until(reader, end, _SILENCE_LIMIT_S)


def read_range(
    settings: LogSettings, cut: Cut, limit_s: float, leaving_out: Collection[str] = ()
) -> dict[TopicPartition, list[Record]]:
    """Read from `cut.start` to before `cut.end`, by partition, except the topics in `leaving_out`.

    Raises NotRunning if nothing comes for `limit_s`, CutTooLarge if it is more than the driver may hold.
    """
    records: dict[TopicPartition, list[Record]] = {
        partition: [] for partition in cut.end if partition.topic not in leaving_out
    }
    wanted = {partition: cut.end[partition] for partition in records if cut.start[partition] < cut.end[partition]}
    if not wanted:
        return records
    redeliveries = None if settings.exactly_once else Redeliveries()
    held, most = 0, 3 * limit_bytes(settings)  # more than a cut that ends early can have
    with closing(Reader(settings)) as reader:
        reader.assign({partition: cut.start[partition] for partition in wanted})
        for found in _until(reader, wanted, limit_s):
            for record in parse_records(found):
                partition = TopicPartition(record.topic, record.partition)
                if redeliveries is not None and redeliveries.is_redelivery(record):
                    continue
                if record.offset < wanted[partition]:
                    records[partition].append(record)
                    held += event_bytes(record)
            if held > most:
                raise CutTooLarge(
                    f"the cut at position {cut.position} has events of more than {most >> 20} MiB to be read again",
                    hint="raise log.driver_mb",
                )
    return records


def _until(reader: Reader, ends: Offsets, limit_s: float) -> Iterator[list[RawRecord]]:
    """Yield what a reader reads, in batches, until it is at these offsets. Raises NotRunning after a silence."""
    heard_s = time.monotonic()
    while not reader.reached(ends):
        if time.monotonic() - heard_s > limit_s:
            behind = next(each for each, end in ends.items() if reader.next[each] < end)
            raise NotRunning(
                f'partition "{behind}" could not be read to offset {ends[behind]}, only to {reader.next[behind]}',
                hint="see the log of the brokers, or of Connect: a transaction may be open until its timeout",
            )
        records = reader.read(_WAIT_S)
        yield records
        if records:
            heard_s = time.monotonic()  # now: the time that the caller took is no silence
