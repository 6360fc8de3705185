"""The source's side: what preflight finds and mends, what triggers record, what the catalog says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from cdc_views.base.names import TableName
from cdc_views.base.rendering import FOR_SQL_OF_USERS, PINNED
from cdc_views.base.service_schema import SERVICE_TABLES
from cdc_views.capture.types import column_type
from cdc_views.config import LogSettings, Settings, SourceSettings
from cdc_views.errors import PreflightFailed, SourceUnreachable, UnknownTable
from cdc_views.findings import Finding
from cdc_views.source import catalog
from cdc_views.source.catalog import estimated_rows, read_identity, read_tables
from cdc_views.source.checks.dba_script import dba_script
from cdc_views.source.checks.fixes import fix_source
from cdc_views.source.checks.preflight import CALLED, NEEDED_FUNCTIONS, check_source
from cdc_views.source.checks.refusals import refusal
from cdc_views.source.connection import connect
from cdc_views.source.publication import publication_sql
from cdc_views.source.reading.printing import printed
from cdc_views.source.service.marker import Marker
from cdc_views.source.slot import Slot, drop_slot, finding, read_slot
from tests.char_cases import ALIKE, DIFFERENT, ROWS
from tests.fix_postgres import HOSTILE, Database, database_dsn, server_setting
from tests.waiting import wait_for

ORDERS = TableName("public", "orders")


def settings(dsn: str, *tables: str, toast: str = "full") -> Settings:
    """Settings of a source; its log is nowhere."""
    source = {"dsn": SecretStr(dsn), "tables": tables or ("public.orders",), "toast": toast}
    return Settings(
        source=SourceSettings.model_validate(source),
        log=LogSettings(bootstrap_servers="nowhere:1", connect_url="http://nowhere:1"),
    )


def errors(findings: Sequence[Finding]) -> list[str]:
    """Subject and problem of what stands in the way."""
    return [f"{finding.subject} {finding.problem}" for finding in findings if finding.severity == "error"]


@pytest.fixture
def prepared(database: Database) -> Database:
    """A database with an orders table and everything that a mirror of it needs."""
    database.execute("CREATE TABLE orders (id int PRIMARY KEY, note varchar(10))")
    fix_source(settings(database.dsn), check_source(settings(database.dsn)))
    database.execute("DELETE FROM cdc_views.ddl")  # what the fix itself has recorded
    return database


def recorded(database: Database) -> list[tuple[str, bool]]:
    """The commands in cdc_views.ddl, and whether each described the table."""
    return [
        (command, description is not None)
        for command, description in database.execute("SELECT command, description FROM cdc_views.ddl ORDER BY id")
    ]


def test_fix_leaves_nothing_to_complain_of(prepared: Database) -> None:
    assert errors(check_source(settings(prepared.dsn))) == []


def test_fix_twice_changes_nothing(prepared: Database) -> None:
    fix_source(settings(prepared.dsn), check_source(settings(prepared.dsn)))
    assert recorded(prepared) == []


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ("CREATE TABLE orders (id int)", "has no primary key"),
        ("CREATE TABLE orders (id int PRIMARY KEY DEFERRABLE)", "deferrable primary key"),
        ("CREATE TABLE orders (id int PRIMARY KEY, note text)", 'for columns that can be TOASTed: "note"'),
        ("CREATE UNLOGGED TABLE orders (id int PRIMARY KEY)", "is not logged"),
        ("CREATE VIEW orders AS SELECT 1 AS id", "is a view"),
        ("CREATE TABLE other (id int)", "does not exist"),
        ('CREATE TABLE orders (id int PRIMARY KEY); CREATE TABLE "Orders" (id int)', "differs only by case"),
        ("CREATE TABLE orders (id int PRIMARY KEY); CREATE TABLE more () INHERITS (orders)", "inheriting"),
    ],
)
def test_check_of_a_table_that_cannot_be_mirrored_says_why(database: Database, definition: str, problem: str) -> None:
    database.execute(*definition.split("; "))
    found = [finding for finding in check_source(settings(database.dsn)) if problem in finding.problem]
    assert found
    assert found[0].severity == "error"
    assert found[0].remedy


def test_check_with_lookup_of_toast_asks_for_no_full_identity(database: Database) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
    assert not [e for e in errors(check_source(settings(database.dsn, toast="lookup"))) if "identity" in e]


def test_check_with_lookup_asks_for_full_identity_where_events_have_no_mark(database: Database) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY, note text, scan smallint[])")
    (problem,) = [e for e in errors(check_source(settings(database.dsn, toast="lookup"))) if "identity" in e]
    assert problem.endswith(': "scan"')


def test_fix_keeps_out_values_that_debezium_writes_as_others(database: Database) -> None:
    database.execute('CREATE TABLE orders (id int PRIMARY KEY, "a day" date[], span interval)')
    fix_source(settings(database.dsn), check_source(settings(database.dsn)))
    assert errors(check_source(settings(database.dsn))) == []
    for value in ("'{0044-03-15 BC}', '1 day'", "'{}', 'infinity'"):
        with pytest.raises(psycopg.errors.CheckViolation):
            database.execute(f"INSERT INTO orders VALUES (1, {value})")
    database.execute("INSERT INTO orders VALUES (1, '{2024-01-01,NULL}', '1 day'), (2, NULL, NULL)")


def test_fix_that_finds_such_values_says_so(database: Database) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY, span interval)",
                     "INSERT INTO orders VALUES (1, 'infinity')")  # fmt: skip
    with pytest.raises(PreflightFailed, match="holds values that cannot be mirrored"):
        fix_source(settings(database.dsn), check_source(settings(database.dsn)))


def test_check_of_a_publication_without_generated_columns_is_mended(prepared: Database) -> None:
    prepared.execute("ALTER PUBLICATION cdc_views SET (publish_generated_columns = none)")
    assert any("stored generated columns" in error for error in errors(check_source(settings(prepared.dsn))))
    fix_source(settings(prepared.dsn), check_source(settings(prepared.dsn)))
    assert errors(check_source(settings(prepared.dsn))) == []


def test_virtual_columns_are_left_out_with_a_notice(database: Database) -> None:
    twice = "twice int GENERATED ALWAYS AS (id * 2) VIRTUAL"
    database.execute(
        f"CREATE TABLE orders (id int PRIMARY KEY, note text, {twice})",
        "ALTER TABLE orders REPLICA IDENTITY FULL",
        "INSERT INTO orders VALUES (1, 'x')",
    )
    fix_source(settings(database.dsn), check_source(settings(database.dsn)))
    database.execute("UPDATE orders SET note = 'y'")
    found = check_source(settings(database.dsn))
    assert errors(found) == []
    assert [e.problem for e in found if e.severity == "info" and 'are not mirrored: "twice"' in e.problem]


PEOPLE = (
    "CREATE TABLE orders (id int PRIMARY KEY, note text, ssn text, seen varbit, n int,"
    " b int GENERATED ALWAYS AS (n) STORED)"
)


def excluding(dsn: str, *columns: str, toast: str = "full") -> Settings:
    """Settings that exclude columns of `orders`."""
    found = settings(dsn, toast=toast)
    source = {**found.source.model_dump(), "exclude_columns": [f"orders.{column}" for column in columns]}
    return found.model_copy(update={"source": SourceSettings.model_validate(source)})


@pytest.fixture
def people(database: Database) -> Database:
    """A table of which two columns are excluded, with what a mirror of it needs."""
    database.execute(
        PEOPLE, "ALTER TABLE orders REPLICA IDENTITY FULL", "INSERT INTO orders VALUES (1, 'a', 'b', B'1')"
    )
    fix_source(excluding(database.dsn, "ssn", "seen"), check_source(excluding(database.dsn, "ssn", "seen")))
    return database


def test_excluded_columns_are_not_published(people: Database) -> None:
    assert errors(check_source(excluding(people.dsn, "ssn", "seen"))) == []
    assert people.execute("SELECT attnames FROM pg_publication_tables WHERE tablename = 'orders'") == [
        (["id", "note", "n", "b"],)
    ]
    people.execute("UPDATE orders SET ssn = 'c'", "DELETE FROM orders")  # Postgres lets both happen


def test_check_accepts_its_own_column_list_and_no_other(people: Database) -> None:
    for others in ((), ("ssn",), ("ssn", "seen", "n")):
        problem = 'publishes other columns of "public.orders" than the mirrored ones'
        found = errors(check_source(excluding(people.dsn, *others)))
        assert any(problem in error for error in found), others
    fix_source(settings(people.dsn), check_source(settings(people.dsn)))
    assert [error for error in errors(check_source(settings(people.dsn))) if "varbit" not in error] == []
    people.execute("UPDATE orders SET ssn = 'c'")


def description(database: Database, *parts: str) -> list[object]:
    """Parts of what the markers compare of `orders`."""
    [(found,)] = database.execute("SELECT cdc_views.describe('cdc_views', 'orders'::regclass)")
    return [found[part] for part in parts]


def test_publication_with_its_own_column_list_stops_nothing(people: Database) -> None:
    known = description(people, "membership")
    people.execute("CREATE PUBLICATION others FOR ALL TABLES", "ALTER PUBLICATION others SET (publish = 'insert')")
    assert description(people, "membership") == known
    tables = ", ".join(str(table) for table in SERVICE_TABLES)
    people.execute(f"ALTER PUBLICATION cdc_views SET TABLE orders (id, note, n), {tables}")
    assert description(people, "membership") != known


@pytest.mark.parametrize("ddl", ["DROP COLUMN ssn", "ALTER ssn TYPE varchar(5)", "RENAME ssn TO tin"])
def test_ddl_of_an_excluded_column_is_a_change_of_the_table(people: Database, ddl: str) -> None:
    options = excluding(people.dsn, "ssn", "seen").source.columns
    with closing(people.connect()) as connection:
        known, before = read_tables(connection, [ORDERS], options)[ORDERS], description(people, "columns")
    people.execute(f"ALTER TABLE orders {ddl}")
    with closing(people.connect()) as connection:
        now = read_tables(connection, [ORDERS], options)[ORDERS]
    assert description(people, "columns") != before
    assert now.mirror_fingerprint() != known.mirror_fingerprint()


def test_excluding_what_cannot_be_excluded_is_refused(database: Database) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY, note text, ssn text, trail path)",
                     "ALTER TABLE orders REPLICA IDENTITY FULL")  # fmt: skip
    # Blocking, so that --fix publishes nothing in a way that makes the application's updates fail.
    found = [each.problem for each in check_source(excluding(database.dsn, "ssn", "id", "gone")) if each.blocking]
    assert 'key column "id" cannot be excluded' in found
    assert 'has no column "gone", which source.exclude_columns names' in found
    assert any('TOASTed: "trail"; but Postgres then refuses updates while columns are not published: "ssn"' in problem
               for problem in found)  # fmt: skip


def test_postgres_answers_about_char_as_stated(database: Database) -> None:
    values = ", ".join(str(row) for row in ROWS)
    database.execute("CREATE TABLE c (code char(5), short char(2), word text)", f"INSERT INTO c VALUES {values}")
    for query, answer, *_ in (*ALIKE, *DIFFERENT):
        assert database.execute(query) == [(answer,)], query
    for query, _, answer in DIFFERENT:
        if "= 'ab '" not in query:  # a text's blanks count, a literal's are part of it
            assert database.execute(query.replace("code", "code::text")) == [(answer,)], query


def test_check_of_text_columns_that_are_not_there_says_so(prepared: Database) -> None:
    known = settings(prepared.dsn)
    names = ("orders.total", "others.total", "orders.note")
    given = {"text_columns": names, "decimal_columns": {"orders.fee": "decimal(5,2)"}}
    source = SourceSettings.model_validate({**known.source.model_dump(), **given})
    found = errors(check_source(known.model_copy(update={"source": source})))
    assert [e for e in found if 'has no column "fee", which source.decimal_columns names' in e]
    assert [e for e in found if 'has no column "total"' in e]
    assert [e for e in found if 'column "public.others.total", whose table' in e]
    assert [e for e in found if 'column "note" has type "varchar", and source.text_columns takes' in e]


def test_check_of_a_setting_that_cannot_be_pinned_says_so(prepared: Database) -> None:
    prepared.execute(f"ALTER DATABASE {prepared.name} SET transaction_timeout = '1min'")
    found = errors(check_source(settings(prepared.dsn)))
    assert any("setting transaction_timeout is 60000 ms, wanted 0" in error for error in found)


def test_check_of_a_database_without_encoding_says_so(prepared: Database) -> None:
    name = f"{prepared.name}_ascii"
    prepared.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING SQL_ASCII LOCALE 'C' LOCALE_PROVIDER libc")
    try:
        found = errors(check_source(settings(database_dsn(prepared.dsn, name))))
        assert any('database encoding is "SQL_ASCII"' in error for error in found)
    finally:
        prepared.execute(f"DROP DATABASE {name}")


def test_sessions_of_ours_have_the_settings_that_are_pinned(prepared: Database) -> None:
    role = f"r_{prepared.name}"
    prepared.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    try:
        for name, value in HOSTILE.items():
            prepared.execute(f"ALTER ROLE {role} IN DATABASE {prepared.name} SET {name} = {value}")
        with closing(connect(prepared.as_role(role, "x"))) as connection:
            found = {name: connection.execute(f"SHOW {name}").fetchone() for name in PINNED}
            wanted = {**PINNED, "DateStyle": "ISO, YMD"}
            assert found == {name: (value,) for name, value in wanted.items()}
    finally:
        prepared.execute(f"DROP ROLE {role}")


def test_options_of_the_dsn_are_kept_but_for_what_is_pinned(prepared: Database) -> None:
    given = psycopg.conninfo.make_conninfo(prepared.dsn, options="-c work_mem=5MB -c DateStyle=SQL")
    with closing(connect(given)) as connection:
        assert connection.execute("SHOW work_mem").fetchone() == ("5MB",)
        assert connection.execute("SHOW DateStyle").fetchone() == ("ISO, YMD",)


def test_check_calls_nothing_that_somebody_else_has_created_in_public(prepared: Database) -> None:
    body = "LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$called$$; END'"
    prepared.execute(
        "CREATE TABLE twin (id int PRIMARY KEY)",
        f"CREATE FUNCTION lower(name) RETURNS text {body}",
        f"CREATE FUNCTION has_database_privilege(text, text, text) RETURNS bool {body}",
    )
    assert errors(check_source(settings(prepared.dsn))) == []
    prepared.execute(dba_script(settings(prepared.dsn)))


def test_every_hostile_setting_is_pinned_or_has_a_reason() -> None:
    assert set(HOSTILE) | {"search_path"} == set(PINNED)


def test_check_of_identity_nothing_is_mended(prepared: Database) -> None:
    prepared.execute("ALTER TABLE orders REPLICA IDENTITY NOTHING")
    findings = check_source(settings(prepared.dsn))
    assert 'table "public.orders" replica identity is "nothing"' in errors(findings)[0]
    fix_source(settings(prepared.dsn), findings)
    assert errors(check_source(settings(prepared.dsn))) == []


def test_check_of_a_publication_without_a_table_is_mended(prepared: Database) -> None:
    prepared.execute("ALTER PUBLICATION cdc_views DROP TABLE orders")
    findings = check_source(settings(prepared.dsn))
    assert errors(findings) == ['publication lacks "public.orders"']
    fix_source(settings(prepared.dsn), findings)
    assert errors(check_source(settings(prepared.dsn))) == []


@pytest.fixture
def poor_role(prepared: Database) -> Iterator[str]:
    """The DSN of a role that may only connect."""
    role = f"{prepared.name}_poor"
    prepared.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'poor'")
    yield prepared.as_role(role, "poor")
    prepared.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_check_by_a_role_without_rights_names_what_it_may_not(poor_role: str) -> None:
    problems = errors(check_source(settings(poor_role)))
    assert any("may not replicate" in problem for problem in problems)
    assert any("the role may not read it" in problem for problem in problems)


def test_check_by_a_role_that_may_not_call_our_functions_names_them(poor_role: str, prepared: Database) -> None:
    prepared.execute("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA cdc_views FROM PUBLIC")
    found = "; ".join(errors(check_source(settings(poor_role))))
    for function in CALLED:
        assert f'the role may not call "cdc_views.{function}"' in found
    prepared.execute(dba_script(settings(prepared.dsn), f"{prepared.name}_poor"))
    with closing(connect(poor_role)) as connection:
        assert Marker(connection, settings(poor_role).source, "me").captured().of(ORDERS) is not None


@pytest.mark.parametrize("function", NEEDED_FUNCTIONS)
def test_check_by_a_role_that_may_not_call_a_function_names_it(
    poor_role: str, prepared: Database, function: str
) -> None:
    prepared.execute(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC")
    try:
        assert any(f"may not call {function}" in problem for problem in errors(check_source(settings(poor_role))))
        assert f"GRANT EXECUTE ON FUNCTION {function}" in dba_script(settings(poor_role))
    finally:
        prepared.execute(f"GRANT EXECUTE ON FUNCTION {function} TO PUBLIC")


def test_every_function_that_is_called_is_checked() -> None:
    package = Path(catalog.__file__).parents[1]
    text = "\n".join(file.read_text() for file in package.rglob("*.py"))
    harmless = {"backend_pid", "encoding_max_length", "has_role", "partition_ancestors", "partition_tree"}
    called = set(re.findall(r"pg_catalog\.pg_(\w+)\(", text)) - harmless
    assert called == {function.removeprefix("pg_catalog.pg_").partition("(")[0] for function in NEEDED_FUNCTIONS}
    files = [file for file in (package / "source").rglob("*.py") if file.name != "service_sql.py"]
    service = "\n".join(file.read_text() for file in files)
    assert set(re.findall(r"\bcdc_views\.(\w+)\(", service)) == set(CALLED)


def test_fix_by_a_role_without_rights_is_refused(poor_role: str, prepared: Database) -> None:
    prepared.execute("ALTER TABLE orders REPLICA IDENTITY NOTHING")
    with pytest.raises(PreflightFailed, match="may not fix the source") as error:
        fix_source(settings(poor_role), check_source(settings(poor_role)))
    assert error.value.hint
    assert error.value.exit_status == 2


@pytest.mark.parametrize(("part", "value"), [("password", "wrong-secret"), ("port", "1"), ("dbname", "nowhere")])
def test_connect_with_a_wrong_dsn_is_refused_without_its_password(database: Database, part: str, value: str) -> None:
    dsn = psycopg.conninfo.make_conninfo(database.dsn, **{part: value})
    password = psycopg.conninfo.conninfo_to_dict(dsn)["password"]
    with pytest.raises(SourceUnreachable) as error:
        connect(dsn)
    assert str(password) not in str(error.value)
    assert error.value.exit_status == 2


@pytest.mark.proves(
    wrong="Postgres stops or is killed during the checks before a start, or during any other query",
    seen="`SourceUnreachable`",
    do="start the engine again when the server is back",
)
def test_connection_that_is_lost_is_named_whatever_is_asked(database: Database) -> None:
    def ask() -> None:
        connection.execute("SELECT 1")

    def copy() -> None:
        with connection.cursor().copy("COPY (SELECT 1) TO STDOUT") as rows:
            rows.read()

    for use in (ask, copy):
        with connect(database.dsn) as connection:
            database.execute(f"SELECT pg_terminate_backend({connection.info.backend_pid}, 10000)")
            with pytest.raises(SourceUnreachable, match="lost the connection to the source: "):
                use()
    with connect(database.dsn) as connection, pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute("SET statement_timeout = 1; SELECT pg_sleep(10)")


def test_check_of_a_server_without_logical_wal_says_what_to_do(not_logical: str) -> None:
    found = [f for f in check_source(settings(not_logical)) if f.subject == "server setting wal_level"]
    assert [(f.severity, f.problem, f.fix) for f in found] == [("error", 'is "replica", wanted "logical"', None)]
    assert "ALTER SYSTEM SET wal_level" in found[0].remedy
    assert "restart" in found[0].remedy


def test_publication_made_anew_is_recorded_once_somebody_may_have_read_the_last(prepared: Database) -> None:
    again = publication_sql("cdc_views", [ORDERS], 180000, exists=False)
    prepared.execute("DROP PUBLICATION cdc_views", again)
    assert not any(not described for _, described in recorded(prepared))
    prepared.execute(
        "DELETE FROM cdc_views.ddl", f"SELECT pg_create_logical_replication_slot('{prepared.name}', 'pgoutput')"
    )
    prepared.execute("CREATE PUBLICATION other FOR TABLE orders", "DROP PUBLICATION cdc_views", again)
    assert recorded(prepared) == [("CREATE PUBLICATION", False)]
    with prepared.connect() as connection:
        drop_slot(connection, prepared.name)


def test_ddl_that_is_rolled_back_is_not_recorded(prepared: Database) -> None:
    with prepared.connect() as connection, connection.transaction(force_rollback=True):
        connection.execute("ALTER TABLE orders ADD COLUMN extra int")
    assert recorded(prepared) == []


def test_truncate_is_recorded_in_its_transaction(prepared: Database) -> None:
    prepared.execute("TRUNCATE orders")
    assert prepared.execute("SELECT schema_name, table_name FROM cdc_views.truncates") == [("public", "orders")]


def test_ddl_and_truncate_by_a_role_without_rights_are_recorded(prepared: Database) -> None:
    role = f"{prepared.name}_owner"
    prepared.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'owner'", f"ALTER TABLE orders OWNER TO {role}",
                     "DELETE FROM cdc_views.ddl", f"GRANT CREATE, USAGE ON SCHEMA public TO {role}")  # fmt: skip
    with closing(connect(prepared.as_role(role, "owner"), pinned=FOR_SQL_OF_USERS)) as connection:
        connection.execute("ALTER TABLE orders ADD COLUMN extra int")
        connection.execute("TRUNCATE orders")
    seen = prepared.execute("SELECT (SELECT count(*) FROM cdc_views.ddl), (SELECT count(*) FROM cdc_views.truncates)")
    prepared.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
    assert seen == [(1, 1)]


def test_catalog_resolves_domains_enums_and_arrays(database: Database) -> None:
    database.execute(
        "CREATE DOMAIN price AS numeric(10,2)", "CREATE DOMAIN net AS price", "CREATE TYPE mood AS ENUM ('a')",
        "CREATE TABLE orders (b int, a int, p net, m mood, ms mood[], t text[], PRIMARY KEY (a, b))",
    )  # fmt: skip
    with database.connect() as connection:
        table = read_tables(connection, [ORDERS])[ORDERS]
    types = [(c.type_name, c.element, c.toastable) for c in table.columns[2:]]
    assert types == [("numeric", None, False), ("enum", None, False), ("_mood", "enum", True), ("_text", "text", True)]
    assert table.columns[2].typmod == ((10 << 16) | 2) + 4
    assert table.key == ("a", "b")


BUILTIN_NAMES = ("money", "name", "uuid", "inet", "line", "interval", "bpchar", "numeric", "enum", "regrole")


def test_types_of_the_user_with_names_of_built_in_ones_are_like_any_other(database: Database) -> None:
    names = [*BUILTIN_NAMES, "pair"]
    columns = ", ".join(f'"c {name}" app."{name}"' for name in names)
    database.execute(
        "CREATE SCHEMA app",
        *(f'CREATE TYPE app."{name}" AS (a int, b text)' for name in names),
        "CREATE TYPE app.oid AS ENUM ('a')",
        "CREATE DOMAIN app.text AS numeric(10,2)",
        "CREATE TYPE app.outer AS (a app.regrole)",
        f"CREATE TABLE orders (id int PRIMARY KEY, {columns}, e app.oid, d app.text, o app.outer, many app.inet[])",
        "ALTER TABLE orders REPLICA IDENTITY FULL",
    )
    with closing(connect(database.dsn)) as connection:
        table = read_tables(connection, [ORDERS])[ORDERS]
    types = {column.name: column_type(ORDERS, column) for column in table.columns if column.name != "many"}
    pair = types["c pair"]
    for name in BUILTIN_NAMES:
        found = types[f"c {name}"]
        assert (found.arrow, found.decode, found.json, found.has_text) == (pair.arrow, pair.decode, pair.json, False)
        [column] = (column for column in table.columns if column.name == f"c {name}")
        assert printed(column).as_string(None) == f'"c {name}"'
    others = {column.name: (column.type_name, column.element) for column in table.columns}
    assert (others["c pair"], others["e"], others["d"]) == (("pair", None), ("enum", None), ("numeric", None))
    of_columns = [error for error in errors(check_source(settings(database.dsn))) if "column" in error]
    assert len(of_columns) == 1
    assert 'column "many" is an array of "inet (user-defined)"' in of_columns[0]


def test_types_that_debezium_takes_for_those_of_an_extension_are_refused(database: Database) -> None:
    database.execute(
        "CREATE SCHEMA app",
        "CREATE TYPE app.hstore AS (a int)",
        "CREATE EXTENSION citext SCHEMA app",
        "CREATE TABLE orders (id int PRIMARY KEY, h app.hstore, c app.citext)",
    )
    with closing(connect(database.dsn)) as connection:
        table = read_tables(connection, [ORDERS])[ORDERS]
    assert [column.type_name for column in table.columns] == ["int4", "hstore (user-defined)", "citext"]
    assert [refusal(column) is None for column in table.columns] == [True, False, True]


def test_catalog_of_short_columns_needs_no_toast(prepared: Database) -> None:
    with prepared.connect() as connection:
        assert not any(column.toastable for column in read_tables(connection, [ORDERS])[ORDERS].columns)


def test_catalog_of_an_unknown_table_is_an_error(database: Database) -> None:
    with database.connect() as connection, pytest.raises(UnknownTable, match='table "public'):
        read_tables(connection, [ORDERS])


def test_identity_is_that_of_the_server(database: Database) -> None:
    with database.connect() as connection:
        identity = read_identity(connection)
    assert identity.timeline == 1
    assert identity.system_identifier.isdigit()


def test_marker_numbers_only_grow_whoever_writes(prepared: Database) -> None:
    with prepared.connect() as connection:
        source = settings(prepared.dsn).source
        one, two = Marker(connection, source, "one"), Marker(connection, source, "two")
        other = Marker(connection, source.model_copy(update={"slot": "other"}), "one")
        assert one.last() == 0
        numbers = [one.touch(), two.touch(), one.touch()]
        assert (one.last(), other.last()) == (numbers[-1], 0)
        row = connection.execute("SELECT writer, timeline FROM cdc_views.heartbeat")
        assert row.fetchall() == [("one", 1)]
        assert other.touch() == 1  # another project's
    assert numbers == sorted(set(numbers))


def test_slot_that_was_idle_for_too_long_says_so(prepared: Database) -> None:
    slot = settings(prepared.dsn).source.slot
    prepared.execute(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")

    def read() -> Slot:
        prepared.execute("CHECKPOINT")
        with prepared.connect() as connection:
            found = read_slot(connection, slot)
        assert found is not None
        return found

    with server_setting(prepared, "idle_replication_slot_timeout", "1s"):
        wait_for(lambda: read().lost, 20)
        found = check_source(settings(prepared.dsn))
    assert any("idle_replication_slot_timeout is 1 s" in f"{each.subject} {each.problem}" for each in found)
    [problem] = (each.problem for each in found if each.subject.startswith("replication slot"))
    assert problem == "is lost: nobody has used it for as long as idle_replication_slot_timeout allows"
    assert problem in str(finding(slot, read()))


def test_slot_is_read_and_dropped(database: Database) -> None:
    with database.connect() as connection:
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (database.name,))
        slot = read_slot(connection, database.name)
        drop_slot(connection, database.name)
        assert read_slot(connection, database.name) is None
    assert slot is not None
    assert (slot.database, slot.plugin, slot.lost, slot.active_pid) == (database.name, "pgoutput", False, None)
    assert slot.confirmed_flush_lsn


def test_rows_are_estimated_where_all_tables_were_analyzed(database: Database) -> None:
    database.execute(
        "CREATE TABLE orders WITH (autovacuum_enabled = false) AS SELECT g AS id FROM generate_series(1, 500) g",
        "CREATE TABLE late (id int)",
    )
    with connect(database.dsn) as connection:
        assert estimated_rows(connection, [ORDERS]) is None
        database.execute("ANALYZE orders")
        assert estimated_rows(connection, [ORDERS]) == 500
        assert estimated_rows(connection, [ORDERS, TableName("public", "late")]) is None
