"""Rows by the page of the table in which they are stored: a record of the WAL that holds many rows is of one page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from cdc_views.source.catalog import SourceTable
from cdc_views.source.connection import Connection
from cdc_views.source.printing import TextRow, printed, printing
from cdc_views.source.service_tables import identifier


class StoredRow(NamedTuple):
    """A row: the transaction that wrote it (`xmin`; in a savepoint one of its own), and its key as text."""

    transaction: int
    key: TextRow


def rows_beside(
    connection: Connection, table: SourceTable, key: Sequence[Any], transaction: int
) -> Iterator[StoredRow]:
    """The rows in the page of the row with this key, itself included, that the same transaction has written.

    `transaction` is the one that wrote that row. If it was changed or removed since, nothing tells its page: then all
    rows of the transaction, which reads the whole table.
    """
    found = _row_of(connection, table, key)
    if found is not None:
        partition, block, writer = found
        # One page, by a scan of a range of tids (Postgres 14); of a partitioned table, one of each partition.
        page = sql.SQL("tableoid = {} AND ctid >= {}::tid AND ctid < {}::tid AND xmin = {}::xid").format(
            partition, f"({block},0)", f"({block + 1},0)", str(writer)
        )
        yield from _rows(connection, table, page)
    if found is None or writer != transaction:
        yield from _rows(connection, table, sql.SQL("xmin = {}::xid").format(str(transaction)))


def _row_of(connection: Connection, table: SourceTable, key: Sequence[Any]) -> tuple[int, int, int] | None:
    """The partition (or table), page and writer of the row with this key."""
    equal = [
        sql.SQL("{} = {}").format(sql.Identifier(name), _text(part)) for name, part in zip(table.key, key, strict=True)
    ]
    query = sql.SQL(
        "SELECT tableoid::bigint, (ctid::text::point)[0]::bigint, xmin::text::bigint FROM {} WHERE {}"
    ).format(identifier(table.name), sql.SQL(" AND ").join(equal))
    try:
        return connection.execute(query).fetchone()
    except psycopg.DataError:
        return None  # a key that Postgres reads in another form than the mirror holds it


def _text(value: Any) -> str:
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


def _rows(connection: Connection, table: SourceTable, condition: sql.Composable) -> Iterator[StoredRow]:
    key = [column for name in table.key for column in table.columns if column.name == name]
    query = sql.SQL("COPY (SELECT xmin, {} FROM {} WHERE {}) TO STDOUT").format(
        sql.SQL(", ").join(map(printed, key)), identifier(table.name), condition
    )
    with printing(connection), connection.cursor().copy(query) as copy:
        for writer, *values in copy.rows():
            yield StoredRow(int(writer or 0), tuple(values))
