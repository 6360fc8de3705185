"""The WAL that the server keeps for the slot: how much, how much more it may become, and what the server says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cdc_views.base.lsn import Lsn
from cdc_views.source.connection import Connection

_MB: Final = 1 << 20
_QUERY: Final = """
SELECT s.active_pid IS NOT NULL, s.wal_status, s.safe_wal_size, s.confirmed_flush_lsn::text, s.restart_lsn::text,
       pg_catalog.pg_current_wal_insert_lsn()::text, m.setting::bigint,
       to_jsonb(s) ->> 'invalidation_reason'
FROM pg_catalog.pg_replication_slots s, pg_catalog.pg_settings m
WHERE s.slot_name = %s AND m.name = 'max_slot_wal_keep_size'"""


@dataclass(frozen=True)
class SlotBacklog:
    """What the server has for a slot at one moment. Sizes are in bytes.

    `confirmed` is the position up to which the connector has stored everything, `wal_end` where the WAL ends. The
    server keeps the WAL from `restart` on. It may write `safe_bytes` more until it may remove WAL that the slot needs,
    by `limit_bytes`, its max_slot_wal_keep_size; both are None without a limit. `wal_status` is the server's: reserved,
    extended, unreserved, lost. `invalidation` is the server's reason for the last one (source/slot.py).
    """

    is_active: bool
    wal_status: str
    safe_bytes: int | None
    limit_bytes: int | None
    confirmed: Lsn
    restart: Lsn
    wal_end: Lsn
    invalidation: str | None = None

    @property
    def lag_bytes(self) -> int:
        """The WAL that the connector has not confirmed."""
        return max(0, self.wal_end - self.confirmed)

    @property
    def kept_bytes(self) -> int:
        """The WAL that the server keeps for the slot."""
        return max(0, self.wal_end - self.restart)


def read_backlog(connection: Connection, name: str) -> SlotBacklog | None:
    """Read what the server has for a slot; None if there is no such slot. Raises SourceUnreachable."""
    row: Any = connection.execute(_QUERY, (name,)).fetchone()
    if row is None:
        return None
    is_active, wal_status, safe_bytes, confirmed, restart, wal_end, limit_mb, invalidation = row
    end = Lsn.parse(wal_end)
    return SlotBacklog(
        is_active,
        # A slot that was just created has not reserved WAL yet.
        wal_status or "reserved",
        None if safe_bytes is None else int(safe_bytes),
        None if limit_mb < 0 else limit_mb * _MB,
        Lsn.parse(confirmed) if confirmed else end,
        Lsn.parse(restart) if restart else end,
        end,
        invalidation,
    )
