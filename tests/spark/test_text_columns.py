"""Columns that are text in a mirror and not in Postgres: what a view may do with them, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc_views import demo
from cdc_views.base.names import TableName
from cdc_views.cli.analysis import view_findings
from cdc_views.config import EngineSettings
from cdc_views.engine.capture.declared import Declared, compile_declared
from cdc_views.engine.views.project_analysis import analyse_views
from cdc_views.errors import BadView, UnsupportedView
from cdc_views.plan.compiled import CompiledView
from cdc_views.source.catalog import SourceColumn, SourceIdentity, SourceTable
from cdc_views.testing.memory.ddl import read_tables
from cdc_views.views.definition import parse_view, read_views
from cdc_views.views.graph import ViewGraph


def _column(name: str, type_name: str, typmod: int = -1, element: str | None = None) -> SourceColumn:
    return SourceColumn(name, 1, type_name, typmod, element, False, True)


TABLE = SourceTable(
    TableName("public", "t"),
    1,
    (
        replace(_column("id", "int8"), not_null=True), _column("name", "text"), _column("price", "numeric"),
        _column("exact", "numeric", (10 << 16) + 2 + 4), _column("wide", "numeric", (40 << 16) + 2 + 4),
        _column("cash", "money"), _column("span", "interval"), _column("at", "time"), _column("zoned", "timetz"),
        _column("key", "uuid"), _column("other", "uuid"), _column("feeling", "enum"), _column("ci", "citext"),
        _column("flags", "bit", 4), _column("addr", "inet"), _column("days", "daterange"), _column("doc", "json"),
        _column("docb", "jsonb"), _column("prices", "_numeric", -1, "numeric"), _column("keys", "_uuid", -1, "uuid"),
    ),
    ("id",), False, "full",
)  # fmt: skip

ACCEPTED = [
    "SELECT * FROM t",
    "SELECT price AS p, coalesce(price, NULL) AS q FROM t WHERE price IS NOT NULL",
    "SELECT count(price) AS n FROM t",
    "SELECT max(CAST(price AS DECIMAL(20, 4))) AS m, sum(price::decimal(20, 4)) AS s FROM t",
    "SELECT CAST(price AS STRING) AS p, count(*) AS n FROM t GROUP BY CAST(price AS STRING)",
    "SELECT double(price) + 1 AS p FROM t",
    "SELECT price || ' EUR' AS p, length(price) AS n FROM t",
    "SELECT lower(ci) AS ci, count(*) AS n FROM t GROUP BY lower(ci)",
    "SELECT max(at) AS m FROM t WHERE at > '09:00:00' AND at BETWEEN '10:00:00.5' AND '24:00:00'",
    "SELECT a.id FROM t a JOIN t b ON a.key = b.other WHERE a.key IN ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')",
    "SELECT key, count(DISTINCT other) AS n, min(key) AS m FROM t GROUP BY key",
    "SELECT id, row_number() OVER (PARTITION BY feeling, key ORDER BY key, id) AS n FROM t",
    "SELECT DISTINCT feeling, cash, addr, wide FROM t WHERE feeling = 'low' AND cash = '1.00' AND wide = '1.50'",
    "SELECT CASE feeling WHEN 'low' THEN 1 ELSE 2 END AS n FROM t ORDER BY n",
    "SELECT get_json_object(docb, '$.a') AS a, from_json(doc, 'a int').a AS b FROM t",
    "SELECT to_json(named_struct('price', price, 'span', span, 'docb', docb)) AS j FROM t",
    "SELECT id, k FROM t LATERAL VIEW explode(keys) AS k WHERE k = other",
    "SELECT id, size(prices) AS n, prices[0] AS first FROM t",
    "SELECT transform(prices, x -> CAST(x AS DECIMAL(20, 4))) AS p FROM t",
    "SELECT struct(id, price).price AS p FROM t",
    "SELECT sort_array(collect_list(key)) AS keys, listagg(price, ',') WITHIN GROUP (ORDER BY id) AS l FROM t",
    "SELECT price FROM t UNION ALL SELECT price FROM t UNION ALL SELECT NULL",
    "SELECT key FROM t UNION SELECT other FROM t",
    "SELECT max(struct(id, key)).key AS p FROM t WHERE false OR id IN (SELECT id FROM t WHERE price IS NULL)",
    "SELECT id, lag(price) OVER (ORDER BY id) AS p, first(price) OVER (ORDER BY id) AS q FROM t",
    "SELECT name, id FROM t WHERE name > 'a' ORDER BY name",
    "SELECT max(exact) AS m, sum(exact) AS s FROM t",
]  # fmt: skip

REFUSED = [
    ("SELECT max(price) AS m FROM t", "price", '"max(price)" orders it'),
    ("SELECT id, price FROM t ORDER BY price LIMIT 2", "price", "orders it"),
    ("SELECT sum(price) AS s FROM t", "price", '"sum(price)" makes Spark cast it to double'),
    ("SELECT avg(cash) AS s FROM t", "cash", "makes Spark cast it to double"),
    ("SELECT price + 2 AS s FROM t", "price", '"price + 2" makes Spark cast it'),
    ("SELECT -price AS s FROM t", "price", "makes Spark cast it"),
    ("SELECT id FROM t WHERE price > 100", "price", '"price > 100" makes Spark cast it'),
    ("SELECT id FROM t WHERE price > '100'", "price", "orders it"),
    ("SELECT id FROM t WHERE price = '1'", "price", "compares it: 1.0 and 1.00"),
    ("SELECT id FROM t WHERE price <> exact", "price", "makes Spark cast it"),
    ("SELECT id FROM t WHERE price IN ('1', '2')", "price", "compares it"),
    ("SELECT id FROM t WHERE price BETWEEN '1' AND '2'", "price", "orders it"),
    ("SELECT count(DISTINCT price) AS n FROM t", "price", "compares it"),
    ("SELECT price, count(*) AS n FROM t GROUP BY price", "price", "groups by it"),
    ("SELECT count(*) AS n FROM t GROUP BY GROUPING SETS ((price), ())", "price", "groups by it"),
    ("SELECT DISTINCT price FROM t", "price", "takes equal values once"),
    ("SELECT price FROM t UNION SELECT price FROM t", "price", "takes equal values once"),
    ("SELECT price FROM t INTERSECT SELECT price FROM t", "price", "compares it"),
    ("SELECT price FROM t EXCEPT ALL SELECT price FROM t", "price", "compares it"),
    ("SELECT price FROM t UNION ALL SELECT '1.0'", "price", "mixes it"),
    ("SELECT price FROM t UNION ALL SELECT name FROM t", "price", "mixes it"),
    ("SELECT a.id FROM t a JOIN t b ON a.price = b.price", "price", "compares it"),
    ("SELECT a.id FROM t a JOIN t b USING (price)", "price", "compares it"),
    ("SELECT id FROM t WHERE price IN (SELECT price FROM t)", "price", "compares it"),
    ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.price = t.price)", "price", "compares it"),
    ("SELECT id, rank() OVER (ORDER BY price) AS r FROM t", "price", "orders it"),
    ("SELECT id, count(*) OVER (PARTITION BY price) AS r FROM t", "price", "compares it"),
    ("SELECT greatest(price, '3') AS g FROM t", "price", "orders it"),
    ("SELECT nullif(price, '0') AS g FROM t", "price", "compares it"),
    ("SELECT coalesce(price, '0') AS g FROM t", "price", "mixes it"),
    ("SELECT coalesce(price, 0) AS g FROM t", "price", "makes Spark cast it"),
    ("SELECT max(p) AS m FROM (SELECT price AS p FROM t) s", "price", "orders it"),
    ("WITH c AS (SELECT price AS p FROM t) SELECT a.p FROM c a JOIN c b ON a.p = b.p", "price", "compares it"),
    ("SELECT max(if(id > 1, price, NULL)) AS m FROM t", "price", "orders it"),
    ("SELECT max(CASE WHEN id > 1 THEN price END) AS m FROM t", "price", "orders it"),
    ("SELECT max(struct(price, id)).id AS m FROM t", "price", "orders it"),
    ("SELECT max(p) AS m FROM (SELECT price AS p FROM t UNION ALL SELECT price FROM t) s", "price", "orders it"),
    ("SELECT (SELECT max(price) FROM t) AS m FROM t", "price", "orders it"),
    ("SELECT id FROM t WHERE (SELECT first(price) OVER (ORDER BY id) FROM t) = '1'", "price", "compares it"),
    ("SELECT t.id, l.m FROM t, LATERAL (SELECT max(u.price) AS m FROM t u WHERE u.id = t.id) l", "price", "orders"),
    ("SELECT price AS p, greatest(p, p) AS m FROM t", "price", "orders it"),
    ("SELECT id, max(price) OVER (ORDER BY id) AS m FROM t", "price", "orders it"),
    ("SELECT * FROM (SELECT id, name, price FROM t) PIVOT (max(price) FOR name IN ('a'))", "price", "orders it"),
    ("SELECT id, p FROM t LATERAL VIEW explode(prices) AS p ORDER BY p", "prices", "orders it"),
    ("SELECT array_contains(prices, '1.0') AS c FROM t", "prices", "compares it"),
    ("SELECT sort_array(prices) AS c FROM t", "prices", "orders it"),
    ("SELECT filter(prices, x -> x > '1') AS c FROM t", "prices", "orders it"),
    ("SELECT array_distinct(prices) AS c FROM t", "prices", "not known"),
    ("SELECT aggregate(prices, 0D, (a, x) -> a + x) AS c FROM t", "prices", "not known"),
    ("SELECT abs(price) AS c FROM t", "price", "makes Spark cast it"),
    ("SELECT hash(price) AS c FROM t", "price", "not known"),
    ("SELECT lower(hash(price)) AS c FROM t", "price", "not known"),
    ("SELECT max(span) AS m FROM t", "span", "orders it"),
    ("SELECT count(*) AS m FROM t GROUP BY span", "span", "groups by it: '1 mon'"),
    ("SELECT id FROM t WHERE at > '9:00'", "at", "a literal that Postgres prints in another form"),
    ("SELECT CAST(at AS TIMESTAMP) AS a FROM t", "at", "casts the text: Spark adds the date"),
    ("SELECT id FROM t WHERE zoned = '10:00:00+00'", "zoned", "compares it"),
    ("SELECT id FROM t WHERE key = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "key", "a literal that Postgres prints"),
    ("SELECT id FROM t WHERE key = name", "key", "values of another type"),
    ("SELECT max(feeling) AS m FROM t", "feeling", "orders it: Postgres orders the labels as they were declared"),
    ("SELECT id FROM t WHERE feeling > 'low'", "feeling", "orders it"),
    ("SELECT ci, count(*) AS n FROM t GROUP BY ci", "ci", "groups by it: 'a' and 'A'"),
    ("SELECT id FROM t WHERE ci = 'a'", "ci", "compares it"),
    ("SELECT id FROM t WHERE ci LIKE 'a%'", "ci", "reads its text"),
    ("SELECT substring(ci, 1, 2) AS s, left(ci, 2) AS l FROM t", "ci", "reads its text"),
    ("SELECT CAST(flags AS INT) AS m FROM t", "flags", "casts the text: Spark reads the bits as a decimal number"),
    ("SELECT min(addr) AS m FROM t", "addr", "orders it"),
    ("SELECT id FROM t ORDER BY days", "days", "orders it"),
    ("SELECT DISTINCT docb FROM t", "docb", "takes equal values once"),
    ("SELECT addr || '' AS c FROM t", "addr", "reads its text"),
    ("SELECT cash || ' EUR' AS c FROM t", "cash", "reads its text"),
    ("SELECT max(wide) AS m FROM t", "wide", "orders it"),
    ("SELECT id FROM t WHERE wide = '1.5'", "wide", "a literal that Postgres prints in another form"),
    ("WITH RECURSIVE r AS (SELECT id, price FROM t UNION ALL SELECT id + 1, price FROM r WHERE id < 3)"
     " SELECT max(price) AS m FROM r", "price", "orders it"),
]  # fmt: skip


def analyse(spark: SparkSession, *queries: str) -> dict[str, object]:
    """The tags of the last view's columns; each view may read those before it, as v0, v1, ..."""
    sources = [TABLE]
    views = [parse_view(f"CREATE MATERIALIZED VIEW v{n} AS\n{sql}", Path(f"v{n}.sql")) for n, sql in enumerate(queries)]
    graph = ViewGraph(views, [source.name for source in sources])
    compiled = [compile_declared(view, graph, sources, {}) for view in views]
    for _, analysed in analyse_views(spark, sources, compiled):
        if isinstance(analysed, BadView):
            raise analysed
        tags = analysed.text_columns
    return dict(tags)


@pytest.mark.parametrize("sql", ACCEPTED)
def test_view_that_answers_as_postgres_does_is_accepted(spark: SparkSession, sql: str) -> None:
    analyse(spark, sql)


@pytest.mark.parametrize(("sql", "column", "why"), REFUSED)
def test_view_that_answers_otherwise_is_refused(spark: SparkSession, sql: str, column: str, why: str) -> None:
    with pytest.raises(UnsupportedView) as error:
        analyse(spark, sql)
    assert why in error.value.message
    assert f'column "{column}" of "public.t" is ' in error.value.message
    assert error.value.message.startswith("v0.sql:2:")
    assert error.value.hint


def test_refusal_names_place_column_type_reason_and_what_to_write(spark: SparkSession) -> None:
    with pytest.raises(UnsupportedView) as error:
        analyse(spark, "SELECT id,\n  max( price ) AS m\nFROM t GROUP BY id")
    assert error.value.message == (
        'v0.sql:3:3: column "price" of "public.t" is numeric in Postgres and text here, and "max( price )" orders it: '
        "as texts, 100 comes before 99"
    )
    assert error.value.hint == (
        "write CAST(price AS DECIMAL(38, 10)), with the digits that the values need, or list "
        '"public.t.price" in source.decimal_columns'
    )


@pytest.mark.parametrize(
    "queries",
    [
        ["SELECT id, price AS p FROM t", "SELECT max(p) AS m FROM v0"],
        [
            "SELECT id, coalesce(price, price) AS p FROM t",
            "SELECT struct(p) AS s FROM v0",
            "SELECT max(s.p) AS m FROM v1",
        ],
        ["SELECT array(first_value(price) OVER (ORDER BY id)) AS p FROM t", "SELECT sort_array(p) AS m FROM v0"],
    ],
)
def test_column_is_followed_through_views(spark: SparkSession, queries: Sequence[str]) -> None:
    with pytest.raises(UnsupportedView, match=r'column "price" of "public\.t" is numeric in Postgres'):
        analyse(spark, *queries)


def test_findings_of_views_are_refusals_and_differences(spark: SparkSession) -> None:
    texts = {
        "bad": "SELECT max(price) AS m FROM t",
        "above": "SELECT m FROM bad",
        "halves": "SELECT id / 2 AS half, id FROM t WHERE name > 'a'",
        "newest": "SELECT id, name FROM t ORDER BY id LIMIT 2",
    }
    views = [
        parse_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}", Path(f"{name}.sql")) for name, sql in texts.items()
    ]
    graph = ViewGraph(views, [TABLE.name])
    levels = [[compile_declared(view, graph, [TABLE], {}) for view in level] for level in graph.levels]
    found = view_findings(EngineSettings(), Declared([TABLE], SourceIdentity("1", 1, 180000), levels))
    assert [(each.severity, each.subject, each.problem.partition(":")[0]) for each in found] == [
        ("error", 'view "bad"', "bad.sql"),
        ("info", 'view "halves"', "halves.sql"),
        ("info", 'view "halves"', "halves.sql"),
    ]
    assert found[1].problem.endswith("Spark gives a fraction for integers; Postgres gives a whole number")
    assert found[1].remedy == "write div, if you want Postgres's answer"


def test_cast_in_a_view_ends_it_for_the_views_above(spark: SparkSession) -> None:
    tags = analyse(spark, "SELECT CAST(price AS STRING) AS p, key FROM t", "SELECT max(p) AS m, max(key) AS k FROM v0")
    assert list(tags) == ["k"]


def test_views_of_the_demo_are_accepted(spark: SparkSession) -> None:
    folder = Path(demo.__file__).parent
    statements = re.findall(r"^CREATE TABLE .*?^\);", (folder / "schema.sql").read_text(), re.DOTALL | re.MULTILINE)
    tables = [table.source for table in read_tables(statements)]
    views = read_views(folder / "views")
    graph = ViewGraph(views, [table.name for table in tables])
    compiled: dict[str, CompiledView] = {}
    for view in chain.from_iterable(graph.levels):
        compiled[view.name] = compile_declared(view, graph, tables, compiled)
    analysed = {view.definition.name: found for view, found in analyse_views(spark, tables, compiled.values())}
    assert analysed.keys() == {view.name for view in views}
    assert [found for found in analysed.values() if isinstance(found, BadView)] == []
