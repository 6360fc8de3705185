"""The demo's data, workload and check on a real Postgres, with its own decoding of the WAL as the judge."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from psycopg import sql
from psycopg.conninfo import make_conninfo

from cdc_views.base.names import TableName
from cdc_views.demo.check import POSTGRES_SQL, require_equal
from cdc_views.demo.data import SIZES, create
from cdc_views.demo.traffic.transactions import KINDS, LEAST
from cdc_views.demo.traffic.values import search
from cdc_views.engine.capture.self_contained import why_not_self_contained
from cdc_views.engine.views.saved import SavedSearches
from cdc_views.errors import CheckFailed
from cdc_views.log.kafka.topics import Topic
from cdc_views.search import IndexOptions, QueryColumns
from cdc_views.source.catalog import read_tables
from cdc_views.stack.services.postgres import Postgres
from cdc_views.store.reading import read_table
from cdc_views.testing.postgres.question import read_questions
from cdc_views.testing.postgres.shadow import connect_for_queries
from cdc_views.testing.saved_searches import saved_from_scratch
from tests.waiting import wait_for

LIMIT_S = 60
BANK_TOTAL = "SELECT (SELECT sum(balance) FROM accounts) + (SELECT sum(balance) FROM savings)"


@dataclass(frozen=True)
class Database:
    dsn: str
    slot: str

    def value(self, query: str) -> Any:
        with psycopg.connect(self.dsn) as connection:
            row = connection.execute(query).fetchone()
            assert row is not None
            return row[0]

    def decoded(self) -> list[str]:
        """What Postgres itself decodes from its WAL, since the last call."""
        with psycopg.connect(self.dsn) as connection:
            query = "SELECT data FROM pg_logical_slot_get_changes(%s, NULL, NULL, 'skip-empty-xacts', '1')"
            return [data for (data,) in connection.execute(query, (self.slot,))]


@pytest.fixture(scope="module")
def new_database(postgres: Postgres) -> Iterator[Callable[[], Database]]:
    made: list[Database] = []

    def make() -> Database:
        name = f"demo_test_{uuid4().hex[:8]}"
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        made.append(Database(make_conninfo(postgres.dsn, dbname=name), name))
        create(made[-1].dsn, seed=1)
        with psycopg.connect(made[-1].dsn) as connection:
            connection.execute("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", (name,))
        return made[-1]

    with psycopg.connect(postgres.dsn, autocommit=True) as admin:
        yield make
        for database in made:
            admin.execute("SELECT pg_drop_replication_slot(%s)", (database.slot,))
            admin.execute(sql.SQL("DROP DATABASE {} (FORCE)").format(sql.Identifier(database.slot)))


@pytest.fixture(scope="module")
def idle(new_database: Callable[[], Database]) -> Database:
    """A database that nobody writes to."""
    return new_database()


@dataclass(frozen=True)
class Run:
    database: Database
    summary: dict[str, Any]
    changes: list[tuple[str, str, str]]  # table, operation, the whole line
    commits: int
    total_before: Any


@pytest.fixture(scope="module")
def run(new_database: Callable[[], Database]) -> Run:
    """Ten seconds of the workload, and what Postgres decoded of it."""
    database = new_database()
    total_before = database.value(BANK_TOTAL)
    process = start_workload(database, seconds=10)
    output, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, errors
    lines = database.decoded()
    changes = [
        (found[1], found[2].lower(), line)
        for line in lines
        if (found := re.match(r"table public\.(\w+): (\w+):", line))
    ]
    commits = sum(line.startswith("COMMIT") for line in lines)
    return Run(database, json.loads(output.splitlines()[-1]), changes, commits, total_before)


def start_workload(database: Database, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cdc_views.demo.workload", "--dsn", database.dsn, "--rate", "300"]
    return subprocess.Popen(
        [*command, "--seconds", str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_workload_counts_exactly_the_changes_in_the_wal(run: Run) -> None:
    assert run.summary["row_changes"] == len(run.changes)


def test_workload_counts_the_changes_of_each_table(run: Run) -> None:
    assert run.summary["by_table"] == Counter(table for table, _, _ in run.changes)


def test_workload_counts_the_changes_of_each_operation(run: Run) -> None:
    assert run.summary["by_operation"] == Counter(operation for _, operation, _ in run.changes)


def test_workload_counts_exactly_the_commits_in_the_wal(run: Run) -> None:
    assert run.summary["transactions"] == run.commits


def test_workload_inserts_updates_and_deletes_in_every_table(run: Run) -> None:
    seen = {(table, operation) for table, operation, _ in run.changes}
    assert seen == {(table, operation) for table in SIZES for operation in ("insert", "update", "delete")}


def test_workload_has_every_wanted_kind(run: Run) -> None:
    kinds = run.summary["by_kind"]
    assert min(kinds[name] for name, kind in KINDS.items() if kind.wanted) >= LEAST


@pytest.mark.parametrize("table", ["posts", "products"])
def test_workload_leaves_out_of_line_texts_unchanged(run: Run, table: str) -> None:
    assert any(name == table and "unchanged-toast-datum" in line for name, _, line in run.changes)


def test_workload_changes_keys_of_rows_with_unchanged_texts(run: Run) -> None:
    key = r"id\[bigint\]:(\d+) "
    update = re.compile(rf"table public\.products: UPDATE: old-key: {key}.* new-tuple: {key}", re.DOTALL)
    moved = [line for _, _, line in run.changes if (found := update.match(line)) and found[1] != found[2]]
    assert any("unchanged-toast-datum" in line for line in moved)


def test_log_of_every_table_holds_all_that_a_rebuild_needs(idle: Database) -> None:
    topic = Topic("demo", "id", 1, {"cleanup.policy": "compact"})
    with psycopg.connect(idle.dsn) as connection:
        tables = read_tables(connection, [TableName("public", table) for table in SIZES])
    assert {str(table.name): why_not_self_contained(table, topic, {}) for table in tables.values()} == {
        f"public.{table}": [] for table in SIZES
    }


def test_workload_leaves_the_bank_s_total_as_it_was(run: Run) -> None:
    assert run.database.value(BANK_TOTAL) == run.total_before


def test_workload_that_is_interrupted_has_counted_what_it_committed(new_database: Callable[[], Database]) -> None:
    database = new_database()
    process = start_workload(database, seconds=600)
    wait_for(lambda: database.value("SELECT count(*) FROM posts") != SIZES["posts"], LIMIT_S)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    changes = [line for line in database.decoded() if line.startswith("table ")]
    assert json.loads(output.splitlines()[-1])["row_changes"] == len(changes) > 0


def test_workload_without_a_database_says_so(idle: Database) -> None:
    process = start_workload(Database(make_conninfo(idle.dsn, dbname="nowhere"), ""), seconds=10)
    output, errors = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, output) == (1, "")
    assert 'database "nowhere" does not exist' in errors


def postgres_rows(dsn: str, files: Path = POSTGRES_SQL) -> Iterator[tuple[str, list[str], list[tuple[Any, ...]]]]:
    """Name, columns and rows of what the files ask."""
    with connect_for_queries(dsn) as connection, connection.cursor(binary=True) as cursor:
        for name, question in read_questions(files).items():
            rows = cursor.execute(question.query.encode()).fetchall()
            yield name, [column.name for column in cursor.description or ()], rows


def only(name: str, folder: Path) -> Path:
    """A folder with the SQL of one table or view."""
    [file] = POSTGRES_SQL.rglob(f"{name}.sql")
    shutil.copy(file, folder)
    return folder


def test_create_with_the_same_seed_makes_the_same_rows(
    idle: Database, new_database: Callable[[], Database], tmp_path: Path
) -> None:
    files = only("public.products", tmp_path)
    [(_, _, ours)], [(_, _, theirs)] = (list(postgres_rows(each.dsn, files)) for each in (idle, new_database()))
    assert sorted(map(repr, ours)) == sorted(map(repr, theirs))


def test_create_makes_rows_and_long_texts(idle: Database) -> None:
    assert idle.value("SELECT count(*) FROM order_items") == SIZES["order_items"]
    for table, column in (("posts", "body"), ("products", "description")):
        in_line = f"octet_length({column}) > 8192 AND pg_column_toast_chunk_id({column}) IS NULL"
        assert idle.value(f"SELECT count(*) FROM {table} WHERE octet_length({column}) > 8192") > 50
        assert idle.value(f"SELECT count(*) FROM {table} WHERE {in_line}") == 0


ALERTS = SavedSearches(
    queries="public.searches",
    columns={"search_id": "id", "user_id": "user_id", "query": "query"},
    read=QueryColumns(key=("search_id",), query="query", conditions=None, returned=("search_id", "user_id")),
    documents="post_search",
    schema=pa.schema([("post_id", pa.int64()), ("body", pa.string()), ("author", pa.string())]),
    options=IndexOptions("post_id", {"body": 2.0, "author": 1.0}, "english"),
    postings="",
)


def test_sql_for_saved_searches_finds_what_an_index_from_scratch_finds(idle: Database) -> None:
    random, saved = Random(1), b"INSERT INTO searches (user_id, query) VALUES (1, %s)"
    with connect_for_queries(idle.dsn) as connection, connection.transaction(force_rollback=True):
        connection.cursor().executemany(saved, [(search(random),) for _ in range(100)])

        def answer(name: str) -> list[tuple[Any, ...]]:
            return connection.execute(read_questions(POSTGRES_SQL)[name].query.encode()).fetchall()

        def table(name: str, *columns: str) -> pa.Table:
            return pa.table(dict(zip(columns, map(list, zip(*answer(name), strict=True)), strict=True)))

        searches = table("public.searches", "id", "user_id", "query")
        posts = table("post_search", "post_id", "body", "author", "author_id", "likes", "created_at")
        found = answer("post_alerts")
    wanted = saved_from_scratch(ALERTS, searches, posts.select(ALERTS.schema.names).cast(ALERTS.schema))
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    assert len({row[0] for row in found if row[3] is None}) > 80
    assert len([row for row in found if row[3] is not None]) > 5


@dataclass(frozen=True)
class Version:
    path: str
    version: int
    status: str = "live"


@pytest.fixture(scope="module")
def warehouse(idle: Database, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a perfect engine would have published: a table for every answer."""
    root = tmp_path_factory.mktemp("warehouse")
    for name, columns, rows in postgres_rows(idle.dsn):
        arrays = [pa.array(column) for column in zip(*rows, strict=True)]
        write_deltalake(str(root / name), pa.table(arrays, names=columns))
    return root


def copy_of(name: str, warehouse: Path, folder: Path) -> DeltaTable:
    """A copy of a published table, to be changed."""
    return DeltaTable(str(shutil.copytree(warehouse / name, folder / name)))


def require_copy_equal(name: str, copy: DeltaTable, folder: Path, dsn: str) -> None:
    """The check of this table or view alone."""
    require_equal(dsn, folder, {name: Version(name, copy.version())}, only(name, folder))


@pytest.fixture
def tables(warehouse: Path) -> dict[str, Version]:
    return {folder.name: Version(folder.name, 0) for folder in warehouse.iterdir()}


def test_check_of_all_tables_and_views_finds_them_equal(
    idle: Database, warehouse: Path, tables: dict[str, Version]
) -> None:
    require_equal(idle.dsn, warehouse, tables)
    assert len(tables) == 15


@pytest.mark.parametrize(
    ("name", "rows", "key"),
    [
        ("public.follows", "follower_id = 1", r"\(1, \d+\)"),
        ("public.products", "id = 17", r"\(17\)"),
        ("order_totals", "user_id = 1", r"\(1\)"),
        ("home_timeline", "user_id = 1", r"\(1, \d+\)"),
        ("product_cache", "product_id = 17", r"\(17\)"),
        ("post_search", "post_id = 17", r"\(17\)"),
        ("post_alerts", "search_id = 1", r"\(1, \d+\)"),
        ("post_alerts", "search_id = 12", r"\(12, None\)"),
    ],
)
def test_check_with_rows_gone_names_table_and_key(
    idle: Database, warehouse: Path, tmp_path: Path, name: str, rows: str, key: str
) -> None:
    copy = copy_of(name, warehouse, tmp_path)
    copy.delete(rows)
    with pytest.raises(CheckFailed, match=rf'(?s)1 tables or views.*"{re.escape(name)}": \d+ missing: missing {key}'):
        require_copy_equal(name, copy, tmp_path, idle.dsn)


@pytest.mark.parametrize(
    ("name", "rows", "column", "value"),
    [
        ("public.users", "id = 17", "name", "'other'"),
        ("public.accounts", "id = 17", "balance", "balance + 0.01"),
        ("bank_total", "true", "total", "total + 0.01"),
        ("home_timeline", "user_id = 1", "author", "'other'"),
    ],
)
def test_check_with_a_changed_cell_names_table_and_column(
    idle: Database, warehouse: Path, tmp_path: Path, name: str, rows: str, column: str, value: str
) -> None:
    copy = copy_of(name, warehouse, tmp_path)
    copy.update(updates={column: value}, predicate=rows)
    with pytest.raises(CheckFailed, match=rf'"{re.escape(name)}": \d+ different: different \([^)]*\) \({column}\)'):
        require_copy_equal(name, copy, tmp_path, idle.dsn)


@pytest.mark.parametrize(("name", "column"), [("public.savings", "id"), ("product_cache", "product_id")])
def test_check_with_an_added_row_names_table_and_key(
    idle: Database, warehouse: Path, tmp_path: Path, name: str, column: str
) -> None:
    row = read_table(warehouse, name, 0).slice(0, 1)
    row = row.set_column(row.column_names.index(column), column, pa.array([999_999]))
    copy = copy_of(name, warehouse, tmp_path)
    write_deltalake(copy, row, mode="append")
    with pytest.raises(CheckFailed, match=rf'"{re.escape(name)}": 1 extra: extra \(999999\)'):
        require_copy_equal(name, copy, tmp_path, idle.dsn)
