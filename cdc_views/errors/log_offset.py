"""Where a record is in the log: errors name it, and code that handles them reads it from there."""

from __future__ import annotations

from typing import NamedTuple


class LogOffset(NamedTuple):
    """The offset of one record, with its topic and the number of its partition."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f'topic "{self.topic}" partition {self.partition} offset {self.offset}'
