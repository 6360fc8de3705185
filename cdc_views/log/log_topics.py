"""The topics of one log as they were when it was opened, and the proof that they are still those.

A topic that was deleted and created again has the same name and other records. A broker that lost its disk may have
fewer records than it acknowledged. Either would go unnoticed by a consumer, so both are checked here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from cdc_views.base.names import TableName
from cdc_views.base.service_schema import HEARTBEAT
from cdc_views.config import LogSettings
from cdc_views.errors import RESET, LogDiscontinuity, OffsetCompacted, TopicChanged
from cdc_views.log.cuts.ranges import require_kept, require_readable
from cdc_views.log.kafka.record import Offsets, TopicPartition
from cdc_views.log.kafka.topics import (
    Topic,
    admin_client,
    begin_offsets,
    describe_topics,
    end_offsets,
    require_kept_as_long,
    require_same_topics,
    topic_facts,
    topic_names,
)

_POLL_S: Final = 0.05
_SHRUNK_LIMIT_S: Final = 10.0
# Reading the settings of thirty topics takes a broker 30 ms; its cleaner sleeps for 15 s between two runs.
_SETTINGS_INTERVAL_S: Final = 2.0


class LogTopics:
    """The topics of the mirrored tables, and those of the service tables (heartbeat, DDL, TRUNCATE)."""

    def __init__(self, settings: LogSettings, tables: Sequence[TableName], known: Mapping[str, Any]) -> None:
        """Read what the brokers say about the topics.

        `known` is what `facts` returned when the mirrors were made; empty for new mirrors.
        Raises TopicChanged, NotRunning.
        """
        self._settings = settings
        self.admin = admin_client(settings)
        self.tables = topic_names(settings.topic_prefix, tables)
        """The table of each topic, by the name of the topic."""
        self._topics = describe_topics(self.admin, self.tables)
        require_same_topics(known, self.facts())
        for name in self.tables:
            if name not in self._topics:
                raise TopicChanged(
                    f'topic "{name}" does not exist', hint='"cdc-views run" creates it before it starts the connector'
                )
        self.partitions = self._partitions_where(lambda table: table != HEARTBEAT)
        """All partitions that a cut has offsets of."""
        self.heartbeat = self._partitions_where(lambda table: table == HEARTBEAT)
        """The partitions of the markers."""
        self._settings_due_s = time.monotonic() + _SETTINGS_INTERVAL_S

    def facts(self) -> dict[str, Any]:
        """Return what must never change about the topics, as JSON."""
        return {name: topic.facts() for name, topic in sorted(self._topics.items())}

    def topic_of(self, table: TableName) -> Topic:
        """Return the topic of a table."""
        return next(self._topics[name] for name, known in self.tables.items() if known == table)

    def partitions_of(self, tables: Collection[TableName]) -> list[TopicPartition]:
        """Return the partitions of the topics of these tables."""
        return self._partitions_where(lambda table: table in tables)

    def begin_offsets(self) -> dict[TopicPartition, int]:
        """Return the first offset of every partition that a cut has offsets of."""
        return begin_offsets(self.admin, self.partitions)

    def ends(self, wanted: Offsets) -> dict[TopicPartition, int]:
        """Return the end offsets of these partitions.

        Raises LogDiscontinuity if a partition ends before its wanted offset, TopicChanged.
        """
        deadline = time.monotonic() + _SHRUNK_LIMIT_S
        while True:
            ends = end_offsets(self.admin, wanted)
            shrunk = next((each for each, at in wanted.items() if ends[each] < at), None)
            if shrunk is None:
                return ends
            self.require_same()
            if time.monotonic() > deadline:
                raise _records_lost(f'partition "{shrunk}" ends at offset {ends[shrunk]}, wanted {wanted[shrunk]}')
            time.sleep(_POLL_S)  # a broker that is no longer the leader may have answered

    def require_readable(self, start: Offsets) -> None:
        """Raise OffsetCompacted if the log no longer has these offsets."""
        require_readable(begin_offsets(self.admin, start), start)

    def require_same(self) -> None:
        """Raise TopicChanged if a topic was deleted, created again or repartitioned since the log was opened."""
        require_same_topics(self.facts(), topic_facts(self.admin, self.tables))

    def require_kept_as_long(self) -> None:
        """Raise TopicChanged if a topic keeps records for less time than when the log was opened.

        Only then is what was read all that was written. The brokers are asked every two seconds at most.
        """
        if (now := time.monotonic()) >= self._settings_due_s:
            require_kept_as_long(self._topics, describe_topics(self.admin, self._topics))
            self._settings_due_s = now + _SETTINGS_INTERVAL_S

    def require_kept(self, end: Offsets, leader_epochs: Mapping[TopicPartition, int]) -> None:
        """Raise LogDiscontinuity if brokers have lost records before these offsets, up to these leader epochs."""
        if known := {each: end[each] for each in leader_epochs}:
            try:
                require_kept(self._settings, known, leader_epochs)
            except OffsetCompacted as error:
                raise self.error_of_lost(error, known) from None

    def error_of_lost(self, error: OffsetCompacted, wanted: Offsets) -> Exception:
        """Return the error to raise where a Reader could not find the wanted offsets; a Reader cannot know why.

        Raises TopicChanged.
        """
        self.require_same()  # a topic that was created again does not have our offsets either
        begin = begin_offsets(self.admin, wanted)
        is_compacted = any(begin[each] > at for each, at in wanted.items())
        return error if is_compacted else _records_lost(error.message)

    def _partitions_where(self, is_wanted: Callable[[TableName], bool]) -> list[TopicPartition]:
        return [
            TopicPartition(name, number)
            for name, table in self.tables.items()
            if is_wanted(table)
            for number in range(self._topics[name].partitions)
        ]


def _records_lost(problem: str) -> LogDiscontinuity:
    return LogDiscontinuity(
        f"{problem}: the log has lost records that it had",
        hint=f"a broker's machine has lost power, or a replica that was behind became the leader; {RESET}",
    )
