"""Real rows too wide for a page, and which of their values Postgres stores out of line."""

from __future__ import annotations

from contextlib import closing
from typing import Final

import pytest

from cdc_views.base.names import TableName
from cdc_views.source.catalog import SourceTable, read_tables
from tests.fix_postgres import Database

# A type, and the largest value that it can hold in storage.
NEVER: Final = (
    ("varchar(5)", "repeat('😀', 5)"),
    ("char(5)", "repeat('😀', 5)"),
    ("numeric(5,2)", "-999.99"),
    ("numeric(38,10)", f"-{'9' * 28}.{'9' * 10}"),
    ("numeric(38,18)", f"-{'9' * 20}.{'9' * 18}"),
    ("numeric(40,20)", f"-{'9' * 20}.{'9' * 20}"),
    ("numeric(32,-200)", f"-{'9' * 32}e200"),
    ("numeric(32,300)", f"-{'9' * 32}e-300"),
    ("numeric(5,2)", "'NaN'"),
    ("bit(1)", "B'1'"),
    ("bit(152)", f"B'{'1' * 152}'"),
    ("inet", "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127'"),
    ("cidr", "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128'"),
    ("int4range", "'[-2147483648,2147483646]'"),
    ("int8range", "'[-9223372036854775808,9223372036854775806]'"),
    ("daterange", "'[0001-01-01,9999-12-31]'"),
    ("tsrange", "'[0001-01-01,9999-12-31]'"),
    ("tstzrange", "'[0001-01-01,9999-12-31]'"),
    # Of a fixed length.
    ("uuid", "gen_random_uuid()"),
    ("interval", "'178000000 years'"),
    ("macaddr8", "'08:00:2b:01:02:03:04:05'"),
    ("mood", "'sad'"),
    ("name", "repeat('x', 63)"),
    ("timetz", "'23:59:59.999999+14'"),
    ("circle", "'<(1e300,1e300),1e300>'"),
    ("box", "'(1e300,1e300),(-1e300,-1e300)'"),
)
# A type of the same kind, and a value that moves.
MOVES: Final = (
    ("varchar(6)", "repeat('😀', 6)"),
    ("char(6)", "repeat('😀', 6)"),
    ("numeric(41,20)", f"-{'9' * 21}.{'9' * 20}"),
    ("numeric", f"-{'9' * 21}.{'9' * 20}"),
    ("bit(153)", f"B'{'1' * 153}'"),
    ("numrange", f"'[{'1' * 21}.{'9' * 20},{'2' * 21}]'"),
    ("text", "repeat('x', 24)"),
    ("bytea", f"'{'x' * 24}'"),
    ("int[]", "'{1,2}'"),
)


@pytest.mark.parametrize("width", [1900, 7000])
def test_values_that_cannot_move_are_known_by_their_type(database: Database, width: int) -> None:
    cases = [*NEVER, *MOVES]
    columns = ", ".join(f"c{n} {type_}" for n, (type_, _) in enumerate(cases))
    values = ", ".join(value for _, value in cases)
    database.execute(
        "CREATE TYPE mood AS ENUM ('sad')",
        f"CREATE TABLE wide ({columns}, filler text) WITH (toast_tuple_target = 128)",
        "DO $$ DECLARE name text; BEGIN FOR name IN SELECT attname FROM pg_attribute WHERE attrelid = 'wide'::regclass"
        " AND attstorage <> 'p' LOOP EXECUTE format('ALTER TABLE wide ALTER %I SET STORAGE EXTERNAL', name);"
        " END LOOP; END $$",
        # The filler cannot move, so Postgres tries every other value.
        "ALTER TABLE wide ALTER filler SET STORAGE PLAIN",
        f"INSERT INTO wide SELECT {values}, repeat('x', {width})",
    )
    chunks = ", ".join(f"pg_column_toast_chunk_id(c{n}) IS NOT NULL" for n in range(len(cases)))
    [moved] = database.execute(f"SELECT {chunks} FROM wide")
    found = table_of(database, "wide").columns
    assert [case for case, is_out in zip(cases, moved, strict=True) if is_out] == list(MOVES)
    assert [case for case, column in zip(cases, found, strict=False) if column.toastable] == list(MOVES)


def test_value_out_of_line_stays_there_after_a_change_to_plain_storage(database: Database) -> None:
    database.execute(
        "CREATE TABLE docs (id int PRIMARY KEY, n int, body text)",
        "ALTER TABLE docs ALTER body SET STORAGE EXTERNAL",
        "INSERT INTO docs VALUES (1, 1, repeat('x', 9000))",
        "ALTER TABLE docs ALTER body SET STORAGE PLAIN",
        "UPDATE docs SET n = 2",
    )
    assert database.execute("SELECT pg_column_toast_chunk_id(body) IS NOT NULL FROM docs") == [(True,)]
    assert is_toastable(database, "body")


def test_column_of_a_table_without_toast_can_get_one_later(database: Database) -> None:
    database.execute("CREATE TABLE docs (id int PRIMARY KEY, body text STORAGE PLAIN)")
    assert database.execute("SELECT reltoastrelid FROM pg_class WHERE oid = 'docs'::regclass") == [(0,)]
    assert is_toastable(database, "body")


def table_of(database: Database, table: str) -> SourceTable:
    """A table as the catalog describes it."""
    name = TableName("public", table)
    with closing(database.connect()) as connection:
        return read_tables(connection, [name])[name]


def is_toastable(database: Database, column: str) -> bool:
    """Whether a value of this column of `docs` may be stored out of line."""
    return next(each.toastable for each in table_of(database, "docs").columns if each.name == column)
