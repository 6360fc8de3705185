"""Damage to the log or to a table. None of it may be published, and the engine must report what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, LiteralString

from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

from bench.soak.world import World
from cdc_views.base.names import TableName
from cdc_views.base.rendering import FOR_SQL_OF_USERS
from cdc_views.errors import NotRunning
from cdc_views.host.waiting import wait_until
from cdc_views.log.debezium.connect import ConnectClient
from cdc_views.log.debezium.connector import connector_config
from cdc_views.log.debezium.placeholder import read_placeholder
from cdc_views.log.kafka.topics import admin_client, delete_topics, ensure_topics, topic_name
from cdc_views.source.connection import connect
from cdc_views.source.slot import drop_slot, read_slot

ORDERS: Final = TableName("public", "orders")
LET_GO_S: Final = 60.0


@dataclass(frozen=True)
class Damage:
    """`do` returns when the damage is done. `errors` are the names of the errors that may report it.

    Damage with a `table` stops that table, and the others go on. Without one it ends the engine. After damage to the
    schema the oracle cannot be asked any more, since it does not follow DDL.
    """

    name: str
    errors: frozenset[str]
    do: Callable[[World], None]
    table: str | None = None
    is_of_schema: bool = False


def _add_partitions(world: World) -> None:
    topic = topic_name(world.settings.log.topic_prefix, ORDERS)
    admin = admin_client(world.settings.log)  # kept in a variable, since its futures need it
    [added] = admin.create_partitions([NewPartitions(topic, 7)]).values()
    added.result()


def _recreate_topics(world: World) -> None:
    log, tables = world.settings.log, world.settings.source.tables
    delete_topics(log, tables)
    ensure_topics(log, tables)


def _drop_slot(world: World) -> None:
    _stop_connector(world)
    with connect(world.dsn) as source:
        drop_slot(source, world.name, limit_s=LET_GO_S)


def _recreate_connector(world: World) -> None:
    worker = ConnectClient(world.settings.log.connect_url)
    worker.delete_connector(world.name)
    with connect(world.dsn) as source:
        drop_slot(source, world.name, limit_s=LET_GO_S)
    worker.put_connector(world.name, connector_config(world.settings, read_placeholder(world.settings.log)))


def _truncate(world: World) -> None:
    with connect(world.dsn, pinned=FOR_SQL_OF_USERS) as source:
        source.execute("TRUNCATE items")


def _altered(*statements: LiteralString) -> Callable[[World], None]:
    def do(world: World) -> None:
        with connect(world.dsn, pinned=FOR_SQL_OF_USERS) as source:
            for statement in statements:
                source.execute(statement)

    return do


def _stop_connector(world: World) -> None:
    ConnectClient(world.settings.log.connect_url).stop_connector(world.name)

    def is_free() -> bool:
        with connect(world.dsn) as source:
            slot = read_slot(source, world.name)
        return slot is not None and slot.active_pid is None

    if not wait_until(is_free, LET_GO_S):
        raise NotRunning(f"the connector did not let go of its slot within {LET_GO_S:.0f} s")


DAMAGES: Final = (
    Damage("partitions_added", frozenset({"TopicChanged"}), _add_partitions),
    Damage("topics_recreated", frozenset({"TopicChanged"}), _recreate_topics),
    Damage("slot_dropped", frozenset({"SlotChanged"}), _drop_slot),
    Damage(
        "connector_recreated", frozenset({"SlotChanged", "LogDiscontinuity", "SequenceRegressed"}), _recreate_connector
    ),
    Damage("table_truncated", frozenset({"TableTruncated"}), _truncate, "public.items"),
    *(
        Damage(name, frozenset({"SchemaChanged"}), _altered(*statements), f"public.{table}", is_of_schema=True)
        for name, table, statements in (
            ("column_added", "orders", ["ALTER TABLE orders ADD COLUMN note text"]),
            ("values_rewritten", "orders", ["ALTER TABLE orders ALTER amount TYPE numeric(8, 2) USING amount * 2"]),
            ("identity_changed", "notes", ["ALTER TABLE notes REPLICA IDENTITY DEFAULT"]),
            (
                "truncated_without_trigger",
                "items",
                ["ALTER TABLE items DISABLE TRIGGER ALL", "TRUNCATE items", "ALTER TABLE items ENABLE TRIGGER ALL"],
            ),
        )
    ),
)
