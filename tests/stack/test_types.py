"""Every type through a real connector, from the snapshot and from the stream, compared with what Postgres prints.

All tables share one connector. Values are written before its snapshot, and again afterwards by INSERT and by
UPDATE; then they are read as the engine reads them, through the log and the fold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import orjson
import pyarrow as pa
import pytest
from psycopg import sql

from cdc_views.base.names import TableName
from cdc_views.capture import texts
from cdc_views.capture.fold import Fold
from cdc_views.capture.printed import printed_array
from cdc_views.capture.types import arrow_schema, column_types
from cdc_views.errors import UnsupportedType
from cdc_views.log.kafka.record import Record
from cdc_views.source.catalog import SourceTable
from cdc_views.source.checks.preflight import check_source
from cdc_views.source.checks.snapshot_dates import require_dates_of_snapshot
from cdc_views.source.connection import Connection
from cdc_views.source.reading.exported import exported_snapshot
from cdc_views.stack.local import LocalStack
from cdc_views.store.delta_log.schema import TableSpec, delta_schema
from tests.fix_kafka import CaptureOf, captures
from tests.fix_postgres import Database, new_database
from tests.stack.type_cases import CASES, KEYS, LARGE, MARKED, REFUSALS, REFUSED_KEYS, SETUP, STOPS

STREAMED: Final = 1000  # added to the id of a row of the snapshot: the same values, inserted later
UPDATED: Final = 2000  # the same values, by an update of NULL
SESSION: Final = "SET DateStyle = ISO; SET IntervalStyle = postgres; SET TimeZone = UTC; SET extra_float_digits = 1"

CASE_NAMES = [
    f"{case.type} as {case.decimal or 'text'}" if case.as_text or case.decimal else case.type for case in CASES
]
ODD = TableName("My. Schema", ' Ta-ble x "q" ünï/,$.')
ODD_COLUMNS = ("select", "ünï", "a.b", 'q"q', "with-dash", "$x", "1st", "it's", "back`tick", "Mixed", "per%cent",
               "back\\slash", "[x]")  # fmt: skip


@dataclass
class Events:
    """What came of the tables: the records of the snapshot, then those of the stream."""

    tables: Mapping[str, SourceTable]
    snapshot: Mapping[str, Sequence[Record]]
    stream: Mapping[str, Sequence[Record]]
    connection: Connection
    dsn: str

    def rows(self, table: str) -> pa.Table:
        """The rows of a table after all its records."""
        fold = Fold(self.tables[table])
        for record in (*self.snapshot[table], *self.stream[table]):
            fold.add(record)
        return fold.finish({}).upserts

    def printed(self, query: sql.Composable | str) -> list[tuple[str | None, ...]]:
        """Rows of a query as the server prints them, whatever psycopg would make of their types."""
        text = query if isinstance(query, str) else query.as_string(self.connection)
        result = self.connection.pgconn.exec_(text.encode())
        assert not result.error_message, result.error_message
        return [
            tuple(None if (value := result.get_value(row, column)) is None else value.decode()
                  for column in range(result.nfields))
            for row in range(result.ntuples)
        ]  # fmt: skip


@pytest.fixture(scope="module")
def events(stack: LocalStack) -> Iterator[Events]:
    """All cases of type_cases.py, sent through one connector."""
    with (
        new_database(stack.postgres.dsn) as database,
        captures(stack, database) as capture,
        closing(database.connect()) as connection,
    ):
        yield _events(connection, capture, database.dsn)


def _events(connection: Connection, capture: CaptureOf, dsn: str) -> Events:
    connection.execute(sql.SQL(SESSION))
    for statement in SETUP:
        connection.execute(sql.SQL(statement))
    names = _write_before(connection)
    as_text = [f"c{n}.{column}" for n, case in enumerate(CASES) if case.as_text for column in ("v", "w")]
    decimals = {f"c{n}.{column}": case.decimal for n, case in enumerate(CASES) if case.decimal for column in ("v", "w")}
    decimals |= {f"s{n}.v": stop.decimal for n, stop in enumerate(STOPS) if stop.decimal}
    captured = capture(
        *names, ODD, toast="lookup", text_columns=as_text, decimal_columns=decimals, partitions=1,
        exclude_columns=["ex.secret", "ex.odd, name"],
        transaction_timeout_ms=40_000, snapshot_timeout_s=240,
    )  # fmt: skip
    captured.start()
    tables = {name.table: table for name, table in captured.tables().items()}
    log = captured.log()

    def records(cut: Any) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {name: [] for name in tables}
        for record in log.records(cut):
            found[captured.table_of(record.topic).table].append(record)
        return found

    first = log.cut(log.begin(), None)
    snapshot = records(first)
    _write_after(connection)
    second = log.cut(first.end, first.position, first.committed_at)
    return Events(tables, snapshot, records(second), connection, dsn)


def _write_before(connection: Connection) -> list[str]:
    """Make the tables, with the rows that the snapshot reads. Returns their names."""
    run = connection.execute
    with connection.transaction():
        for n, case in enumerate(CASES):
            run(sql.SQL(f"CREATE TABLE c{n} (id int PRIMARY KEY, v {case.type}, w {case.type} NOT NULL)"))
            for id_, value in enumerate(case.values):
                run(sql.SQL(f"INSERT INTO c{n} VALUES ({{}}, {{}}, {{}})").format(id_, value, value))
            run(sql.SQL(f"INSERT INTO c{n} VALUES (999, NULL, {{}})").format(case.values[0]))
        for n, stop in enumerate(STOPS):
            run(sql.SQL(f"CREATE TABLE s{n} (id int PRIMARY KEY, v {stop.type})"))
            run(sql.SQL(f"INSERT INTO s{n} VALUES (1, {{}})").format(stop.value))
        for n, (type_, value, *_) in enumerate(KEYS):
            run(sql.SQL(f"CREATE TABLE k{n} (v {type_}, n int, x int, PRIMARY KEY (v, n))"))
            run(sql.SQL(f"INSERT INTO k{n} SELECT {{}}, n, 0 FROM generate_series(1, 3) n").format(value))
        for n, (type_, value) in enumerate(LARGE):
            run(sql.SQL(f"CREATE TABLE l{n} (id int PRIMARY KEY, x int, v {type_})"))
            run(sql.SQL(f"ALTER TABLE l{n} ALTER v SET STORAGE EXTERNAL"))
            run(sql.SQL(f"INSERT INTO l{n} SELECT id, 0, ({value})::{type_} FROM generate_series(1, 2) id"))
        run("CREATE TABLE gen (id int PRIMARY KEY, number int GENERATED ALWAYS AS IDENTITY, a text,"
            " b text GENERATED ALWAYS AS (a || '!') STORED)")  # fmt: skip
        run("INSERT INTO gen (id, a) VALUES (1, 'x'), (2, NULL)")
        run(
            'CREATE TABLE ex (secret text, id int PRIMARY KEY, a text, "odd, name" varbit, twice int'
            " GENERATED ALWAYS AS (id * 2) VIRTUAL, b int GENERATED ALWAYS AS (id + 1) STORED,"
            " big text STORAGE EXTERNAL)"
        )
        run("INSERT INTO ex (secret, id, a, \"odd, name\", big) SELECT 'hunter2', id, 'x', B'1', repeat('y', 9000)"
            " FROM generate_series(1, 3) id")  # fmt: skip
        odd = sql.SQL(", ").join(sql.SQL("{} int").format(sql.Identifier(name)) for name in ODD_COLUMNS)
        run(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(ODD.schema)))
        run(sql.SQL('CREATE TABLE {} ({}, PRIMARY KEY ("select", "Mixed"))').format(_identifier(ODD), odd))
        run(sql.SQL("INSERT INTO {} VALUES ({})").format(_identifier(ODD), sql.SQL(", ").join(
            [sql.SQL(str(n)) for n in range(len(ODD_COLUMNS))])))  # fmt: skip
    counts = (("c", len(CASES)), ("s", len(STOPS)), ("k", len(KEYS)), ("l", len(LARGE)))
    return [f"{letter}{n}" for letter, count in counts for n in range(count)] + ["gen", "ex"]


def _write_after(connection: Connection) -> None:
    run = connection.execute
    run("ALTER TYPE mood ADD VALUE 'later'")
    with connection.transaction():
        for n, case in enumerate(CASES):
            run(sql.SQL(f"INSERT INTO c{n} SELECT id + {STREAMED}, v, w FROM c{n}"))
            empty = f"INSERT INTO c{n} SELECT id + {UPDATED - STREAMED}, NULL, {{}} FROM c{n} WHERE id >= {STREAMED}"
            run(sql.SQL(empty).format(case.values[0]))
            run(sql.SQL(f"UPDATE c{n} SET v = o.v, w = o.w FROM c{n} o WHERE c{n}.id = o.id + {UPDATED}"))
            if case.type == "mood":
                run(sql.SQL(f"INSERT INTO c{n} VALUES (5000, 'later', 'later')"))
        for n, (type_, _, *others) in enumerate(KEYS):
            run(sql.SQL(f"UPDATE k{n} SET x = 1 WHERE n = 1"))
            for other in others:
                run(sql.SQL(f"UPDATE k{n} SET v = {{}}::{type_}, x = x + 1 WHERE n = 2").format(other))
            run(sql.SQL(f"DELETE FROM k{n} WHERE n = 3"))
            run(sql.SQL(f"INSERT INTO k{n} VALUES ({{}}, 4, 4)").format(others[-1]))
        for n in range(len(LARGE)):
            run(sql.SQL(f"UPDATE l{n} SET x = 1 WHERE id = 1"))
            run(sql.SQL(f"UPDATE l{n} SET id = 3 WHERE id = 2"))
        run("UPDATE gen SET a = 'y' WHERE id = 2")
        run("INSERT INTO gen (id, a) VALUES (3, 'z')")
        run("INSERT INTO ex VALUES ('hunter2', 4, 'z', B'101')")
        run("UPDATE ex SET a = 'y', secret = 'hunter2!' WHERE id = 1")
        run("UPDATE ex SET id = 5 WHERE id = 2")
        run("DELETE FROM ex WHERE id = 3")
        run(sql.SQL('UPDATE {} SET "ünï" = 77').format(_identifier(ODD)))


@pytest.mark.parametrize("number", range(len(CASES)), ids=CASE_NAMES)
def test_values_of_each_type_equal_postgres(events: Events, number: int) -> None:
    case, name = CASES[number], f"c{number}"
    columns = ", ".join(f"({case.printed.replace('{}', column)})" for column in ("v", "w"))
    wanted = {int(id_ or 0): (v, w) for id_, v, w in events.printed(f"SELECT id, {columns} FROM {name}")}
    found = events.rows(name)
    assert _delta_type(events.tables[name], "v") == case.delta
    kind = found.schema.field("v").type
    assert {row["id"]: (_print(row["v"], kind), _print(row["w"], kind)) for row in found.to_pylist()} == wanted
    assert len(wanted) >= 3 * (len(case.values) + 1)


def test_rows_read_from_postgres_itself_equal_those_of_the_log(events: Events) -> None:
    unequal = []
    with exported_snapshot(events.dsn) as snapshot:
        for name in (*(f"c{n}" for n in range(len(CASES))), "gen"):
            table = events.tables[name]
            types = column_types(table)
            texts_of = zip(table.columns, zip(*snapshot.rows(table), strict=True), strict=True)
            arrays = [printed_array(column, types[column.name], texts) for column, texts in texts_of]
            found = pa.table(arrays, schema=arrow_schema(table)).sort_by("id")
            wanted = events.rows(name).sort_by("id")
            # As text: NaN is not equal to itself, and 0 is to -0.
            if repr(found.to_pylist()) != repr(wanted.to_pylist()):
                unequal.append((name, table.columns[-1].type_name))
    assert unequal == []


@pytest.mark.proves(
    wrong="A value has no exact form in Delta, such as NaN in a `numeric` column with a scale",
    seen="`UnsupportedType` with table and column",
    do=(
        "change the value in Postgres, or add the column to `source.text_columns` and run `cdc-views reset`; "
        "[types.md](types.md) lists the values"
    ),
)
@pytest.mark.parametrize("number", range(len(STOPS)), ids=[f"{stop.type} {stop.value}" for stop in STOPS])
def test_value_without_exact_form_stops_by_name(events: Events, number: int) -> None:
    stop = STOPS[number]
    with pytest.raises(UnsupportedType, match=f'table "public.s{number}": column "v" holds') as caught:
        events.rows(f"s{number}")
    assert stop.problem in caught.value.message
    assert ("source.text_columns" in str(caught.value.hint)) is stop.flows


@pytest.mark.parametrize("number", range(len(KEYS)), ids=[key[0] for key in KEYS])
def test_rows_by_keys_of_each_type_equal_postgres(events: Events, number: int) -> None:
    name, type_ = f"k{number}", KEYS[number][0]
    form = next((case.printed for case in CASES if case.type == type_), "{}").replace("{}", "v")
    wanted = {(v, int(n or 0), int(x or 0)) for v, n, x in events.printed(f"SELECT {form}, n, x FROM {name}")}
    found = events.rows(name)
    kind = found.schema.field("v").type
    assert {(_print(row["v"], kind), row["n"], row["x"]) for row in found.to_pylist()} == wanted
    assert len(wanted) == found.num_rows == 3


@pytest.mark.parametrize("number", range(len(LARGE)), ids=[type_ for type_, _ in LARGE])
def test_unchanged_value_of_each_type_is_found(events: Events, number: int) -> None:
    name = f"l{number}"
    table = events.tables[name]
    assert events.printed(f"SELECT pg_relation_size(reltoastrelid) > 0 FROM pg_class WHERE oid = '{name}'::regclass") \
        == [("t",)]  # fmt: skip
    first, fold = Fold(table), Fold(table)
    for record in events.snapshot[name]:
        first.add(record)
    for record in events.stream[name]:
        fold.add(record)
    stored = {(row["id"],): row for row in first.finish({}).upserts.to_pylist()}
    marked = LARGE[number][0] in MARKED
    assert table.replica_identity == ("default" if marked else "full")
    assert fold.lookups() == ({(1,), (2,)} if marked else set())
    rows = {row["id"]: (row["x"], row["v"]) for row in fold.finish(stored).upserts.to_pylist()}
    assert rows == {1: (1, stored[1,]["v"]), 3: (0, stored[2,]["v"])}
    assert stored[1,]["v"] is not None


def test_stored_generated_and_identity_columns_equal_postgres(events: Events) -> None:
    wanted = sorted(events.printed("SELECT id, number, a, b FROM gen"))
    rows = [(str(row["id"]), str(row["number"]), row["a"], row["b"]) for row in events.rows("gen").to_pylist()]
    assert sorted(rows) == wanted


def test_excluded_columns_are_not_in_the_log(events: Events) -> None:
    wanted = sorted(events.printed("SELECT id, a, b, length(big) FROM ex"))
    first, fold = Fold(events.tables["ex"]), Fold(events.tables["ex"])
    for record in events.snapshot["ex"]:
        first.add(record)
    for record in events.stream["ex"]:
        fold.add(record)
    rows = {row["id"]: row for row in first.finish({}).upserts.to_pylist()}
    found = fold.finish({(id_,): row for id_, row in rows.items()})
    rows |= {row["id"]: row for row in found.upserts.to_pylist()}
    kept = [row for id_, row in rows.items() if id_ not in found.deletes["id"].to_pylist()]
    assert sorted((str(r["id"]), r["a"], str(r["b"]), r["big"] and str(len(r["big"]))) for r in kept) == wanted
    records = [*events.snapshot["ex"], *events.stream["ex"]]
    assert len(records) == 3 + 1 + 1 + 3 + 2
    assert not [record for record in records if "hunter2" in repr((record.key, record.value, record.headers))]


def test_names_that_need_quoting_are_mirrored(events: Events) -> None:
    rows = events.rows(ODD.table).to_pylist()
    assert rows == [{name: 77 if name == "ünï" else n for n, name in enumerate(ODD_COLUMNS)}]


def test_label_added_to_an_enum_later_is_mirrored(events: Events) -> None:
    rows = events.rows(f"c{next(n for n, case in enumerate(CASES) if case.type == 'mood')}").to_pylist()
    assert [row["v"] for row in rows if row["id"] == 5000] == ["later"]


def test_refused_types_and_keys_are_findings(database: Database, capture: CaptureOf) -> None:
    columns = ", ".join(f"r{n} {type_}" for n, (type_, _) in enumerate(REFUSALS))
    tables = [f"CREATE TABLE k{n} (v {type_} PRIMARY KEY)" for n, (type_, _) in enumerate(REFUSED_KEYS)]
    database.execute(*SETUP, f"CREATE TABLE refused (id int PRIMARY KEY, {columns})", *tables)
    settings = capture("refused", *(f"k{n}" for n in range(len(REFUSED_KEYS)))).settings
    found = {(finding.subject, finding.problem) for finding in check_source(settings) if finding.severity == "error"}
    wanted = {('table "public.refused"', f'column "r{n}" {problem}') for n, (_, problem) in enumerate(REFUSALS)}
    wanted |= {(f'table "public.k{n}"', f'key column "v" {problem}') for n, (_, problem) in enumerate(REFUSED_KEYS)}
    assert wanted <= found


@pytest.mark.parametrize(("day", "moves"), [("0044-03-15 BC", True), ("1582-10-10", True), ("1582-10-04", False),
                                            ("-infinity", False), ("0001-01-01", False)])  # fmt: skip
def test_date_that_a_snapshot_moves_stops_before_the_first_epoch(
    database: Database, capture: CaptureOf, day: str, moves: bool
) -> None:
    database.execute("CREATE TABLE days (id int PRIMARY KEY, day date)", f"INSERT INTO days VALUES (1, '{day}')",
                     "INSERT INTO days VALUES (2, NULL)")  # fmt: skip
    tables = list(capture("days").tables().values())
    with closing(database.connect()) as connection:
        if not moves:
            require_dates_of_snapshot(connection, tables)
            return
        with pytest.raises(UnsupportedType, match=r'table "public\.days": column "day" holds a date before') as caught:
            require_dates_of_snapshot(connection, tables)
    assert day not in str(caught.value)


def _identifier(table: TableName) -> sql.Identifier:
    return sql.Identifier(table.schema, table.table)


def _delta_type(table: SourceTable, column: str) -> str:
    schema = orjson.loads(delta_schema(TableSpec(str(table.name), "", arrow_schema(table), table.key)))
    kind = next(field["type"] for field in schema["fields"] if field["name"] == column)
    return kind if isinstance(kind, str) else f"array<{kind['elementType']}>"


def _print(value: Any, kind: pa.DataType) -> str | None:
    """A value of a mirror as Postgres prints it, by its Arrow type alone."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return "{" + ",".join(_element(_print(item, kind.value_type)) for item in value) + "}"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, float):
        return texts.float4(value) if pa.types.is_float32(kind) else texts.float8(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        clock, _, fraction = f"{value:%H:%M:%S.%f}".partition(".")
        return f"{value.date()} {clock}.{fraction}".rstrip("0").rstrip(".") + "+00"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return str(value)


def _element(text: str | None) -> str:
    """An element of an array, quoted as array_out does."""
    if text is None:
        return "NULL"
    if text and text.upper() != "NULL" and not any(letter in '{}",\\' or letter.isspace() for letter in text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
