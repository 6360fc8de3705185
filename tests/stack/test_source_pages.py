"""The rows beside a row, in its page of Postgres."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from psycopg.pq import TransactionStatus

from cdc_views.base.names import TableName
from cdc_views.errors import SourceUnreachable
from cdc_views.source.catalog import SourceTable, read_tables
from cdc_views.source.connection import connect
from cdc_views.source.reading.pages import rows_beside
from tests.fix_postgres import Database

NAME = TableName("public", "t")
# Three of its rows fill a page.
NARROW = "CREATE TABLE t (id int PRIMARY KEY, filler text DEFAULT repeat('x', 2500))"
PLAIN = "ALTER TABLE t ALTER filler SET STORAGE PLAIN"


def described(database: Database) -> SourceTable:
    """The table as the catalog has it."""
    with closing(database.connect()) as connection:
        return read_tables(connection, [NAME])[NAME]


def beside(database: Database, key: list[Any], transaction: int) -> list[tuple[str | None, ...]]:
    """The keys of the rows beside one."""
    table = described(database)
    with closing(connect(database.dsn)) as connection:
        return sorted(row.key for row in rows_beside(connection, table, key, transaction))


def writer(database: Database, number: int) -> int:
    """The transaction that wrote a row."""
    [(found,)] = database.execute(f"SELECT xmin::text::bigint FROM t WHERE id = {number}")
    return int(found)


def test_rows_beside_are_those_of_the_page_and_the_transaction(database: Database) -> None:
    database.execute(NARROW, PLAIN, "INSERT INTO t VALUES (1)", "INSERT INTO t SELECT generate_series(2, 9)")
    assert beside(database, [2], writer(database, 2)) == [("2",), ("3",)]
    assert beside(database, [4], writer(database, 4)) == [("4",), ("5",), ("6",)]
    with closing(database.connect()) as connection:
        plan = connection.execute(
            "EXPLAIN SELECT FROM t WHERE tableoid = 1 AND ctid >= '(1,0)'::tid AND ctid < '(2,0)'::tid"
        ).fetchall()
    assert "Tid Range Scan" in plan[0][0]


@pytest.mark.parametrize("change", ["UPDATE t SET filler = 'y' WHERE id = 4", "DELETE FROM t WHERE id = 4"])
def test_rows_beside_one_that_is_no_longer_there_are_all_of_its_transaction(database: Database, change: str) -> None:
    database.execute(NARROW, PLAIN, "INSERT INTO t VALUES (1)", "INSERT INTO t SELECT generate_series(2, 9)")
    transaction = writer(database, 4)
    database.execute(change)
    found = beside(database, [4], transaction)
    assert set(found) - {("4",)} == {(str(number),) for number in (2, 3, 5, 6, 7, 8, 9)}


def test_rows_beside_one_of_a_savepoint_are_those_of_its_part(database: Database) -> None:
    database.execute(
        NARROW,
        PLAIN,
        "BEGIN; INSERT INTO t VALUES (1); SAVEPOINT one; INSERT INTO t VALUES (2); INSERT INTO t VALUES (3); COMMIT",
    )
    assert beside(database, [2], writer(database, 1)) == [("1",), ("2",), ("3",)]


def test_rows_beside_one_of_a_partitioned_table_are_of_its_partition(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (20)",
        "INSERT INTO t VALUES (1), (2), (11), (12)",
    )
    assert beside(database, [11], writer(database, 11)) == [("11",), ("12",)]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("bytea", r"\x00ff", b"\x00\xff"),
        ("numeric(8,3)", "1.500", Decimal("1.500")),
        ("text", "it's", "it's"),
        ("boolean", "t", True),
        ("date", "2026-02-01", date(2026, 2, 1)),
        ("timestamp", "2026-02-01 01:02:03.004005", datetime(2026, 2, 1, 1, 2, 3, 4005, tzinfo=UTC)),
        ("timestamptz", "2026-02-01 01:02:03+00", datetime(2026, 2, 1, 1, 2, 3, tzinfo=UTC)),
        ("int4range", "[1,5)", "[1,5)"),
    ],
)
def test_rows_beside_one_are_found_by_the_key_as_the_mirror_has_it(
    database: Database, kind: str, text: str, value: Any
) -> None:
    database.execute(
        f"CREATE TABLE t (id int, other {kind}, filler text DEFAULT repeat('x', 5000), PRIMARY KEY (other, id))", PLAIN
    )
    quoted = text.replace("'", "''")
    database.execute(f"INSERT INTO t SELECT n, '{quoted}' FROM generate_series(1, 3) n")
    # A row alone in its page: the whole table would be read if it were not found by its key.
    assert beside(database, [value, 2], writer(database, 2)) == [(text, "2")]


@pytest.mark.parametrize(("extension", "text"), [("ltree", "a.b"), ("citext", "Ab")])
def test_rows_beside_one_are_found_by_a_key_of_an_extension_in_another_schema(
    database: Database, extension: str, text: str
) -> None:
    database.execute(
        "CREATE SCHEMA ext",
        f"CREATE EXTENSION {extension} SCHEMA ext",
        f"CREATE TABLE t (id int, other ext.{extension}, filler text, PRIMARY KEY (other, id))",
        PLAIN,
        f"INSERT INTO t SELECT n, '{text}', repeat('x', 5000) FROM generate_series(1, 3) n",
    )
    assert beside(database, [text, 2], writer(database, 2)) == [(text, "2")]


def test_rows_beside_one_of_a_composite_key_are_all_of_its_transaction(database: Database) -> None:
    database.execute("CREATE TYPE pair AS (a int, b int)", "CREATE TABLE t (id pair PRIMARY KEY)")
    database.execute("INSERT INTO t VALUES ('(1,2)'), ('(3,4)')")
    [(transaction,)] = database.execute("SELECT xmin::text::bigint FROM t WHERE id = '(1,2)'::pair")
    assert beside(database, ["(1,2)"], transaction) == [("(1,2)",), ("(3,4)",)]


def test_rows_beside_one_of_a_table_that_may_not_be_read_say_so(database: Database) -> None:
    role = f"r_{database.name}"
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    table = described(database)
    try:
        with (
            closing(connect(database.as_role(role, "x"))) as connection,
            pytest.raises(SourceUnreachable, match="permission denied") as error,
        ):
            list(rows_beside(connection, table, [1], 1))
        assert "lock" not in (error.value.hint or "")
    finally:
        database.execute(f"DROP ROLE {role}")


def test_rows_beside_one_of_a_key_in_another_form_are_all_of_its_transaction(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    assert beside(database, ["no number"], writer(database, 1)) == [("1",), ("2",)]


@pytest.mark.parametrize("change", ["DROP TABLE t", "ALTER TABLE t RENAME id TO number"])
def test_rows_beside_one_of_a_table_that_was_changed_are_none(database: Database, change: str) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    table, transaction = described(database), writer(database, 1)
    database.execute(change)
    with closing(database.connect()) as connection:
        assert list(rows_beside(connection, table, [1], transaction)) == []
        assert connection.info.transaction_status == TransactionStatus.IDLE


def test_rows_beside_one_of_a_locked_table_are_not_waited_for(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    table, transaction = described(database), writer(database, 1)
    with closing(database.connect()) as holder, closing(database.connect()) as connection:
        holder.execute("BEGIN; LOCK TABLE t")
        with pytest.raises(SourceUnreachable, match=r'"public\.t" could not be looked at'):
            list(rows_beside(connection, table, [1], transaction))
        holder.execute("COMMIT")
        assert [row.key for row in rows_beside(connection, table, [1], transaction)] == [("1",)]
