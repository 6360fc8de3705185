"""Debezium's notifications: where they are, and what one tells."""

from __future__ import annotations

from typing import Any

import orjson

from cdc_views.config import LogSettings
from cdc_views.log.record import RawRecord, TopicPartition
from cdc_views.log.topics import notification_topic


def notification_partition(settings: LogSettings) -> TopicPartition:
    """The one partition of their topic."""
    return TopicPartition(notification_topic(settings.topic_prefix), 0)


def read_notification(message: RawRecord) -> dict[str, Any]:
    """What a notification tells; nothing if it has no value."""
    notification: dict[str, Any] = orjson.loads(message.value() or b"{}")
    # With a schema around it where somebody else's converter writes one.
    found: dict[str, Any] = notification.get("payload", notification)
    return found
