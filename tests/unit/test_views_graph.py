"""Who reads whom, and names that mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_views.base.names import TableName
from cdc_views.errors import BadView, UnsupportedView, ViewCycle
from cdc_views.views.definition import parse_view
from cdc_views.views.graph import ViewGraph

TABLES = [TableName("public", "orders"), TableName("public", "users"), TableName("sales", "refunds")]


def graph(**views: str) -> ViewGraph:
    texts = {name: f"CREATE MATERIALIZED VIEW {name} AS\n{sql}" for name, sql in views.items()}
    return ViewGraph([parse_view(text, Path(f"{name}.sql")) for name, text in texts.items()], TABLES)


@pytest.mark.parametrize(
    ("sql", "inputs"),
    [
        ("SELECT * FROM orders", ("public.orders",)),
        ("SELECT * FROM public.orders o JOIN users", ("public.orders", "public.users")),
        ("SELECT * FROM ORDERS", ("public.orders",)),
        ("SELECT * FROM sales.refunds, orders", ("sales.refunds", "public.orders")),
        ("SELECT 1 WHERE EXISTS (SELECT 1 FROM users)", ("public.users",)),
        ("SELECT (SELECT count(*) FROM users) AS n, id FROM orders", ("public.users", "public.orders")),
        ("SELECT 1 FROM orders UNION ALL SELECT 1 FROM users", ("public.orders", "public.users")),
        ("WITH users AS (SELECT * FROM orders) SELECT * FROM users", ("public.orders",)),
        ("WITH orders AS (SELECT * FROM orders) SELECT * FROM orders", ("public.orders",)),
        ("WITH c AS (SELECT 1), d AS (SELECT * FROM c) SELECT * FROM D", ()),
        ("SELECT * FROM (WITH users AS (SELECT 1) SELECT * FROM users) x JOIN users", ("public.users",)),
        ("WITH c AS (SELECT 1) SELECT * FROM orders WHERE id IN (SELECT * FROM c)", ("public.orders",)),
        ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r", ()),
        ("SELECT * FROM orders LATERAL VIEW explode(tags) t AS tag", ("public.orders",)),
        ("SELECT * FROM orders o, LATERAL (SELECT * FROM users WHERE id = o.id)", ("public.orders", "public.users")),
        ("SELECT * FROM range(10)", ()),
        ("SELECT * FROM VALUES (1), (2) AS v(a)", ()),
        ("SELECT /*+ BROADCAST(o) */ * FROM orders o", ("public.orders",)),
        ("SELECT users.id FROM orders AS users", ("public.orders",)),
    ],
)
def test_inputs_of_a_select_are_the_tables_it_reads(sql: str, inputs: tuple[str, ...]) -> None:
    assert graph(v=sql).inputs("v") == inputs


def test_levels_put_readers_after_what_they_read() -> None:
    found = graph(a="SELECT * FROM c, orders", b="SELECT 1 FROM a", c="SELECT * FROM users", d="SELECT 1 FROM users")
    assert [[view.name for view in level] for level in found.levels] == [["c", "d"], ["a"], ["b"]]
    assert found.inputs("a") == ("c", "public.orders")
    assert found.above("c") == {"a", "b"}
    assert found.above("public.users") == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("sql", "message", "hint"),
    [
        ("SELECT *\nFROM ordrs", 'v.sql:3:6: unknown table "ordrs"', 'did you mean "orders"'),
        (
            "SELECT * FROM parquet.`/x`",
            'v.sql:2:15: unknown table "parquet./x"',
            "a view reads the tables in the settings under source.tables, and other views",
        ),
        ("SELECT * FROM refunds", 'v.sql:2:15: unknown table "refunds"', 'did you mean "sales.refunds"'),
        ("SELECT * FROM sales.users", 'v.sql:2:15: unknown table "sales.users"', 'did you mean "public.users"'),
    ],
)
def test_graph_unknown_table_names_file_line_and_column(sql: str, message: str, hint: str) -> None:
    with pytest.raises(BadView) as caught:
        graph(v=sql)
    assert caught.value.message.startswith(message)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM a.public.orders", 'v.sql:2:15: table name "a.public.orders" has 3 parts'),
        ("SELECT * FROM orders VERSION AS OF 3", 'v.sql:2:15: table "orders" at another version or time'),
        ("INSERT INTO orders SELECT 1", 'v.sql:2:1: found "INSERT", wanted a SELECT'),
        ("DELETE FROM orders", 'v.sql:2:1: found "DELETE", wanted a SELECT'),
        ("DROP TABLE orders", 'v.sql:2:1: found "DROP", wanted a SELECT'),
    ],
)
def test_graph_query_that_is_no_plain_select_is_unsupported(sql: str, message: str) -> None:
    with pytest.raises(UnsupportedView) as caught:
        graph(v=sql)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT *\n  FROM orders WHERE", 'v.sql:3:15: syntax error at or near "WHERE"'),
        ("SELECT (1", 'v.sql:2:9: syntax error at or near "1", wanted )'),
        ("SELECT 'é', a b c FROM orders", 'v.sql:2:17: syntax error at or near "c"'),
    ],
)
def test_graph_syntax_error_names_file_line_and_column(sql: str, message: str) -> None:
    with pytest.raises(BadView) as caught:
        graph(v=sql)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("sql", "is_window"),
    [
        ("SELECT count(*) FROM orders GROUP BY window(at, '5 minutes')", True),
        ("SELECT count(*) FROM orders GROUP BY id, Window (at", True),
        ("SELECT window(at, '5 minutes').start, a b c FROM orders", False),
        ("SELECT id, rank() OVER w AS r FROM orders WINDOW w AS (ORDER BY id) a b", False),
    ],
)
def test_graph_syntax_error_in_a_time_window_says_how_to_write_it(sql: str, is_window: bool) -> None:
    with pytest.raises(BadView) as caught:
        graph(v=sql)
    assert (caught.value.hint or "").startswith("write `window`(time, '5 minutes')") == is_window


@pytest.mark.proves(
    wrong="Views read each other in a cycle",
    seen="`ViewCycle` with the views of the cycle",
    do="remove one of these reads",
)
def test_graph_cycle_names_the_views_in_it() -> None:
    with pytest.raises(ViewCycle) as caught:
        graph(a="SELECT * FROM c", b="SELECT * FROM a", c="SELECT *\nFROM b", d="SELECT * FROM a")
    assert caught.value.message == 'a.sql:2:15: views read each other: "a" reads "c" reads "b" reads "a"'


def test_graph_view_that_reads_itself_is_a_cycle() -> None:
    with pytest.raises(ViewCycle, match='"a" reads "a"'):
        graph(a="SELECT * FROM a")


def test_graph_view_with_the_name_of_a_table_is_refused() -> None:
    with pytest.raises(BadView, match='1:26: view "users" has the name of table'):
        graph(users="SELECT 1")


def test_graph_same_name_in_two_schemas_needs_the_schema() -> None:
    views = [parse_view("CREATE MATERIALIZED VIEW v AS SELECT * FROM b.t", Path("v.sql"))]
    assert ViewGraph(views, [TableName("a", "t"), TableName("b", "t")]).inputs("v") == ("b.t",)
