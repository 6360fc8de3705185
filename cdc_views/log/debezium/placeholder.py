"""The placeholder of a log: what its events hold for a value that Postgres did not put into the WAL.

It is a random secret, so that nobody who can write rows can write a value that looks like it. It belongs to the events,
so it is the first record of the topic of notifications: created with the topics, before the connector starts; deleted
with them; and read by whoever decodes their events, at any time. The control log has a copy, from which a deleted topic
of notifications is filled again.
"""

from __future__ import annotations

import secrets
from typing import Final

import orjson
from confluent_kafka import KafkaException, Producer

from cdc_views.config import LogSettings
from cdc_views.errors import RESET, LogDiscontinuity, NotRunning
from cdc_views.log.cuts.ranges import read_piece
from cdc_views.log.debezium.notifications import notification_partition, read_notification
from cdc_views.log.kafka.topics import REQUEST_TIMEOUT_S, admin_client, begin_offsets, end_offsets, unreachable

# A readable prefix, which is no secret, shows a reader of the log what it is.
_PREFIX: Final = "__cdc_views_unavailable_"
_SECRET_BYTES: Final = 16
_KEY: Final = b"cdc_views"
_FIELD: Final = "unavailable_value_placeholder"


def new_placeholder() -> str:
    """Return a placeholder that nobody can guess."""
    return _PREFIX + secrets.token_hex(_SECRET_BYTES)


def settle_placeholder(settings: LogSettings, known: str | None) -> str:
    """Return the placeholder of these topics, which exist; write a new one if there is none.

    Call it before the connector starts. `known` is what the control log has. Raises LogDiscontinuity, NotRunning.
    """
    if (found := _read(settings)) is None:
        if known is None and _end(settings):
            raise LogDiscontinuity(
                f'topic "{notification_partition(settings).topic}" has notifications and no placeholder: the log was '
                "written with Debezium's own, which anybody can write into a row",
                hint=f"the log was written by an earlier version of cdc_views; {RESET}",
            )
        _write(settings, known or new_placeholder())
        found = _read(settings)  # if two write at once, the first record counts
    return _same(settings, found, known)


def read_placeholder(settings: LogSettings, known: str | None = None) -> str:
    """Return the placeholder of a log whose connector was started. Raises LogDiscontinuity, NotRunning."""
    return _same(settings, _read(settings), known)


def _same(settings: LogSettings, found: str | None, known: str | None) -> str:
    if found is None or (known is not None and found != known):
        state = (
            "no placeholder" if found is None else "another placeholder than the one that the warehouse was built with"
        )
        raise LogDiscontinuity(
            f'topic "{notification_partition(settings).topic}" has {state}',
            hint=f'"cdc-views run" fills a topic that was deleted; otherwise the topics belong to another log: {RESET}',
        )
    return found


def _read(settings: LogSettings) -> str | None:
    partition = notification_partition(settings)
    begin = begin_offsets(admin_client(settings), [partition])[partition]
    for records in read_piece(settings, partition, begin, _end(settings)):
        for record in records:
            if record.key() == _KEY and isinstance(found := read_notification(record).get(_FIELD), str):
                return found
    return None


def _end(settings: LogSettings) -> int:
    partition = notification_partition(settings)
    return end_offsets(admin_client(settings), [partition], committed=True)[partition]


def _write(settings: LogSettings, placeholder: str) -> None:
    producer = Producer({"bootstrap.servers": settings.bootstrap_servers, "enable.idempotence": True, "log_level": 2})
    value = orjson.dumps({"aggregate_type": "cdc_views", _FIELD: placeholder})
    failures: list[Exception] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            failures.append(unreachable(KafkaException(error)))

    producer.produce(notification_partition(settings).topic, value, _KEY, partition=0, on_delivery=delivered)
    left = producer.flush(REQUEST_TIMEOUT_S)
    if failures:
        raise failures[0]
    if left:
        raise NotRunning("Kafka does not answer: a record could not be written", hint="check log.bootstrap_servers")
