"""The position that "caught up" means."""

from __future__ import annotations

from cdc_views.config import Settings
from cdc_views.lsn import Lsn
from cdc_views.source.connection import connect


def current_target(settings: Settings) -> Lsn:
    """Where Postgres' WAL ends now: an epoch that is complete to here holds every commit until now."""
    with connect(settings.source.dsn.get_secret_value()) as connection:
        row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    return Lsn.parse(row[0])
