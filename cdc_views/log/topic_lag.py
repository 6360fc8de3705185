"""How far some offsets are behind the ends of their topics, without a consumer."""

from __future__ import annotations

from collections import Counter

from confluent_kafka.admin import AdminClient

from cdc_views.config import LogSettings
from cdc_views.log.kafka.record import Offsets
from cdc_views.log.kafka.topics import admin_client, end_offsets


class TopicLag:
    """Asks the brokers where topics end, and waits at most `limit_s` for the answer, the first time twice that."""

    def __init__(self, settings: LogSettings, limit_s: float) -> None:
        self._settings = settings
        self._limit_s = limit_s
        self._admin: AdminClient | None = None
        self.ended: int | None = None
        """The sum of all end offsets, when `behind` was last called; None if it was not, or has failed."""

    def behind(self, held: Offsets) -> dict[str, int]:
        """Count the committed offsets from these on, by topic. Raises NotRunning, TopicChanged.

        Under exactly-once, the marker that ends the last transaction of a partition takes an offset after its last
        record. It is not counted.
        """
        self.ended = None
        if not held:
            return {}
        self._admin = self._admin or admin_client(self._settings)
        counts: Counter[str] = Counter()
        ends = end_offsets(self._admin, held, committed=True, limit_s=self._limit_s)
        for partition, end in ends.items():
            counts[partition.topic] += max(0, end - held[partition] - int(self._settings.exactly_once))
        self.ended = sum(ends.values())
        return dict(counts)
