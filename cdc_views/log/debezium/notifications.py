"""Debezium's notifications: their partition, and their content."""

from __future__ import annotations

from typing import Any

import orjson

from cdc_views.config import LogSettings
from cdc_views.log.kafka.record import RawRecord, TopicPartition
from cdc_views.log.kafka.topics import notification_topic


def notification_partition(settings: LogSettings) -> TopicPartition:
    """Return the only partition of the notifications' topic."""
    return TopicPartition(notification_topic(settings.topic_prefix), 0)


def read_notification(message: RawRecord) -> dict[str, Any]:
    """Return the content of a notification; empty if it has no value."""
    notification: dict[str, Any] = orjson.loads(message.value() or b"{}")
    # A converter that is not ours may wrap it in a schema.
    found: dict[str, Any] = notification.get("payload", notification)
    return found
