"""Reads the rows in one page of a table. A WAL record with several rows covers a single page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import errors, sql

from cdc_views.errors import SourceUnreachable
from cdc_views.source.catalog import SourceTable
from cdc_views.source.connection import Connection
from cdc_views.source.reading.printing import TextRow, printed
from cdc_views.source.service.service_tables import identifier

# Limits how long others wait for us, and how long we wait for a lock. The caller tries again.
_LOCK_TIMEOUT: Final = "SET LOCAL lock_timeout = '5s'"
# Raised for a key whose text in the mirror is not what Postgres reads (hstore), or that it cannot read (composites).
_OTHER_FORM: Final = (
    psycopg.DataError, psycopg.InternalError, psycopg.NotSupportedError, errors.SyntaxError, errors.UndefinedFunction,
)  # fmt: skip
# The operators with which the primary key's index compares its columns: those of an extension can be in any schema.
_EQUAL_SQL: Final = """
SELECT n.nspname::text, o.oprname::text
FROM pg_catalog.pg_index i CROSS JOIN LATERAL unnest(i.indclass::oid[]) WITH ORDINALITY AS part(class, place)
JOIN pg_catalog.pg_opclass c ON c.oid = part.class
JOIN pg_catalog.pg_amop a ON a.amopfamily = c.opcfamily AND a.amopstrategy = 3
     AND a.amoplefttype = c.opcintype AND a.amoprighttype = c.opcintype
JOIN pg_catalog.pg_operator o ON o.oid = a.amopopr JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace
WHERE i.indrelid = %s AND i.indisprimary ORDER BY part.place"""
_READ: Final = 'the engine\'s role must be able to read the table: see "cdc-views check"'


class SourceRow(NamedTuple):
    """A row: the transaction that wrote it (`xmin`; a savepoint has its own), and its key as text."""

    transaction: int
    key: TextRow


def rows_beside(
    connection: Connection, table: SourceTable, key: Sequence[Any], transaction: int
) -> Iterator[SourceRow]:
    """Yield the rows that one transaction wrote into the page of the row with this key, including that row.

    `transaction` is the transaction that wrote the row. If another transaction has changed or removed the row since,
    its page may be a different one. In this case the whole table is read, and all rows of `transaction` are yielded
    too. A table that no longer exists, or no longer has this key, yields nothing. Raises SourceUnreachable, also if the
    table is locked.
    """
    with _asking(connection, table):
        found = _row_of(connection, table, key)
        if found is not None:
            partition, block, writer = found
            # A TID range scan (Postgres 14) reads one page; in a partitioned table, one page of each partition.
            page = sql.SQL("tableoid = {} AND ctid >= {}::tid AND ctid < {}::tid AND xmin = {}::xid").format(
                partition, f"({block},0)", f"({block + 1},0)", str(writer)
            )
            yield from _rows(connection, table, page)
        if found is None or writer != transaction:
            yield from _rows(connection, table, sql.SQL("xmin = {}::xid").format(str(transaction)))


@contextmanager
def _asking(connection: Connection, table: SourceTable) -> Iterator[None]:
    """Open a read-only transaction."""
    connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
    try:
        connection.execute(_LOCK_TIMEOUT)
        yield
    except (errors.UndefinedTable, errors.UndefinedColumn):
        pass  # the log reports the schema change
    except psycopg.Error as error:
        was_waiting = isinstance(error, psycopg.OperationalError)
        raise SourceUnreachable(
            f'table "{table.name}" could not be looked at: {error.diag.message_primary or type(error).__name__}',
            hint="a long lock or a short statement_timeout is in the way" if was_waiting else _READ,
        ) from None
    finally:
        if not connection.closed:
            connection.execute("ROLLBACK")


def _row_of(connection: Connection, table: SourceTable, key: Sequence[Any]) -> tuple[int, int, int] | None:
    """Return the partition (or table), the page and the writing transaction of the row with this key."""
    operators = connection.execute(_EQUAL_SQL, (table.oid,)).fetchall()
    if len(operators) != len(table.key):  # dropped, or with another key: the log reports the schema change
        return None
    equal = [
        sql.SQL("{} OPERATOR({}.{}) {}").format(
            sql.Identifier(name), sql.Identifier(schema), sql.SQL(operator), _text(part)
        )
        for name, (schema, operator), part in zip(table.key, operators, key, strict=True)
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


def _rows(connection: Connection, table: SourceTable, condition: sql.Composable) -> Iterator[SourceRow]:
    query = sql.SQL("COPY (SELECT xmin, {} FROM {} WHERE {}) TO STDOUT").format(
        sql.SQL(", ").join(map(printed, table.key_columns)), identifier(table.name), condition
    )
    with connection.cursor().copy(query) as copy:
        for writer, *values in copy.rows():
            yield SourceRow(int(writer or 0), tuple(values))
