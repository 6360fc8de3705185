"""The replication slot of the connector. We create and drop it, since an abandoned slot keeps WAL for ever."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from cdc_views.base.lsn import Lsn
from cdc_views.errors import RESET, SlotChanged
from cdc_views.host.waiting import wait_while
from cdc_views.source.connection import Connection

_OLDEST_SQL: Final = """
SELECT what FROM (
    SELECT format('process %s, in a transaction since %s', pid, xact_start), xact_start
    FROM pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_catalog.pg_backend_pid()
    UNION ALL
    SELECT format('transaction %L, prepared at %s', gid, prepared), prepared FROM pg_catalog.pg_prepared_xacts
) AS open(what, since) ORDER BY since LIMIT 1"""
_NOT_TRIED_AGAIN_S: Final = 5.0  # Debezium tries to make a slot again 2 s after it has failed
# By pg_replication_slots.invalidation_reason (Postgres 17). Earlier versions invalidate a slot for its WAL only.
_LOSSES: Final = {
    "rows_removed": "the server has removed rows of its catalogs that it needs",
    "wal_level_insufficient": "wal_level was below logical",
    "idle_timeout": "nobody has used it for as long as idle_replication_slot_timeout allows",
}


@dataclass(frozen=True)
class Slot:
    """A logical replication slot."""

    name: str
    database: str
    plugin: str
    active_pid: int | None
    confirmed_flush_lsn: Lsn | None
    wal_status: str | None
    invalidation: str | None = None

    @property
    def lost(self) -> bool:
        """Whether the server has invalidated the slot."""
        return self.wal_status == "lost"

    @property
    def problem(self) -> str:
        """Say that a lost slot is lost, and why."""
        return f"is lost: {loss(self.invalidation)}"


def loss(invalidation: str | None) -> str:
    """Return why the server has invalidated a slot."""
    return _LOSSES.get(invalidation or "", "the server has removed WAL that it needs")


def read_slot(connection: Connection, name: str) -> Slot | None:
    """Describe a slot. Return None if it does not exist."""
    row: Any = connection.execute(
        "SELECT slot_name::text, database::text, plugin::text, active_pid, confirmed_flush_lsn::text,"
        " wal_status, to_jsonb(s) ->> 'invalidation_reason'"
        " FROM pg_catalog.pg_replication_slots s WHERE slot_name = %s",
        (name,),
    ).fetchone()
    if row is None:
        return None
    return Slot(
        name=row[0],
        database=row[1] or "",
        plugin=row[2] or "",
        active_pid=row[3],
        confirmed_flush_lsn=Lsn.parse(row[4]) if row[4] else None,
        wal_status=row[5],
        invalidation=row[6],
    )


def finding(name: str, slot: Slot | None) -> SlotChanged | None:
    """Return the error for a slot that is gone or that the server has invalidated; None for a good one."""
    if slot is not None and not slot.lost:
        return None
    return SlotChanged(
        f'replication slot "{name}" {"is gone" if slot is None else slot.problem}, and with it the changes since',
        hint=RESET,
    )


def making_waits_for(connection: Connection, name: str) -> str | None:
    """What the making of a slot waits for: the oldest transaction that is open. None if the slot is not being made."""
    slot = read_slot(connection, name)
    if slot is None or slot.confirmed_flush_lsn is not None:
        return None
    row = connection.execute(_OLDEST_SQL).fetchone()
    return "a transaction that this role may not see" if row is None else str(row[0])


def free_slots(connection: Connection) -> int:
    """Count the replication slots that can still be created."""
    return _number(
        connection,
        "SELECT current_setting('max_replication_slots')::int - count(*)::int FROM pg_catalog.pg_replication_slots",
    )


def free_wal_senders(connection: Connection) -> int:
    """Count the WAL senders that can still be started."""
    return _number(
        connection,
        "SELECT current_setting('max_wal_senders')::int - count(*)::int FROM pg_catalog.pg_stat_replication",
    )


def drop_slot(connection: Connection, name: str, *, limit_s: float = 15) -> None:
    """Drop the slot if it is there, waiting for its connector to let go of it. Raises SlotChanged.

    The task of a deleted connector that still waits for its slot to be made is ended. It tries again some times, so the
    slot counts as gone only when it has not come back for longer than the pause between.
    """
    making: tuple[float, Slot] | None = None

    def in_use() -> Slot | None:
        nonlocal making
        slot = read_slot(connection, name)
        if slot is None:
            return making[1] if making is not None and time.monotonic() - making[0] < _NOT_TRIED_AGAIN_S else None
        if slot.confirmed_flush_lsn is None and slot.active_pid is not None:
            making = time.monotonic(), slot
            connection.execute("SELECT pg_catalog.pg_terminate_backend(%s)", (slot.active_pid,))
            return slot
        try:
            connection.execute("SELECT pg_catalog.pg_drop_replication_slot(%s)", (name,))
        except psycopg.errors.ObjectInUse:
            return slot
        except psycopg.errors.UndefinedObject:
            pass
        return None

    if (slot := wait_while(in_use, limit_s)) is not None:
        raise SlotChanged(
            f'replication slot "{name}" is still in use by process {slot.active_pid}',
            hint="another connector reads from it; stop that one first",
        )


def _number(connection: Connection, query: str) -> int:
    row: Any = connection.execute(query).fetchone()
    return int(row[0])
