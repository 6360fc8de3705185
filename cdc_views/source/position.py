"""Where the source's WAL ends."""

from __future__ import annotations

from typing import Any

from cdc_views.lsn import Lsn
from cdc_views.source.connection import Connection


def wal_end(connection: Connection) -> Lsn:
    """Everything that was committed until now is before it."""
    row: Any = connection.execute("SELECT pg_catalog.pg_current_wal_insert_lsn()::text").fetchone()
    return Lsn.parse(row[0])
