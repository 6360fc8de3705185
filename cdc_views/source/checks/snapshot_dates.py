"""Finds dates that Debezium's snapshot moves to other days. The stream has them right.

A snapshot reads dates as Java dates. These have no era, and they skip the ten days that the Julian calendar was behind
in October 1582. So 44 BC arrives as 44 AD, and nothing in the event shows it. The check runs after the snapshot is
complete and before the first epoch. A date that it finds was in the snapshot, or was written since and stops the epoch
by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from psycopg import sql

from cdc_views.errors import RESET, UnsupportedType
from cdc_views.source.catalog import SourceTable
from cdc_views.source.connection import Connection
from cdc_views.source.service.service_tables import identifier

_MOVED: Final = sql.SQL(
    "({0} < '0001-01-01' AND {0} <> '-infinity' OR {0} BETWEEN '1582-10-05' AND '1582-10-14') IS TRUE"
)


def require_dates_of_snapshot(connection: Connection, tables: Iterable[SourceTable]) -> None:
    """Raise UnsupportedType, naming the column, if a table holds such a date. Reads tables with dates in full."""
    for table in tables:
        dates = [column.name for column in table.columns if column.type_name == "date"]
        if not dates:
            continue
        checks = [sql.SQL("bool_or({})").format(_MOVED.format(sql.Identifier(name))) for name in dates]
        query = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(checks), identifier(table.name))
        found = connection.execute(query).fetchone() or ()
        for name, moved in zip(dates, found, strict=True):
            if moved:
                raise UnsupportedType(
                    f'table "{table.name}": column "{name}" holds a date before 0001-01-01, or from 1582-10-05 to '
                    "1582-10-14, which Debezium's snapshot moves to another day",
                    hint=f"change the date in the source, or change the column's type to text; then {RESET}",
                )
