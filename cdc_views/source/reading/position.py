"""Reads the end of the source's WAL."""

from __future__ import annotations

from typing import Any

from cdc_views.base.lsn import Lsn
from cdc_views.source.connection import Connection


def wal_end(connection: Connection) -> Lsn:
    """Return a position that follows everything that is committed by now."""
    row: Any = connection.execute("SELECT pg_catalog.pg_current_wal_insert_lsn()::text").fetchone()
    return Lsn.parse(row[0])
