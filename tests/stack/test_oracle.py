"""The WAL-order oracle on a real server, and the check of every epoch that stands on it.

The judge of the oracle is the source itself, asked at moments when nobody writes.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from psycopg import sql

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.errors import (
    CheckFailed,
    NothingPublished,
    PositionUnknown,
    ReplayFailed,
    SchemaChanged,
    UnknownTable,
    UnsupportedTable,
)
from cdc_views.store.control.control_log import ControlLog, TableVersion
from cdc_views.testing.epochs import EpochCheck
from cdc_views.testing.oracle import PREFIX, WalOracle, drop_leftovers
from cdc_views.testing.postgres.question import Question
from cdc_views.testing.postgres.shadow import connect, connect_for_queries
from cdc_views.testing.postgres.wal import WalSlot, WalTransaction
from tests.fix_postgres import Database
from tests.waiting import wait_for

LIMIT_S = 60
AWKWARD = (Path(__file__).parent / "oracle_history.sql").read_text()
TABLES = (TableName("My Schema", "T.x: %s"), "public.full_one", "public.by_index", "public.parts")
ROWS = """
SELECT 'T.x', t::text FROM "My Schema"."T.x: %s" t UNION ALL SELECT 'full_one', t::text FROM full_one t
UNION ALL SELECT 'by_index', t::text FROM by_index t UNION ALL SELECT 'parts', t::text FROM parts t ORDER BY 1, 2"""

Rows = list[tuple[Any, ...]]


def position(connection: psycopg.Connection[Any]) -> Lsn:
    """A position that everything committed so far is before."""
    row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
    assert row is not None
    return Lsn.parse(row[0])


@pytest.fixture
def source(database: Database) -> Iterator[psycopg.Connection[Any]]:
    """A connection that prints values as the oracle's does."""
    with closing(connect_for_queries(database.dsn)) as connection:
        yield connection


@pytest.fixture
def oracle_of(database: Database) -> Iterator[Callable[..., WalOracle]]:
    """Starts oracles, and drops them."""
    made: list[WalOracle] = []

    def start(*tables: str | TableName) -> WalOracle:
        made.append(WalOracle(database.dsn, tables).start())
        return made[-1]

    yield start
    for oracle in made:
        oracle.drop()


def leftovers(connection: psycopg.Connection[Any]) -> set[str]:
    """What oracles have on the server."""
    query = "SELECT slot_name::text FROM pg_replication_slots UNION ALL SELECT datname::text FROM pg_database"
    return {name for (name,) in connection.execute(query).fetchall() if name.startswith(PREFIX)}


def test_oracle_equals_the_source_after_each_statement_of_an_awkward_history(
    source: psycopg.Connection[Any], oracle_of: Callable[..., WalOracle]
) -> None:
    before, history = ([part.strip() for part in text.split("\n\n")] for text in AWKWARD.split("-- the oracle starts"))
    for statement in before:
        source.execute(statement.encode())
    oracle = oracle_of(*TABLES)
    expected = [("the copy", oracle.position, source.execute(ROWS).fetchall())]
    for statement in history:
        source.execute(statement.encode())
        expected.append((statement, position(source), source.execute(ROWS).fetchall()))
    for statement, place, rows in expected:
        oracle.advance_to(place)
        assert oracle.query(ROWS) == rows, statement
    assert len(rows) == 4


def test_oracle_applies_in_the_order_of_commits_and_not_of_starts(
    database: Database, source: psycopg.Connection[Any], oracle_of: Callable[..., WalOracle]
) -> None:
    source.execute("CREATE TABLE t (id int PRIMARY KEY, who text)")
    oracle = oracle_of("public.t")
    with database.connect() as first, database.connect() as second:
        first.autocommit = second.autocommit = False
        first.execute("INSERT INTO t VALUES (1, 'first')")
        second.execute("INSERT INTO t VALUES (2, 'second')")
        second.commit()
        between = position(source)
        first.commit()
    oracle.advance_to(between)
    assert oracle.query("SELECT id FROM t") == [(2,)]
    oracle.advance_to(position(source))
    assert oracle.query("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_oracle_holds_whole_transactions_at_every_position_while_many_write(
    database: Database, source: psycopg.Connection[Any], oracle_of: Callable[..., WalOracle]
) -> None:
    for table in ("accounts", "savings"):
        source.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, balance bigint)".encode())
        source.execute(f"INSERT INTO {table} SELECT g, 100 FROM generate_series(1, 20) g".encode())
    oracle = oracle_of("public.accounts", "public.savings")

    places = {oracle.position}

    def write(seed: int) -> None:
        """Until the source was seen at so many positions, of which the scheduler gives more or fewer in a time."""
        with database.connect() as connection:
            for step in range(10_000):
                if step >= 100 and len(places) > 40:
                    return
                row = (seed * 7 + step * 3) % 20 + 1
                with connection.transaction():
                    connection.execute("UPDATE accounts SET balance = balance - %s WHERE id = %s", (step, row))
                    connection.execute("UPDATE savings SET balance = balance + %s WHERE id = %s", (step, row))

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        places.add(position(source))
    for writer in writers:
        writer.join()
    total = "SELECT (SELECT sum(balance) FROM accounts) + (SELECT sum(balance) FROM savings)"
    for place in sorted(places)[:: len(places) // 20 or 1]:
        oracle.advance_to(place)
        assert oracle.query(total) == [(4000,)]
    oracle.advance_to(position(source))
    rows = "SELECT * FROM accounts UNION ALL SELECT * FROM savings ORDER BY 1, 2"
    assert oracle.query(rows) == source.execute(rows).fetchall()
    assert len(places) > 40


def test_shadow_may_be_on_another_server_that_has_no_logical_wal(
    database: Database, source: psycopg.Connection[Any], not_logical: str
) -> None:
    source.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    with WalOracle(database.dsn, ["t"], shadow=not_logical) as oracle, connect(not_logical) as server:
        source.execute("INSERT INTO t VALUES (2)")
        oracle.advance_to(position(source))
        assert oracle.query("SELECT id FROM t ORDER BY id") == [(1,), (2,)]
        assert server.execute("SELECT FROM pg_database WHERE datname = %s", (oracle.name,)).rowcount == 1
        oracle.drop()
        assert server.execute("SELECT FROM pg_database WHERE datname = %s", (oracle.name,)).rowcount == 0
    assert oracle.name not in leftovers(source)


@pytest.fixture
def counted(
    source: psycopg.Connection[Any], oracle_of: Callable[..., WalOracle]
) -> tuple[psycopg.Connection[Any], WalOracle]:
    """A table with 30 transactions of 3 rows, of which the oracle has seen none."""
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    oracle = oracle_of("public.t")
    for first in range(0, 90, 3):
        source.execute("INSERT INTO t SELECT generate_series(%s::int, %s::int)", (first, first + 2))
    return source, oracle


def count(oracle: WalOracle) -> int:
    return int(oracle.query("SELECT count(*) FROM t")[0][0])


@pytest.mark.parametrize("rows", [1, 7, 10, 1000])
def test_batches_hold_every_transaction_once(counted: tuple[psycopg.Connection[Any], WalOracle], rows: int) -> None:
    source, oracle = counted
    with connect(oracle._dsn) as connection:
        batches = list(WalSlot(connection, oracle.name).batches(position(source), rows))
    changes = [change for batch in batches for transaction in batch for change in transaction.changes]
    ids = [change.new and change.new["id"] for change in changes]
    assert ids == [str(number) for number in range(90)]
    assert len(batches) >= 90 / (rows + 5)


def test_oracle_that_lost_its_connection_in_a_batch_applies_nothing_twice(
    counted: tuple[psycopg.Connection[Any], WalOracle], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, oracle = counted
    batches = WalSlot.batches

    def first_batch(slot: WalSlot, upto: Lsn) -> Iterator[list[WalTransaction]]:
        yield next(batches(slot, upto, 20))
        source.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (oracle.name,))

    with monkeypatch.context() as patch:
        patch.setattr(WalSlot, "batches", first_batch)
        oracle.advance_to(position(source))
    oracle.advance_to(position(source))
    assert count(oracle) == 90


def test_oracle_that_misses_a_transaction_says_so(counted: tuple[psycopg.Connection[Any], WalOracle]) -> None:
    source, oracle = counted
    oracle.execute("INSERT INTO t VALUES (45)")
    with pytest.raises(ReplayFailed, match="UniqueViolation") as found:
        oracle.advance_to(position(source))
    assert "45" not in str(found.value)
    source.execute("DELETE FROM t WHERE id = 3")
    oracle.execute("DELETE FROM t WHERE id = 45")
    oracle.advance_to(position(source))
    source.execute("DELETE FROM t WHERE id = 7")
    oracle.execute("DELETE FROM t WHERE id = 7")
    with pytest.raises(ReplayFailed, match="meets 0 rows, wanted 1"):
        oracle.advance_to(position(source))


def test_position_that_the_oracle_cannot_know_is_refused(counted: tuple[psycopg.Connection[Any], WalOracle]) -> None:
    source, oracle = counted
    with pytest.raises(PositionUnknown, match="is behind the oracle"):
        oracle.advance_to(Lsn(oracle.position - 1))
    with pytest.raises(PositionUnknown, match="is not in the WAL yet"):
        oracle.advance_to(Lsn(position(source) + 1_000_000))


def test_change_of_schema_stops_the_oracle(counted: tuple[psycopg.Connection[Any], WalOracle]) -> None:
    source, oracle = counted
    source.execute("ALTER TABLE t ALTER id TYPE bigint")
    with pytest.raises(SchemaChanged, match=r'table "public\.t"'):
        oracle.advance_to(position(source))


def test_truncate_of_one_partition_stops_the_oracle(
    source: psycopg.Connection[Any], oracle_of: Callable[..., WalOracle]
) -> None:
    source.execute("CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    source.execute("CREATE TABLE p_low PARTITION OF p FOR VALUES FROM (0) TO (9)")
    oracle = oracle_of("public.p")
    source.execute("TRUNCATE p_low")
    with pytest.raises(ReplayFailed, match=r'"public\.p": partition "p_low" was truncated'):
        oracle.advance_to(position(source))


@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (id) DEFERRABLE"])
def test_table_without_a_key_in_the_wal_is_refused_and_nothing_stays(
    database: Database, source: psycopg.Connection[Any], key: str
) -> None:
    source.execute(f"CREATE TABLE t (id int{key})".encode())
    before = leftovers(source)
    with pytest.raises(UnsupportedTable, match=r'table "public\.t" has no key'):
        WalOracle(database.dsn, ["t"]).start()
    with pytest.raises(UnknownTable):
        WalOracle(database.dsn, ["public.T"]).start()
    assert leftovers(source) == before


def test_what_a_crashed_oracle_left_is_dropped_and_a_live_one_is_left_alone(
    database: Database, source: psycopg.Connection[Any], oracle_of: Callable[..., WalOracle]
) -> None:
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    live, crashed = oracle_of("public.t"), WalOracle(database.dsn, ["t"]).start()
    assert {live.name, crashed.name} <= leftovers(source)
    crashed.connection.close()
    wait_for(lambda: crashed.name in drop_leftovers(database.dsn), LIMIT_S)
    assert live.name in leftovers(source)
    assert crashed.name not in leftovers(source)
    live.drop()
    assert live.name not in leftovers(source)


_AT = datetime(2026, 1, 1, 12, 0, 0, 1, UTC)


@pytest.mark.parametrize(
    ("value", "kind", "published"),
    [
        ("7::smallint", pa.int32(), 7),
        ("1.5::numeric", pa.decimal128(10, 2), Decimal("1.50")),
        ("1e-40::numeric", pa.string(), "0." + "0" * 39 + "1"),
        ("0.1::real", pa.float32(), 0.1),
        ("0.1::float8", pa.float64(), 0.1),
        ("true", pa.bool_(), True),
        ("'a'::char(3)", pa.string(), "a"),
        ("''::text", pa.string(), ""),
        ("NULL::text", pa.string(), None),
        ("E'\\r\\n\"'::text", pa.string(), '\r\n"'),
        ("'\\x00ff'::bytea", pa.binary(), b"\x00\xff"),
        ("'2026-01-01'::date", pa.date32(), _AT.date()),
        ("'2026-01-01 12:00:00.000001'::timestamp", pa.timestamp("us", "UTC"), _AT),
        ("'2026-01-01 17:30:00.000001+05:30'::timestamptz", pa.timestamp("us", "UTC"), _AT),
        ("'{1,NULL}'::int[]", pa.list_(pa.int32()), [1, None]),
        ("""'{a,NULL,"b \\" é",""}'::text[]""", pa.list_(pa.string()), ["a", None, 'b " é', ""]),
        ("'{\"[1,2)\"}'::int4range[]", pa.list_(pa.string()), ["[1,2)"]),
        ("'{}'::text[]", pa.list_(pa.string()), []),
        ("""'{"a": 1.50}'::jsonb""", pa.string(), '{"a": 1.50}'),
    ],
)
def test_equal_values_are_equal_in_the_form_that_is_published(
    source: psycopg.Connection[Any], value: str, kind: pa.DataType, published: Any
) -> None:
    rows = pa.table({"id": [1, 2], "v": pa.array([published, None], kind)})
    query = f"SELECT 1 AS id, {value} AS v UNION ALL SELECT 2, NULL -- the end"
    assert Question.of(query).differences(source, "t", rows) == []


@pytest.mark.parametrize(
    ("value", "kind", "published", "difference"),
    [
        ("1::int", pa.string(), "1", "columns"),
        ("'1'::text", pa.int64(), 1, "columns"),
        ("1::int", pa.decimal128(5, 0), Decimal(1), "columns"),
        ("true", pa.int32(), 1, "columns"),
        ("'2026-01-01'::date", pa.string(), "2026-01-01", "columns"),
        ("''::text", pa.string(), None, "different"),
        ("NULL::text", pa.string(), "", "different"),
        ("'a'::text", pa.string(), "a ", "different"),
        ("1.505::numeric", pa.decimal128(10, 2), Decimal("1.50"), "different"),
        ("'{}'::text[]", pa.list_(pa.string()), None, "different"),
        ("'{NULL}'::text[]", pa.list_(pa.string()), ["null"], "different"),
        ("'2026-01-01 12:00:00.000002+00'::timestamptz", pa.timestamp("us", "UTC"), _AT, "different"),
    ],
)
def test_other_values_and_types_are_told(
    source: psycopg.Connection[Any], value: str, kind: pa.DataType, published: Any, difference: str
) -> None:
    rows = pa.table({"id": [1], "v": pa.array([published], kind)})
    [told] = Question.of(f"-- key: id\nSELECT 1 AS id, {value} AS v;").differences(source, "t", rows)
    assert (told.kind, told.columns) == (difference, ("v",))


# What a perfect engine publishes of a small bank, epoch by epoch.

TOTALS = """-- key: holder
SELECT a.holder, sum(a.balance + s.balance) AS total FROM accounts a JOIN savings s USING (id) GROUP BY 1"""
TYPES = {
    "public.accounts": pa.schema(
        {"id": pa.int32(), "holder": pa.string(), "balance": pa.decimal128(12, 2), "tags": pa.list_(pa.string()),
         "meta": pa.string(), "seen": pa.timestamp("us", "UTC")}
    ),
    "public.savings": pa.schema({"id": pa.int32(), "balance": pa.decimal128(12, 2)}),
    "totals": pa.schema({"holder": pa.string(), "total": pa.decimal128(38, 2)}),
}  # fmt: skip
ASKED = {
    "public.accounts": "SELECT id, holder, balance, tags, meta::text, seen::timestamptz FROM accounts",
    "public.savings": "SELECT id, balance FROM savings",
    "totals": TOTALS,
}


@dataclass
class Bank:
    """A source, its oracle, and a warehouse to which epochs are published without an engine."""

    source: psycopg.Connection[Any]
    oracle: WalOracle
    warehouse: Path
    log: ControlLog
    versions: dict[str, TableVersion] = field(default_factory=dict)

    def transfer(self, row: int, amount: int) -> None:
        """A transaction over both tables."""
        with self.source.transaction():
            self.source.execute("UPDATE accounts SET balance = balance - %s WHERE id = %s", (amount, row))
            self.source.execute("UPDATE savings SET balance = balance + %s WHERE id = %s", (amount, row))

    def publish(self, *tables: str) -> int:
        """Publish an epoch in which these tables are as the source is now."""
        for name in tables:
            rows = [dict(zip(TYPES[name].names, row, strict=True)) for row in self.source.execute(ASKED[name].encode())]
            self.write(name, pa.Table.from_pylist(rows, schema=TYPES[name]))
        return self.log.append(
            kind="publish", epoch=self.log.new_epoch(), attempt=self.log.new_attempt(),
            position=position(self.source), tables=self.versions,
        ).epoch  # fmt: skip

    def write(self, name: str, rows: pa.Table) -> None:
        """The next version of a table."""
        write_deltalake(str(self.warehouse / name), rows, mode="overwrite")
        self.versions[name] = TableVersion(name, DeltaTable(str(self.warehouse / name)).version(), "ok", "mirror")

    def check(self) -> EpochCheck:
        """A new check of all epochs."""
        return EpochCheck(self.oracle, self.warehouse, {"totals": TOTALS})


@pytest.fixture
def bank(source: psycopg.Connection[Any], oracle_of: Callable[..., WalOracle], tmp_path: Path) -> Bank:
    """Two accounts, a first epoch, a transfer."""
    source.execute("CREATE TABLE accounts (id int PRIMARY KEY, holder text, balance numeric(12,2), tags text[],"
                   " meta jsonb, seen timestamp)")  # fmt: skip
    source.execute("CREATE TABLE savings (id int PRIMARY KEY, balance numeric(12,2))")
    source.execute("""INSERT INTO accounts VALUES
                   (1, 'ada', 100, '{a,NULL,"b \\" c"}', '{"a": [1.50, "é"]}', '2026-01-01'),
                   (2, E'bob\\n', 50.5, NULL, NULL, NULL), (3, '', 0, '{}', '[]', '2026-01-01 12:00:00.000001')""")
    source.execute("INSERT INTO savings VALUES (1, 0), (2, 0), (3, NULL)")
    oracle = oracle_of("public.accounts", "public.savings")
    log = ControlLog.open(tmp_path, "test")
    log.take_over()
    bank = Bank(source, oracle, tmp_path, log)
    bank.publish(*TYPES)
    bank.transfer(1, 30)
    return bank


def found(check: EpochCheck) -> list[str]:
    """What the check tells, without positions."""
    return [re.sub(r" at [0-9A-F/]+", "", str(difference)) for difference in check.differences()]


def test_check_of_epochs_that_equal_the_source_finds_nothing(bank: Bank) -> None:
    bank.publish(*TYPES)
    bank.publish()
    check = bank.check()
    assert found(check) == []
    assert (check.epochs, check.tables) == (3, 3)
    bank.transfer(2, 20)
    bank.publish(*TYPES)
    check.require_equal()
    assert check.epochs == 4


def test_check_of_an_epoch_with_a_wrong_row_names_epoch_table_and_key(bank: Bank) -> None:
    bank.publish(*TYPES)
    accounts = DeltaTable(str(bank.warehouse / "public.accounts"))
    accounts.update(updates={"balance": "balance + 0.01"}, predicate="id = 2")
    bank.versions["public.accounts"] = TableVersion("public.accounts", 2, "ok", "mirror")
    wrong = bank.publish()
    check = bank.check()
    assert found(check) == [f'epoch {wrong}: "public.accounts": different (2) (balance)']
    right = bank.publish("public.accounts")
    assert right == wrong + 1
    assert found(check) == []


def test_check_of_an_epoch_without_a_transaction_names_its_tables(bank: Bank) -> None:
    epoch = bank.publish("totals")  # the transfer is in the view alone
    assert found(bank.check()) == [
        f'epoch {epoch}: "public.accounts": different (1) (balance)',
        f'epoch {epoch}: "public.savings": different (1) (balance)',
    ]


def test_check_of_a_torn_transaction_names_the_table_that_is_behind(bank: Bank) -> None:
    epoch = bank.publish("public.accounts", "totals")
    told = rf'^epoch {epoch} at [0-9A-F/]+: 1 tables .*\n  "public.savings": 1 different'
    with pytest.raises(CheckFailed, match=told):
        bank.check().require_equal()


def test_check_of_a_position_moved_beyond_what_the_tables_hold_names_view_and_mirrors(bank: Bank) -> None:
    epoch = bank.publish()
    assert [line.partition(": ")[2].partition(":")[0] for line in found(bank.check())] == [
        '"public.accounts"', '"public.savings"'
    ]  # fmt: skip
    assert epoch == 2


def test_check_of_a_view_behind_its_mirrors_names_the_view(bank: Bank) -> None:
    bank.source.execute("UPDATE accounts SET holder = 'eve' WHERE id = 1")
    epoch = bank.publish("public.accounts", "public.savings")
    assert found(bank.check()) == [f'epoch {epoch}: "totals": missing (eve)', f'epoch {epoch}: "totals": extra (ada)']


def test_check_of_an_epoch_from_before_the_oracle_says_so(bank: Bank, oracle_of: Callable[..., WalOracle]) -> None:
    late = oracle_of("public.accounts", "public.savings")
    with pytest.raises(PositionUnknown):
        EpochCheck(late, bank.warehouse, {"totals": TOTALS}).differences()


def test_check_without_an_epoch_says_so(bank: Bank, tmp_path: Path) -> None:
    with pytest.raises(NothingPublished):
        EpochCheck(bank.oracle, tmp_path / "empty", {"totals": TOTALS}).require_equal()


def test_check_with_a_key_that_the_query_does_not_give_says_so(bank: Bank) -> None:
    with pytest.raises(CheckFailed, match='the query for "totals" has no column "owner"'):
        EpochCheck(bank.oracle, bank.warehouse, {"totals": TOTALS.replace("key: holder", "key: owner")}).differences()


def test_example_of_the_page_checks_every_epoch(
    bank: Bank, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "oracle.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)

    def run_engine() -> None:
        for table in ("accounts", "savings"):
            bank.source.execute(sql.SQL("UPDATE {} SET balance = 1").format(sql.Identifier(table)))
        bank.log = ControlLog.open(bank.warehouse / "new", "test")
        bank.log.take_over()
        bank.warehouse = bank.warehouse / "new"
        bank.publish(*TYPES)

    exec(example, {"dsn": database.dsn, "warehouse": bank.warehouse / "new", "run_engine": run_engine})
    assert capsys.readouterr().out == "1 epochs × 3 tables and views equal Postgres\n"
