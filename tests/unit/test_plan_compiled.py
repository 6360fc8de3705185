"""Compiled views beyond the golden pairs: fingerprints, places, explanations, the demo's views."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_views.base.names import TableName
from cdc_views.engine.views.planning import require_strict
from cdc_views.errors import StrictViewIsFull, UnsupportedView
from cdc_views.plan import compiled as plan_compiled
from cdc_views.plan.compiled import compile_view
from cdc_views.plan.dialect import DIFFERENCES, Note
from cdc_views.plan.explain import explain
from cdc_views.views.definition import parse_view, read_views
from cdc_views.views.graph import ViewGraph
from tests.unit.golden import KEYS, SCHEMAS, compiled, maintained

PLAIN = "CREATE MATERIALIZED VIEW v AS SELECT id FROM orders"
DEMO = Path(__file__).parents[2] / "cdc_views" / "demo" / "views"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN + ";",
        PLAIN + " -- why",
        PLAIN.replace("SELECT ", "SELECT\n  "),
        PLAIN.replace("v AS", "v WITH (strict) AS"),
    ],
)
def test_fingerprint_of_another_layout_is_the_same(text: str) -> None:
    assert compiled(text).fingerprint == compiled(PLAIN).fingerprint


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("SELECT id", "SELECT id, note"),
        PLAIN.replace("orders", "users"),
        PLAIN.replace("v AS", "v (a) AS"),
        PLAIN.replace("v AS", "v WITH (layout = 'plain') AS"),
        PLAIN + " WHERE note = 'a  b'",
    ],
)
def test_fingerprint_of_another_meaning_differs(text: str) -> None:
    assert compiled(text).fingerprint != compiled(PLAIN).fingerprint


def test_fingerprint_of_another_spark_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiled(PLAIN).fingerprint
    monkeypatch.setattr(plan_compiled, "engine_version", lambda: "5.0.0")
    assert compiled(PLAIN).fingerprint != before


def test_fingerprint_of_another_text_in_quotes_differs() -> None:
    one, two = (compiled(f"{PLAIN} WHERE note = '{text}'").fingerprint for text in ("a b", "a  b"))
    assert one != two


def test_compile_view_after_a_header_of_lines_names_the_files_line() -> None:
    text = "-- a view\nCREATE MATERIALIZED VIEW v\nAS\n  SELECT id,\n    rand() AS r FROM orders"
    with pytest.raises(UnsupportedView, match=r"^views/v\.sql:5:5: rand\(\)"):
        compiled(text, "views/v.sql")


def test_compile_view_over_a_view_uses_its_key_if_given() -> None:
    views = [
        parse_view("CREATE MATERIALIZED VIEW a (userId) AS SELECT id FROM users", Path("a.sql")),
        parse_view("CREATE MATERIALIZED VIEW b AS SELECT * FROM a", Path("b.sql")),
    ]
    graph = ViewGraph(views, [TableName("public", "users")])
    assert compile_view(views[1], graph, SCHEMAS, KEYS).key is None
    assert compile_view(views[1], graph, SCHEMAS, {**KEYS, "a": ("userId",)}).key == ("userId",)


def test_compile_view_with_a_long_chain_of_conditions_does_not_overflow() -> None:
    chain = " OR ".join(f"id = {n}" for n in range(1500))
    assert compiled(f"CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE {chain}").key == ("id",)


@pytest.mark.parametrize("sql", ["SELECT id FROM user", "SELECT user.id FROM user", "SELECT o.id FROM user u, order o"])
def test_compile_view_over_tables_with_names_of_functions_and_words_reads_them(sql: str) -> None:
    view = parse_view(f"CREATE MATERIALIZED VIEW v AS {sql}", Path("v.sql"))
    graph = ViewGraph([view], [TableName("public", "user"), TableName("public", "order")])
    assert compile_view(view, graph, {}, {}).inputs[0] == "public.user"


@pytest.mark.parametrize("columns", ["", "(x, y)"])
@pytest.mark.parametrize("word", ["SELECT", "note", "orders", "WHERE", "> 1"])
def test_offset_of_a_position_in_the_query_is_that_in_the_text(columns: str, word: str) -> None:
    sql = "SELECT id, note FROM public.orders WHERE id > 1 -- end"
    view, relations = compiled(f"CREATE MATERIALIZED VIEW v {columns} AS {sql}"), {"public.orders": "_cv_input_1"}
    query = view.query(relations)
    found = query.index(sql[:10]) if word == "SELECT" else query.index("_cv_input_1" if word == "orders" else word)
    assert view.offset_of(found, relations) == sql.index("public.orders" if word == "orders" else word)


def test_explain_shows_strategy_key_inputs_and_sql() -> None:
    explanation = explain(compiled(PLAIN), maintained(compiled(PLAIN)))
    assert (explanation.strategy, explanation.key, explanation.inputs) == ("KEYS", ("id",), ("public.orders",))
    assert explanation.sql == "SELECT id FROM public.orders AS orders"
    assert explanation.lines() == [
        "view: v",
        "strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared",
        'key: (id): the key of "public.orders"',
        "inputs: public.orders",
        "steps of the query, each over those below it:",
        "  select id; one row for each (id)",
        "    read public.orders; one row for each (id)",
        "lookups:",
        "  a change of public.orders affects (id)",
        "  the rows of affected (id) are computed again from",
        "    public.orders by (id) from (id) of the affected keys",
        "sql:",
        "  SELECT id FROM public.orders AS orders",
    ]


def test_explain_of_a_view_without_keys_shows_why_it_is_computed_in_full() -> None:
    view = compiled("CREATE MATERIALIZED VIEW v AS SELECT avg(id) AS n FROM orders")
    explanation = explain(view, maintained(view))
    assert explanation.lines() == [
        "view: v",
        "strategy: FULL: the whole query is run and compared with the stored rows: "
        "an aggregate over all rows that cannot be added up: "
        'column "n" is an average, and the view lacks the sum or count of its values',
        "key: (): an aggregate without GROUP BY has one row",
        "inputs: public.orders",
        "steps of the query, each over those below it:",
        "  select avg(id) AS n; one row",
        "    make one group of all rows; one row",
        "      read public.orders; one row for each (id)",
        "sql:",
        "  SELECT avg(id) AS n FROM public.orders AS orders",
    ]


@pytest.mark.proves(
    wrong="A view is declared `WITH (strict)`, and no strategy but `FULL` can maintain it",
    seen="`StrictViewIsFull` with the file and the reason; the view was not created",
    do="write it in another way ([views.md](views.md#what-is-full-and-what-to-write-instead)), or remove `strict`",
)
def test_strict_view_that_would_be_full_is_refused_with_the_reason() -> None:
    view = compiled("CREATE MATERIALIZED VIEW v WITH (strict) AS SELECT avg(id) AS n FROM orders")
    with pytest.raises(StrictViewIsFull) as refused:
        require_strict(view, maintained(view))
    assert refused.value.exit_status == 2
    assert refused.value.message.startswith(
        'v.sql:1:26: view "v" is strict, but its strategy would be FULL: the whole query is run and compared with the '
        "stored rows: an aggregate over all rows that cannot be added up"
    )
    assert refused.value.hint is not None


def test_strict_view_with_keys_and_other_views_are_accepted() -> None:
    for text in (PLAIN.replace("v AS", "v WITH (strict) AS"), PLAIN.replace("SELECT id", "SELECT max(id) AS n")):
        require_strict(compiled(text), maintained(compiled(text)))


def test_explain_shows_where_postgres_answers_otherwise_last() -> None:
    note = Note("v.sql:2:8", "7 / 2", DIFFERENCES["integer division"])
    assert explain(compiled(PLAIN), maintained(compiled(PLAIN)), (note,)).lines()[-3:] == [
        "differences from Postgres:",
        '  v.sql:2:8: "7 / 2": Spark gives a fraction for integers; Postgres gives a whole number',
        "    write div",
    ]


def test_fragment_is_the_text_as_written_where_inputs_are_replaced() -> None:
    view = compiled("CREATE MATERIALIZED VIEW v (a) AS\nSELECT max(id)\nFROM orders WHERE id > 1")
    relations = {"public.orders": "_cv_input_1"}
    at = view.query(relations).index("max(id)"), view.query(relations).index(" AS orders") - len("_cv_input_1")
    assert view.fragment(relations, (at[0], at[0] + 7)) == ("v.sql:2:8", "max(id)")
    assert view.fragment(relations, (at[0], at[1] + 3)) == ("v.sql:2:8", "max(id)\nFROM orders")
    end = view.query(relations).index("id > 1")
    assert view.fragment(relations, (end, end + 6)) == ("v.sql:3:19", "id > 1")
    assert view.fragment(relations, None) == ("v.sql:2:1", "SELECT max(id)\nFROM orders WHERE id > 1")


def test_compile_view_of_each_demo_view_finds_its_key() -> None:
    tables = {
        "users": ("id",), "follows": ("follower_id", "followee_id"), "posts": ("id",), "products": ("id",),
        "orders": ("id",), "order_items": ("order_id", "line"), "accounts": ("id",), "savings": ("id",),
        "searches": ("id",),
    }  # fmt: skip
    columns = {
        "users": "id name", "follows": "follower_id followee_id muted", "posts": "id author_id body likes created_at",
        "products": "id sku", "orders": "id user_id status", "order_items": "order_id line product_id quantity",
        "accounts": "id balance", "savings": "id balance", "searches": "id user_id query",
    }  # fmt: skip
    views = read_views(DEMO)
    graph = ViewGraph(views, [TableName("public", name) for name in tables])
    schemas = {f"public.{name}": dict.fromkeys(names.split(), "int8") for name, names in columns.items()}
    keys = {f"public.{name}": key for name, key in tables.items()}
    found: dict[str, tuple[str, ...] | None] = {}
    for level in graph.levels:
        found |= {view.name: compile_view(view, graph, schemas, keys).key for view in level}
        keys |= {name: key for name, key in found.items() if key is not None}
    assert found == {
        "bank_total": (),
        "home_timeline": ("user_id", "author_id", "post_id"),
        "order_totals": ("user_id",),
        "post_alerts": ("search_id", "post_id"),
        "post_search": ("post_id",),
        "product_cache": ("product_id",),
    }
