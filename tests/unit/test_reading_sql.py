"""SQL over an epoch: only SELECT, only published tables, and within its limits."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import cdc_views
from cdc_views.errors import BadQuery, QueryTooLong, ResultTooLarge, TableUnavailable
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.sql import QueryLimits, query
from cdc_views.serve.sql.statement import Statement
from cdc_views.store.warehouse import TableSpec
from tests.unit.published import BAG, ORDERS, TOTALS, Published

SECRET = "hunter2"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Published:
    shop = Published(tmp_path_factory.mktemp("shop"))
    shop.write(ORDERS, [(1, "a"), (2, None)])
    shop.write(TOTALS, [("ada", 1, Decimal("1.50"))])
    shop.write(BAG, [(1.0, 7, 1)])
    shop.write(TableSpec("sales.Order Items", "mirrors/items/a", ORDERS.schema, ("id",)), [(5, "x")])
    shop.publish()
    return shop


@pytest.fixture
def epoch(shop: Published) -> PublishedEpoch:
    return PublishedEpoch.latest(shop.root)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) FROM orders", [(2,)]),
        ("FROM public.orders SELECT id WHERE note IS NULL", [(2,)]),
        ('SELECT id FROM sales."Order Items"', [(5,)]),
        ("WITH o AS (SELECT * FROM orders) SELECT max(id) FROM o", [(2,)]),
        ("WITH orders AS (SELECT 9 AS id) SELECT id FROM orders", [(9,)]),
        ("WITH orders AS (SELECT * FROM orders WHERE id = 1) SELECT id FROM orders", [(1,)]),
        ("SELECT id FROM orders WHERE id IN (WITH orders AS (SELECT 2 AS i) SELECT i FROM orders)", [(2,)]),
        ("WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 2) SELECT max(x) FROM r", [(2,)]),
        ("WITH RECURSIVE orders AS (SELECT id FROM orders UNION ALL SELECT id + 7 FROM orders WHERE id = 1) "
         "SELECT max(id) FROM orders", [(8,)]),
        ("SELECT id FROM orders WHERE id IN (SELECT day FROM totals)", [(1,)]),
        ("SELECT (SELECT max(id) FROM orders) FROM range(1)", [(2,)]),
        ("SELECT unnest([1, 2])", [(1,), (2,)]),
        ("PIVOT orders ON note IN ('a') USING count(*) GROUP BY id ORDER BY id", [(1, 1), (2, 0)]),
        ("SELECT column_name FROM (DESCRIBE orders)", [("id",), ("note",)]),
        ("VALUES (1)", [(1,)]),
        ("SELECT * FROM bag", [(1.0,)]),
    ],
)  # fmt: skip
def test_select_over_published_tables_is_answered(epoch: PublishedEpoch, sql: str, rows: list[tuple[object]]) -> None:
    assert [tuple(row.values()) for row in query(epoch, sql).to_pylist()] == rows


WAYS_OUT = [
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM READ_BLOB('{file}')",
    "SELECT * FROM read_json_auto('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM '{file}'",
    'SELECT * FROM "{file}"',
    "SELECT (SELECT max(content) FROM read_text('{file}'))",
    "WITH x AS (SELECT * FROM read_text('{file}')) SELECT * FROM x",
    "SELECT * FROM orders, LATERAL (SELECT * FROM read_text('{file}'))",
    "SELECT * FROM query('SELECT * FROM read_text(''{file}'')')",
    "SELECT * FROM query_table('{file}')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''{file}'')'))",
    "DESCRIBE SELECT * FROM read_text('{file}')",
    "SUMMARIZE '{file}'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM delta_scan('{folder}')",
    "SELECT * FROM main.read_text('{file}')",
    "SELECT getenv('SECRET')",
    "SELECT json_serialize_plan('SELECT current_setting(''secret_directory'')', optimize := true)",
    "SELECT pg_get_viewdef(range) FROM range(100000)",
    "SELECT pg_catalog.pg_get_constraintdef(range) FROM range(100000)",
    "SELECT format_type(23, 0)",
    "SELECT get_block_size('memory')",
    "SELECT current_setting('home_directory')",
    "SELECT system.main.current_setting('home_directory')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_views",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT * FROM sqlite_master",
    "SELECT x.* FROM bag t, _cv_0 x, (WITH _cv_0 AS (SELECT 1 AS a) SELECT 1 AS b) y",
    "SELECT x.* FROM orders t, sqlite_master x, (WITH sqlite_master AS (SELECT 1 AS a) SELECT 1 AS b) y",
    "WITH RECURSIVE pg_settings AS (SELECT * FROM pg_settings UNION ALL SELECT * FROM pg_settings WHERE false) "
    "SELECT * FROM pg_settings",
    "WITH RECURSIVE _cv_0 AS (SELECT * FROM _cv_0 UNION ALL SELECT * FROM _cv_0 WHERE false) "
    "SELECT x.* FROM _cv_0 x, orders",
    "WITH RECURSIVE r AS (SELECT * FROM r UNION ALL SELECT * FROM r WHERE false) SELECT * FROM r",
    "WITH pg_class AS (SELECT 1 AS a) SELECT * FROM pg_class",
    "SHOW TABLES",
    "SHOW ALL TABLES",
    "SELECT * FROM _cv_0, orders",
    "SELECT * FROM memory.main._cv_0, orders",
    "SELECT * FROM opened",
    "SELECT write_log('x')",
    "COPY orders TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "EXPORT DATABASE '{folder}/out'",
    "IMPORT DATABASE '{folder}/out'",
    "ATTACH '{folder}/out.db'",
    "ATTACH ':memory:' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{file}'",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "CREATE TABLE t AS SELECT 1",
    "CREATE SECRET s (TYPE s3)",
    "DROP VIEW orders",
    "INSERT INTO orders VALUES (9, 'x')",
    "DELETE FROM orders",
    "PREPARE p AS SELECT 1",
    "EXPLAIN ANALYZE SELECT * FROM orders",
    "BEGIN",
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY orders TO '{folder}/out.csv'",
    "",
]


def test_every_macro_of_duckdb_that_reads_its_catalogs_is_refused() -> None:
    macros = duckdb.sql(
        "SELECT DISTINCT function_name, function_type FROM duckdb_functions() "
        "WHERE function_type LIKE '%macro' AND regexp_matches(macro_definition, '(?is)from.*(duckdb|pg|pragma)_')"
    ).fetchall()
    assert macros
    for name, kind in macros:
        sql = f"SELECT {name}(1)" if kind == "macro" else f"SELECT * FROM {name}(1)"
        with duckdb.connect() as database, pytest.raises(BadQuery):
            Statement.parse(database, sql)


@pytest.mark.parametrize("sql", WAYS_OUT)
def test_query_cannot_leave_the_published_tables(
    epoch: PublishedEpoch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    (tmp_path / "file.csv").write_text(f"a\n{SECRET}\n")
    with pytest.raises(BadQuery) as raised:
        query(epoch, sql.format(file=tmp_path / "file.csv", folder=tmp_path))
    assert SECRET not in str(raised.value)
    assert [file.name for file in tmp_path.iterdir()] == ["file.csv"]


@pytest.mark.parametrize(
    "sql",
    [
        *(sql for sql in WAYS_OUT if "read_" in sql.lower() or "glob" in sql or "delta_scan" in sql),
        "COPY orders TO '{folder}/out.csv'",
        "ATTACH '{folder}/out.db'",
        "INSTALL httpfs",
        "LOAD '{file}'",
        "SELECT getenv('SECRET')",
        "SET enable_external_access = true",
        "SELECT * FROM opened",
    ],
)
def test_database_itself_is_locked_down(
    epoch: PublishedEpoch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    """What the check of the text might let through, DuckDB refuses."""
    monkeypatch.setenv("SECRET", SECRET)
    monkeypatch.setattr(Statement, "parse", lambda database, sql: Statement((("orders",),)))
    (tmp_path / "file.csv").write_text(f"a\n{SECRET}\n")
    with pytest.raises(BadQuery) as raised:
        query(epoch, sql.format(file=tmp_path / "file.csv", folder=tmp_path))
    assert SECRET not in str(raised.value)
    assert [file.name for file in tmp_path.iterdir()] == ["file.csv"]


def test_client_and_command_have_the_same_lock(shop: Published) -> None:
    with pytest.raises(BadQuery, match='table function "read_text" is not allowed'):
        cdc_views.open(shop.root).query("SELECT * FROM read_text('/etc/hostname')")


@pytest.mark.proves(
    wrong="A query over HTTP runs for longer than `http.query_s`.",
    seen="`QueryTooLong`",
    do="Read fewer rows, or keep the result as a view; the limit is a setting.",
)
@pytest.mark.parametrize("sql", ["SELECT sum(a.range) FROM range(1000000000) a, range(1000) b",
                                 "SELECT range FROM range(100000000000) WHERE range % 1000000007 = 77"])  # fmt: skip
def test_query_that_takes_too_long_is_interrupted(epoch: PublishedEpoch, sql: str) -> None:
    with pytest.raises(QueryTooLong, match=r"has taken 0\.05 s"):
        query(epoch, sql, QueryLimits(seconds=0.05))


@pytest.mark.proves(
    wrong="A query over HTTP has a result, or needs memory, beyond its limits.",
    seen="`ResultTooLarge`",
    do="Select less; `http.result_rows`, `http.result_mb` and `http.query_memory_mb` are the limits.",
)
@pytest.mark.parametrize(
    ("limits", "rows", "message"),
    [
        (QueryLimits(rows=1), 2, "more than 1 rows"),
        (QueryLimits(most_bytes=1 << 20), 300_000, "more than 1 MiB"),
        (QueryLimits(memory_mb=20), 3_000_000, "more memory than 20 MiB"),
    ],
)
def test_query_whose_result_is_too_large_is_refused(
    epoch: PublishedEpoch, limits: QueryLimits, rows: int, message: str
) -> None:
    sql = f"SELECT range AS n FROM range({rows}) ORDER BY hash(range)"
    with pytest.raises(ResultTooLarge, match=message):
        query(epoch, sql, limits)


@pytest.mark.parametrize(
    "select",
    [f'NULL AS "{"x" * 2000}"', f"'{'x' * 2000}'::ENUM('{'x' * 2000}') AS x"],
    ids=["name of a column", "text of a dictionary"],
)
def test_size_of_an_answer_is_that_of_what_is_sent(epoch: PublishedEpoch, select: str) -> None:
    with pytest.raises(ResultTooLarge, match="more than 1 MiB"):
        query(epoch, f"SELECT {select} FROM range(1000)", QueryLimits(most_bytes=1 << 20))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("md5_number('b')", "UHUGEINT"),
        ("'0101'::BIT", "BIT"),
        ("TIMETZ '12:00:00+02'", "TIME WITH TIME ZONE"),
        ("TIME_NS '12:34:56.123456789'", "TIME_NS"),
        ("3::BIGNUM", "BIGNUM"),
        ("[{'a': MAP {1: 2::UHUGEINT}}]", "UHUGEINT"),
    ],
)
def test_value_that_arrow_would_change_is_refused(epoch: PublishedEpoch, value: str, kind: str) -> None:
    with pytest.raises(BadQuery, match=f'column "v" has type {kind}, whose values'):
        query(epoch, f"SELECT {value} AS v")
    assert query(epoch, f"SELECT ({value})::VARCHAR AS v").num_rows == 1


def test_tables_of_a_schema_main_are_told_from_those_without_a_schema(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(ORDERS, [(1, "of public")])
    shop.write(replace(ORDERS, name="main.orders", path="mirrors/main/orders/a"), [(1, "of main")])
    shop.publish()
    epoch = PublishedEpoch.latest(tmp_path)
    assert query(epoch, "SELECT note FROM main.orders").to_pylist() == [{"note": "of main"}]
    assert query(epoch, "SELECT note FROM orders").to_pylist() == [{"note": "of public"}]
    for sql in ("main.orders, public.orders", "public.orders, main.orders", "main.orders, orders"):
        with pytest.raises(BadQuery, match="cannot read both"):
            query(epoch, f"SELECT * FROM {sql}")


@pytest.mark.parametrize("schema", ["memory", "system", "Temp"])
def test_mirror_whose_schema_is_a_database_of_duckdb_is_refused(tmp_path: Path, schema: str) -> None:
    shop = Published(tmp_path)
    shop.write(replace(ORDERS, name=f"{schema}.orders", path="mirrors/it/a"), [(1, "a")])
    shop.publish()
    with pytest.raises(BadQuery, match=f'"{schema}.orders" cannot be read by SQL: "{schema}" is a database of DuckDB'):
        query(PublishedEpoch.latest(tmp_path), f'SELECT * FROM "{schema}".orders')


def test_table_whose_deleted_rows_are_no_longer_known_is_unavailable(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(ORDERS, [(number, "a") for number in range(100)])
    shop.publish()
    shop.write(ORDERS, gone=[(1,)])
    shop.publish()
    [vector] = (tmp_path / ORDERS.path).glob("**/*.bin")
    vector.unlink()
    with pytest.raises(TableUnavailable, match="cannot be read"):
        query(PublishedEpoch.latest(tmp_path), "SELECT count(*) FROM orders")


def test_query_within_its_limits_is_answered(epoch: PublishedEpoch) -> None:
    limits = QueryLimits(seconds=60, memory_mb=512, rows=2, most_bytes=1 << 20)
    assert query(epoch, "SELECT id FROM orders ORDER BY id", limits).to_pylist() == [{"id": 1}, {"id": 2}]
