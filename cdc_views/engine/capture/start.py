"""Starts a capture: topics, connector, initial snapshot."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from cdc_views.base.lsn import Lsn
from cdc_views.config import Settings
from cdc_views.engine.capture.broken import remembering
from cdc_views.engine.capture.capture_removal import LET_GO_S
from cdc_views.engine.capture.captures import facts_of, known_takeover
from cdc_views.engine.capture.generation import known_placeholder, require_same_source
from cdc_views.engine.capture.mirrored import read_mirrored
from cdc_views.errors import BadConfig, ConnectorFailed, SnapshotInterrupted
from cdc_views.log.debezium.connect import ConnectClient
from cdc_views.log.debezium.connector import connector_config
from cdc_views.log.debezium.ownership import OTHER_NAMES, other_owner
from cdc_views.log.debezium.placeholder import settle_placeholder
from cdc_views.log.debezium.snapshot import SnapshotProgress, require_one_snapshot, wait_snapshot
from cdc_views.log.kafka.topics import admin_client, delete_topics, ensure_topics, require_same_topics, topic_facts
from cdc_views.log.preflight import require_same_cluster, require_slot_matches
from cdc_views.source.catalog import excluded_columns, read_identity
from cdc_views.source.connection import connect, require_primary
from cdc_views.source.service.service_tables import record_start_of_capture
from cdc_views.source.slot import Slot, drop_slot, making_waits_for, read_slot
from cdc_views.store.control import read_control

RUNNING_S: Final = 60.0
# Connect reports RUNNING for some seconds even for a task that is about to fail (a truncate on a compacted topic).
SETTLE_S: Final = 1.0

_LOGGER: Final = logging.getLogger(__name__)


def start_capture(settings: Settings, on_progress: Callable[[SnapshotProgress], None]) -> None:
    """Register or update the connector, and wait until the initial snapshot is in the log.

    Raises SourceUnreachable, SlotChanged, ConnectorFailed, SnapshotInterrupted.
    """
    _run_connector(settings)
    wait_snapshot(settings.log, on_progress, settings.source.tables)


def resume_capture(settings: Settings) -> None:
    """Start a capture whose initial snapshot was complete before, whatever has happened to its topics since.

    Raises as `start_capture` does, and LogDiscontinuity, TopicChanged and BadConfig. Once SlotChanged was raised it is
    raised again.
    """
    _require_same_services(settings)
    with remembering(settings.warehouse):
        _run_connector(settings)
    require_one_snapshot(settings.log)


def require_slot(settings: Settings) -> None:
    """Raise SlotChanged, and remember it, if the slot is not where the log of this warehouse ends.

    Raises LogDiscontinuity, TopicChanged and BadConfig for services that the warehouse was not created from.
    """
    _require_same_services(settings)
    with remembering(settings.warehouse):
        require_slot_matches(settings.log, confirmed_flush(settings))


def _require_same_services(settings: Settings) -> None:
    """Check that these are our services: what another slot or another Connect has stored says nothing about ours."""
    known = known_takeover(read_control(settings.warehouse))
    with connect(settings.source.dsn.get_secret_value()) as connection:
        require_primary(connection)
        if known is not None:
            require_same_source(facts_of(known), read_identity(connection), settings.source.slot)
    if known is not None:
        topics = facts_of(known)["topics"]
        require_same_topics(topics, topic_facts(admin_client(settings.log), topics))
    require_same_cluster(settings.log)


def _run_connector(settings: Settings) -> None:
    records = read_control(settings.warehouse)
    known = known_takeover(records)
    with connect(settings.source.dsn.get_secret_value()) as connection:
        require_primary(connection)  # a standby has slots of its own
        slot = read_slot(connection, settings.source.slot)
        _require_own(settings, slot, is_known=known is not None)
        ensure_topics(settings.log, settings.source.tables)
        require_slot_matches(settings.log, slot.confirmed_flush_lsn if slot is not None else None)
        if slot is None:
            record_start_of_capture(connection, settings.source.publication)
        excluded = excluded_columns(read_mirrored(settings, connection, records).sources)
    placeholder = settle_placeholder(settings.log, known_placeholder(known))
    worker = ConnectClient(settings.log.connect_url)
    worker.put_connector(settings.log.connector, connector_config(settings, placeholder, excluded=excluded))
    # Debezium stops when the source is down for long, and Connect never restarts a failed task by itself.
    worker.restart_connector(settings.log.connector, only_failed=True)
    _wait_running(settings, worker)


def _require_own(settings: Settings, slot: Slot | None, *, is_known: bool) -> None:
    """Check that connector and slot are ours, if there are any; `is_known`: whether an engine has read the capture."""
    connector = settings.log.connector
    if (other := other_owner(settings, may_have_moved=is_known)) is not None:
        raise BadConfig(f'connector "{connector}" is that of another project: {other}', hint=OTHER_NAMES)
    if slot is not None and not is_known and not ConnectClient(settings.log.connect_url).exists(connector):
        raise BadConfig(
            f'replication slot "{slot.name}" exists, and connector "{connector}", which would have made it, does not',
            hint=f'if nothing reads from it, "cdc-views destroy" removes it; else {OTHER_NAMES}',
        )


def _wait_running(settings: Settings, worker: ConnectClient) -> None:
    """Wait until the connector runs. Its slot is made only when the transactions have ended that were open before."""
    deadline = time.monotonic() + settings.log.snapshot_timeout_s
    while True:
        try:
            return worker.wait_running(settings.log.connector, RUNNING_S, settle_s=SETTLE_S)
        except ConnectorFailed:
            with connect(settings.source.dsn.get_secret_value()) as connection:
                waits_for = making_waits_for(connection, settings.source.slot)
            if waits_for is None or time.monotonic() > deadline:
                raise
            _LOGGER.warning('Postgres makes slot "%s" when %s has ended; waiting', settings.source.slot, waits_for)


def begin_capture(
    settings: Settings,
    on_progress: Callable[[SnapshotProgress], None],
    on_interruption: Callable[[SnapshotInterrupted], None],
) -> None:
    """Do as `start_capture` for a warehouse without mirrors.

    An interrupted snapshot leaves rows in the topics that nothing will ever delete. So it is taken again with a new
    slot, new topics and no stored offsets, after a call of `on_interruption`.
    """
    while True:
        try:
            return start_capture(settings, on_progress)
        except SnapshotInterrupted as error:
            on_interruption(error)
            forget_capture(settings)


def forget_capture(settings: Settings) -> None:
    """Delete connector, slot and topics, and wait until they are gone. Raises SlotChanged, NotRunning."""
    ConnectClient(settings.log.connect_url).delete_connector(settings.log.connector)
    with connect(settings.source.dsn.get_secret_value()) as connection:
        drop_slot(connection, settings.source.slot, limit_s=LET_GO_S)
    delete_topics(settings.log, settings.source.tables)


def confirmed_flush(settings: Settings) -> Lsn | None:
    """The position up to which Kafka holds the slot's changes for good; None if there is no slot yet."""
    with connect(settings.source.dsn.get_secret_value()) as connection:
        slot = read_slot(connection, settings.source.slot)
    return slot.confirmed_flush_lsn if slot is not None else None
