"""The position that "caught up" means."""

from __future__ import annotations

from cdc_views.base.lsn import Lsn
from cdc_views.config import Settings
from cdc_views.source.connection import connect
from cdc_views.source.reading.position import wal_end


def current_target(settings: Settings) -> Lsn:
    """Where Postgres' WAL ends now: an epoch that is complete to here holds every commit until now."""
    with connect(settings.source.dsn.get_secret_value()) as connection:
        return wal_end(connection)
