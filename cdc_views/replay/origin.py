"""Where a rebuild starts to read the log."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from cdc_views.errors import BadReplay
from cdc_views.log.kafka.record import TopicPartition

_EPOCH: Final = re.compile(r"epoch:(\d+)")
_OFFSET: Final = re.compile(r"offset:([^/\s]+)/(\d+)/(\d+)")


@dataclass(frozen=True)
class Origin:
    """Where a rebuild starts.

    earliest    with empty mirrors, at the first offset of each topic
    snapshot    with the rows that Postgres has now
    epoch       with the mirrors of `epoch`, at the end offsets of that epoch
    offset      as epoch, but at `offset` in `partition`
    """

    kind: Literal["earliest", "snapshot", "epoch", "offset"]
    epoch: int | None = None
    partition: TopicPartition | None = None
    offset: int | None = None

    def __str__(self) -> str:
        if self.kind == "epoch":
            return f"epoch:{self.epoch}"
        if self.kind == "offset":
            return f"offset:{self.partition}/{self.offset} onto epoch:{self.epoch}"
        return self.kind


_WITHOUT_EPOCH: Final = {"earliest": Origin("earliest"), "snapshot": Origin("snapshot")}


def parse_origin(start: str, onto: str | None = None) -> Origin:
    """Read `--from` and `--onto`. Raises BadReplay."""
    if offset := _OFFSET.fullmatch(start):
        if onto is None:
            raise BadReplay(
                f'"{start}" needs an epoch to replay onto',
                hint="only an epoch holds the rows from before the offset: add --onto epoch:N",
            )
        partition = TopicPartition(offset[1], int(offset[2]))
        return Origin("offset", _epoch(onto, "--onto"), partition, int(offset[3]))
    if onto is not None:
        raise BadReplay(f'--onto "{onto}" with --from "{start}"', hint="use --onto only with --from offset:...")
    if start in _WITHOUT_EPOCH:
        return _WITHOUT_EPOCH[start]
    return Origin("epoch", _epoch(start, "--from"))


def _epoch(text: str, option: str) -> int:
    found = _EPOCH.fullmatch(text)
    if found is None:
        raise BadReplay(
            f'{option} is "{text}", which is not an origin of a rebuild',
            hint="wanted earliest, snapshot, epoch:N or offset:TOPIC/PARTITION/OFFSET with --onto epoch:N",
        )
    return int(found[1])
