"""Writes markers: updates of the engine's row in cdc_views.heartbeat.

A marker whose event arrives in the log shows how far the log is. Each project has its own row, under the name of its
slot, so only the project's engines increase the row's number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import sql

from cdc_views.base.captured import CapturedSet
from cdc_views.config import SourceSettings
from cdc_views.errors import PreflightFailed, SourceUnreachable
from cdc_views.source.catalog import SYSTEM_IDENTIFIER_SQL, TIMELINE_SQL
from cdc_views.source.connection import Connection, describe_dsn
from cdc_views.source.service.captured import CapturedReader

_TOUCH: Final = """
INSERT INTO cdc_views.heartbeat AS h (id, number, writer, system_identifier, timeline, touched_at)
VALUES ({id}, 1, {writer}, {system}, {timeline}, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET number = h.number + 1, writer = EXCLUDED.writer,
    system_identifier = EXCLUDED.system_identifier, timeline = EXCLUDED.timeline, touched_at = EXCLUDED.touched_at
RETURNING number"""


class Marker:
    """Writes markers, one transaction each, and reads the captured set."""

    def __init__(self, connection: Connection, source: SourceSettings, writer: str) -> None:
        assert connection.autocommit, "each marker needs its own transaction"
        self.writer = writer
        self._connection = connection
        self._reader = CapturedReader(connection, source.publication, source.tables)
        self._id = f"marker {source.slot}"
        self._touch = sql.SQL(_TOUCH).format(
            id=sql.Literal(self._id),
            writer=sql.Literal(writer),
            system=sql.SQL(SYSTEM_IDENTIFIER_SQL),
            timeline=sql.SQL(TIMELINE_SQL),
        )

    def last(self) -> int:
        """Return the number of the last marker in this source, or 0. Raises what `touch` raises."""
        row = self._row(sql.SQL("SELECT number FROM cdc_views.heartbeat WHERE id = {}").format(sql.Literal(self._id)))
        return int(row[0]) if row else 0

    def touch(self) -> int:
        """Write a marker and return its number, which only increases. Raises SourceUnreachable, PreflightFailed."""
        row = self._row(self._touch)
        assert row is not None
        return int(row[0])

    def captured(self) -> CapturedSet:
        """Describe the captured tables as they are now. Raises what `touch` raises."""
        with self._named():
            return self._reader.read()

    def _row(self, query: sql.Composed) -> tuple[Any, ...] | None:
        with self._named():
            return self._connection.execute(query).fetchone()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except psycopg.OperationalError as error:
            raise SourceUnreachable(
                f"lost {describe_dsn(self._connection.info.dsn)} at a marker: {type(error).__name__}",
                hint="the engine reconnects when it is started again",
            ) from None
        except psycopg.errors.ReadOnlySqlTransaction:
            raise SourceUnreachable(
                f"{describe_dsn(self._connection.info.dsn)} is read-only, wanted a primary",
                hint="is it a standby? a marker is a write",
            ) from None
        except (
            psycopg.errors.UndefinedTable,
            psycopg.errors.UndefinedFunction,
            psycopg.errors.InvalidSchemaName,
            psycopg.errors.InsufficientPrivilege,
        ) as error:
            lacks_right = isinstance(error, psycopg.errors.InsufficientPrivilege)
            raise PreflightFailed(
                f'cannot use the service schema "cdc_views": {error.diag.message_primary}',
                hint='run "cdc-views check", which names the rights that the role lacks'
                if lacks_right
                else 'run "cdc-views check --fix", which creates the service tables',
            ) from None
