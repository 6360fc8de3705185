"""Bring the capture up: topics, connector, initial snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cdc_views.config import Settings
from cdc_views.engine.capture.broken import remembering
from cdc_views.engine.capture.captures import SOURCE, known_takeover
from cdc_views.engine.capture.generation import known_placeholder, require_same_source
from cdc_views.engine.capture.mirrored import read_mirrored
from cdc_views.engine.capture.removal import LET_GO_S
from cdc_views.errors import SnapshotInterrupted
from cdc_views.log.connect import Connect
from cdc_views.log.connector import connector_config
from cdc_views.log.placeholder import settle_placeholder
from cdc_views.log.preflight import require_same_cluster, require_slot_matches
from cdc_views.log.snapshot import SnapshotProgress, require_one_snapshot, wait_snapshot
from cdc_views.log.topics import admin_client, delete_topics, ensure_topics, require_same_topics, topic_facts
from cdc_views.lsn import Lsn
from cdc_views.source.catalog import excluded_columns, read_identity
from cdc_views.source.connection import Connection, connect, require_primary
from cdc_views.source.service_tables import record_start_of_capture
from cdc_views.source.slot import drop_slot, read_slot
from cdc_views.store.control.control_log import read_control

# Connect says RUNNING for some seconds of a task that is about to fail (a truncate on a compacted topic).
SETTLE_S: Final = 1.0


def start_capture(settings: Settings, on_progress: Callable[[SnapshotProgress], None]) -> None:
    """Register the connector, or update it, and wait until the initial snapshot is in the log.

    Raises SourceUnreachable, SlotChanged, ConnectorFailed, SnapshotInterrupted.
    """
    _run_connector(settings)
    wait_snapshot(settings.log, on_progress, settings.source.tables)


def resume_capture(settings: Settings) -> None:
    """The same where the initial snapshot was complete once: it is not waited for, whatever became of its topics.

    Raises LogDiscontinuity, TopicChanged and BadConfig too, and SlotChanged again once it was raised.
    """
    _require_same_services(settings)
    with remembering(settings.warehouse):
        _run_connector(settings)
    require_one_snapshot(settings.log)


def require_slot(settings: Settings) -> None:
    """Look whether the slot is where the log of this warehouse ends; what is wrong with it is remembered.

    Raises SlotChanged; LogDiscontinuity, TopicChanged and BadConfig for services that the warehouse was not made from.
    """
    _require_same_services(settings)
    with remembering(settings.warehouse):
        require_slot_matches(settings.log, confirmed_flush(settings))


def _require_same_services(settings: Settings) -> None:
    """What another slot, or another Connect, has stored says nothing of ours."""
    known = known_takeover(read_control(settings.warehouse))
    with connect(settings.source.dsn.get_secret_value()) as connection:
        require_primary(connection)
        if known is not None:
            require_same_source(known.detail[SOURCE], read_identity(connection), settings.source.slot)
    if known is not None:
        topics = known.detail[SOURCE]["topics"]
        require_same_topics(topics, topic_facts(admin_client(settings.log), topics))
    require_same_cluster(settings.log)


def _run_connector(settings: Settings) -> None:
    with connect(settings.source.dsn.get_secret_value()) as connection:
        require_primary(connection)  # a standby has other slots
        ensure_topics(settings.log, settings.source.tables)
        require_slot_matches(settings.log, _confirmed_flush(connection, settings))
        if read_slot(connection, settings.source.slot) is None:
            record_start_of_capture(connection, settings.source.publication)
        records = read_control(settings.warehouse)
        excluded = excluded_columns(read_mirrored(settings, connection, records).sources)
    placeholder = settle_placeholder(settings.log, known_placeholder(known_takeover(records)))
    worker = Connect(settings.log.connect_url)
    worker.put_connector(settings.log.connector, connector_config(settings, placeholder, excluded=excluded))
    # Debezium gives up when a source is away for long, and Connect never starts a failed task again by itself.
    worker.restart_connector(settings.log.connector, only_failed=True)
    worker.wait_running(settings.log.connector, settle_s=SETTLE_S)


def begin_capture(
    settings: Settings,
    on_progress: Callable[[SnapshotProgress], None],
    on_interruption: Callable[[SnapshotInterrupted], None],
) -> None:
    """Do as `start_capture` for a warehouse in which nothing was made yet.

    A snapshot that was cut off left rows that nothing will ever delete, so it is taken again with a new slot, new
    topics and no stored offsets.
    """
    while True:
        try:
            return start_capture(settings, on_progress)
        except SnapshotInterrupted as error:
            on_interruption(error)
            forget_capture(settings)


def forget_capture(settings: Settings) -> None:
    """Delete connector, slot and topics, and wait until they are gone. Raises SlotChanged, NotRunning."""
    Connect(settings.log.connect_url).delete_connector(settings.log.connector)
    with connect(settings.source.dsn.get_secret_value()) as connection:
        drop_slot(connection, settings.source.slot, limit_s=LET_GO_S)
    delete_topics(settings.log, settings.source.tables)


def confirmed_flush(settings: Settings) -> Lsn | None:
    """Up to where the slot's changes are with Kafka for good; None if there is no slot yet."""
    with connect(settings.source.dsn.get_secret_value()) as connection:
        return _confirmed_flush(connection, settings)


def _confirmed_flush(connection: Connection, settings: Settings) -> Lsn | None:
    slot = read_slot(connection, settings.source.slot)
    return slot.confirmed_flush_lsn if slot else None
