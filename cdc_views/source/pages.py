"""Rows by the page of the table in which they are stored: a record of the WAL that holds many rows is of one page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import errors, sql

from cdc_views.errors import SourceUnreachable
from cdc_views.source.catalog import SourceTable
from cdc_views.source.connection import Connection
from cdc_views.source.printing import TextRow, printed
from cdc_views.source.service_tables import identifier

# Nobody is to wait longer for us, nor we for whoever holds a table; whoever asked tries again.
_LOCK_TIMEOUT: Final = "SET LOCAL lock_timeout = '5s'"
# Of a key that Postgres reads in another form than the mirror has it (hstore).
_OTHER_FORM: Final = (psycopg.DataError, psycopg.InternalError, errors.SyntaxError)


class StoredRow(NamedTuple):
    """A row: the transaction that wrote it (`xmin`; in a savepoint one of its own), and its key as text."""

    transaction: int
    key: TextRow


def rows_beside(
    connection: Connection, table: SourceTable, key: Sequence[Any], transaction: int
) -> Iterator[StoredRow]:
    """The rows in the page of the row with this key, itself included, that the same transaction has written.

    `transaction` is the one that wrote that row. If another one has changed or removed it since, its page may be
    another: then all rows of the transaction too, for which the whole table is read. A table that is no longer there,
    or not with this key, has none. Raises SourceUnreachable, also for a table that is locked.
    """
    with _asking(connection, table):
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


@contextmanager
def _asking(connection: Connection, table: SourceTable) -> Iterator[None]:
    """A transaction that only reads."""
    connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
    try:
        connection.execute(_LOCK_TIMEOUT)
        yield
    except (errors.UndefinedTable, errors.UndefinedColumn):
        pass  # the log tells of the change of schema
    except psycopg.Error as error:
        raise SourceUnreachable(
            f'table "{table.name}" could not be looked at: {error.diag.message_primary or type(error).__name__}',
            hint="the engine's role must be able to read it; a long lock or a short statement_timeout is in the way",
        ) from None
    finally:
        if not connection.closed:
            connection.execute("ROLLBACK")


def _row_of(connection: Connection, table: SourceTable, key: Sequence[Any]) -> tuple[int, int, int] | None:
    """The partition (or table), page and writer of the row with this key."""
    equal = [
        sql.SQL("{} = {}").format(sql.Identifier(name), _text(part)) for name, part in zip(table.key, key, strict=True)
    ]
    query = sql.SQL(
        "SELECT tableoid::bigint, (ctid::text::point)[0]::bigint, xmin::text::bigint FROM {} WHERE {}"
    ).format(identifier(table.name), sql.SQL(" AND ").join(equal))
    connection.execute("SAVEPOINT row")
    try:
        return connection.execute(query).fetchone()
    except _OTHER_FORM:
        connection.execute("ROLLBACK TO SAVEPOINT row")
        return None


def _text(value: Any) -> str:
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


def _rows(connection: Connection, table: SourceTable, condition: sql.Composable) -> Iterator[StoredRow]:
    query = sql.SQL("COPY (SELECT xmin, {} FROM {} WHERE {}) TO STDOUT").format(
        sql.SQL(", ").join(map(printed, table.key_columns)), identifier(table.name), condition
    )
    with connection.cursor().copy(query) as copy:
        for writer, *values in copy.rows():
            yield StoredRow(int(writer or 0), tuple(values))
