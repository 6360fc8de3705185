"""What Spark's analysed plan decides: a view is a function of its tables, however its functions are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_views.base.names import TableName
from cdc_views.engine.views.analysis.determinism import check_determinism
from cdc_views.errors import UnsupportedView
from cdc_views.plan.compiled import CompiledView, compile_view
from cdc_views.views.definition import parse_view
from cdc_views.views.graph import ViewGraph
from tests.unit import golden

COLUMNS = {"id": "int8", "g": "int4", "n": "text", "d": "float8", "b": "bytea", "ts": "timestamptz", "m": "numeric",
           "w": "_text"}  # fmt: skip
SPARK_TYPES = {"int8": "bigint", "int4": "int", "timestamptz": "timestamp", "bool": "boolean", "_text": "array<string>"}
TYPES = "id bigint, g int, n string, d double, b binary, ts timestamp, m decimal(12, 2), w array<string>"


def compiled(select: str) -> CompiledView:
    view = parse_view(f"CREATE MATERIALIZED VIEW v AS\n{select}", Path("v.sql"))
    graph = ViewGraph([view], [TableName("public", "t")])
    return compile_view(view, graph, {"public.t": COLUMNS}, {"public.t": ("id",)})


@pytest.fixture(scope="module")
def check(spark: SparkSession) -> Callable[[str], None]:
    """Check a SELECT over table `t` of an empty session."""
    session = spark.newSession()
    session.createDataFrame([], TYPES).createOrReplaceTempView("_cv_input_1")
    session.createDataFrame([], TYPES).createOrReplaceTempView("elsewhere")
    session.udf.register("mine", lambda value: value, "bigint")
    session.sql("CREATE TEMPORARY FUNCTION plus(a BIGINT) RETURNS BIGINT RETURN a + 1").collect()

    def run(select: str) -> None:
        view, relations = compiled(select), {"public.t": "_cv_input_1"}
        check_determinism(session.sql(view.query(relations)), view, relations)

    return run


@pytest.mark.parametrize(
    ("select", "problem"),
    [
        # chance, clock, session, storage: by whatever name
        ("SELECT id, `rand`() AS r FROM t", "2:12: rand() returns another result each time"),
        ("SELECT id,\n  system.builtin.rand() AS r FROM t", "3:3: rand() returns another result each time"),
        ("SELECT id FROM t WHERE id > 0 AND `rand`(3) > 0.5", "2:35: rand() returns"),
        ("SELECT id FROM t ORDER BY `rand`()", "2:27: rand() returns"),
        ("SELECT id, `uuid`() AS u FROM t", "2:12: uuid() returns"),
        ("SELECT id, `shuffle`(array(1, 2)) AS u FROM t", "2:12: shuffle() returns"),
        ("SELECT id, `aes_encrypt`(n, 'aaaaaaaaaaaaaaaa') AS u FROM t", "2:12: aes_encrypt() returns"),
        ("SELECT id, `now`() AS u FROM t", "2:12: now() depends on the time"),
        ("SELECT id, system.builtin.current_date() AS u FROM t", "2:12: current_date() depends on the time"),
        ("SELECT id, `unix_timestamp`() AS u FROM t", "depends on the time"),
        ("SELECT * FROM VALUES (`now`()) AS x(a)", "2:23: now() depends on the time"),
        ("SELECT id, (SELECT max(`now`()) FROM t) AS u FROM t", "2:24: now() depends on the time"),
        ("WITH c AS (SELECT id, `uuid`() AS u FROM t) SELECT u FROM c", "2:23: uuid() returns"),
        ("SELECT t.id, x.u FROM t, LATERAL (SELECT `now`() AS u) x", "2:42: now() depends on the time"),
        ("SELECT id, `current_user`() AS u FROM t", "current_user() depends on the session"),
        ("SELECT id, `current_timezone`() AS u FROM t", "current_timezone() depends on the session"),
        ("SELECT id, `version`() AS u FROM t", "version() depends on the session"),
        ("SELECT id, `spark_partition_id`() AS u FROM t", "spark_partition_id() depends on how"),
        ("SELECT id, `monotonically_increasing_id`() AS u FROM t", "monotonically_increasing_id() depends on how"),
        ("SELECT id, `input_file_name`() AS u FROM t", "input_file_name() depends on how"),
        ("SELECT id, `reflect`('java.util.UUID', 'randomUUID') AS u FROM t", "reflect() runs code"),
        # functions of the session
        ("SELECT mine(id) AS a FROM t", "2:8: mine() runs code"),
        ("SELECT plus(id) AS a FROM t", "2:8: plus() runs code"),
        # texts as times
        ("SELECT id FROM t WHERE ts > 'now'", "2:24: 'now' as a time depends on the time"),
        ("SELECT id, CAST(concat('n', 'ow') AS TIMESTAMP) AS a FROM t", "'now' as a time depends on the time"),
        ("SELECT id, date(' Today') AS a FROM t", "'Today' as a time depends on the time"),
        ("SELECT id, to_timestamp(lower('NOW')) AS a FROM t", "'now' as a time depends on the time"),
        ("SELECT id, CAST(concat('12', ':00') AS TIMESTAMP) AS a FROM t", "2:12: '12:00' as a time depends on the"),
        ("SELECT id, CAST(n AS TIMESTAMP) AS a FROM t", "2:12: a text as a timestamp depends on the time"),
        ("SELECT id, try_to_timestamp(n) AS a FROM t", "a text as a timestamp depends on the time"),
        ("SELECT id FROM t WHERE ts > n", "a text as a timestamp depends on the time"),
        ("SELECT id, from_json(n, 'a timestamp') AS a FROM t", "2:12: from_json() depends on the time"),
        ("SELECT id, from_csv(n, 'a timestamp') AS a FROM t", "2:12: from_csv() depends on the time"),
        ("SELECT id, CAST(w AS ARRAY<TIMESTAMP>) AS x FROM t", "2:12: a text as a timestamp depends on the time"),
        ("SELECT id, CAST(array('12:00') AS ARRAY<TIMESTAMP>) AS x FROM t", "2:12: a text as a timestamp depends"),
        ("SELECT id, CAST(struct(id, array(n)) AS STRUCT<a: INT, b: ARRAY<TIMESTAMP>>) AS x FROM t", "a text as a"),
        ("SELECT id, CAST(map(n, 1) AS MAP<TIMESTAMP, INT>) AS x FROM t", "2:12: a text as a timestamp depends"),
        ("SELECT id, TRY_CAST(map(1, n) AS MAP<INT, TIMESTAMP>) AS x FROM t", "a text as a timestamp depends"),
        ("SELECT id, coalesce(w, array(ts)) AS x FROM t", "a text as a timestamp depends on the time"),
        ("SELECT id, concat(w, array(ts)) AS x FROM t", "a text as a timestamp depends on the time"),
        ("SELECT w AS x FROM t UNION ALL SELECT array(ts) FROM t", "a text as a timestamp depends on the time"),
        ("SELECT id, CAST(variant_get(parse_json(n), '$.d', 'variant') AS TIMESTAMP) AS x FROM t", "a text as a"),
        ("SELECT id, CAST(parse_json(n) AS ARRAY<TIMESTAMP>) AS x FROM t", "a text as a timestamp depends on the time"),
        ("SELECT id, variant_get(parse_json(n), '$.d', 'timestamp') AS x FROM t", "2:12: variant_get() depends on the"),
        ("SELECT id, try_variant_get(parse_json(n), '$.d', 'struct<a: timestamp>') AS x FROM t", "depends on the"),
        # aggregates that depend on the order of rows, or are not exact
        ("SELECT g, `first`(id) AS a FROM t GROUP BY g", "2:11: first() returns an arbitrary row of its group"),
        ("SELECT g, `any_value`(id) AS a FROM t GROUP BY g", "any_value() returns an arbitrary row of its group"),
        ("SELECT g, `mode`(id) AS a FROM t GROUP BY g", "mode() returns an arbitrary row of its group"),
        ("SELECT id, `last`(n) OVER (PARTITION BY g) AS a FROM t", "last() over a ROWS frame depends on the order"),
        ("SELECT g, system.builtin.max_by(n, id) AS a FROM t GROUP BY g", "max_by() returns any of the rows that tie"),
        ("SELECT g, `collect_list`(id) AS a FROM t GROUP BY g", "collect_list() depends on the order"),
        ("SELECT g, `array_agg`(id) AS a FROM t GROUP BY g", "array_agg() depends on the order"),
        ("SELECT g, size(`collect_list`(id)) AS a FROM t GROUP BY g", "collect_list() depends on the order"),
        ("SELECT g, `listagg`(n) AS a FROM t GROUP BY g", "listagg() depends on the order"),
        ("SELECT g, `array_sort`(`collect_list`(id), (a, b) -> 0) AS a FROM t GROUP BY g", "its own comparison"),
        ("SELECT g, sort_array(collect_list(d)) AS x FROM t GROUP BY g", "2:22: collect_list() shows 0.0 and -0.0 in"),
        ("SELECT g, to_json(array_sort(collect_set(CAST(d AS FLOAT)))) AS x FROM t GROUP BY g", "collect_set() shows"),
        ("SELECT g, sort_array(collect_list(array(d))) AS x FROM t GROUP BY g", "collect_list() shows 0.0 and -0.0"),
        ("SELECT g, sort_array(collect_list(struct(d))) AS x FROM t GROUP BY g", "collect_list() shows 0.0 and -0.0"),
        ("SELECT g, listagg(d, ',') WITHIN GROUP (ORDER BY d) AS x FROM t GROUP BY g", "listagg() shows 0.0 and -0.0"),
        ("SELECT `approx_count_distinct`(id) AS a FROM t", "approx_count_distinct() is not exact"),
        ("SELECT kll_sketch_agg_bigint(id) AS a FROM t", "kll_sketch_agg_bigint() is not exact"),
        ("SELECT `percentile_approx`(id, 0.5) AS a FROM t", "percentile_approx() is not exact"),
        ("SELECT sum(d) AS a FROM t", "2:8: sum() adds floating-point numbers"),
        ("SELECT sum(n) AS a FROM t", "2:8: sum() adds floating-point numbers"),
        ("SELECT avg(d) AS a FROM t", "2:8: avg() adds floating-point numbers"),
        ("SELECT id, try_sum(d) OVER (ORDER BY id) AS a FROM t", "try_sum() adds floating-point numbers"),
        ("SELECT stddev(g) AS a FROM t", "stddev() adds floating-point numbers"),
        ("SELECT corr(g, id) AS a FROM t", "corr() adds floating-point numbers"),
        ("SELECT regr_slope(g, id) AS a FROM t", "regr_slope() adds floating-point numbers"),
        # equal values of several spellings
        ("SELECT max(id) AS a FROM t GROUP BY n COLLATE UTF8_LCASE", "2:37: a collation treats different spellings"),
        ("SELECT DISTINCT n COLLATE UNICODE_CI AS a FROM t", "a collation treats different spellings"),
        ("SELECT n COLLATE UTF8_LCASE AS a FROM t INTERSECT SELECT n COLLATE UTF8_LCASE AS a FROM t", "a collation"),
        ("SELECT n COLLATE UTF8_LCASE AS a FROM t UNION SELECT n COLLATE UTF8_LCASE AS a FROM t", "a collation"),
        ("SELECT min(n COLLATE UTF8_LCASE) AS a FROM t", "min() treats different spellings"),
        # a collation that the planner does not see
        ("SELECT id, from_json(n, concat('a STRING COLL', 'ATE UTF8_LCASE')).a AS x FROM t", "2:12: from_json() has"),
        ("SELECT id, from_csv(n, 'a STRING COLL' 'ATE UTF8_LCASE').a AS x FROM t", "2:12: from_csv() has a collation"),
        ("SELECT id, variant_get(parse_json(n), '$.d', concat('string ', 'coll', 'ate unicode')) AS x FROM t", "has a"),
        # what returns arbitrary rows
        ("SELECT id FROM t LIMIT cast(3 AS int)", "LIMIT without ORDER BY returns arbitrary rows"),
        ("SELECT id FROM t SORT BY id LIMIT cast(3 AS int)", "LIMIT without ORDER BY returns arbitrary rows"),
        ("SELECT id FROM (SELECT id FROM t ORDER BY id) LIMIT cast(3 AS int)",
         "LIMIT without ORDER BY returns arbitrary rows"),
        ("SELECT id FROM t OFFSET cast(3 AS int)", "OFFSET without ORDER BY returns arbitrary rows"),
        ("SELECT * FROM IDENTIFIER('elsewhere')", "View is not known"),
    ],
)  # fmt: skip
def test_view_that_is_no_function_of_its_tables_is_refused(
    check: Callable[[str], None], select: str, problem: str
) -> None:
    with pytest.raises(UnsupportedView) as refused:
        check(select)
    assert problem in refused.value.message
    assert refused.value.message.startswith("v.sql:")
    assert refused.value.hint


@pytest.mark.parametrize(
    "select",
    [
        "SELECT id, upper(n) AS n, ts + INTERVAL 1 DAY AS ts, CASE WHEN m > 3 THEN 'a' END AS c FROM t WHERE NOT g = 1",
        "SELECT id FROM t WHERE ts > '2026-01-01' AND date(ts) < date '2026-02-01' AND ts <> 'epoch'",
        "SELECT id, to_timestamp(n, 'yyyy') AS a, CAST(n AS DATE) AS b, from_json(n, 'a string').a AS c FROM t",
        "SELECT id, from_json(n, 'a timestamp', map('timestampFormat', 'yyyy')).a AS c FROM t",
        "SELECT id, from_json(n, 'a STRING COLLATE UTF8_LCASE').a AS x FROM t",
        "SELECT id, CAST(w AS ARRAY<DATE>) AS x, CAST(struct(ts, n) AS STRUCT<a: TIMESTAMP, b: STRING>) AS y,"
        " CAST(array(ts) AS ARRAY<STRING>) AS z, variant_get(parse_json(n), '$.d', 'date') AS d FROM t",
        "SELECT g, sort_array(collect_list(struct(d, id))) AS x, listagg(d) WITHIN GROUP (ORDER BY id) AS y,"
        " sort_array(collect_list(CAST(d AS DECIMAL(20, 4)))) AS z FROM t GROUP BY g",
        "SELECT g, count(*) AS c, sum(id) AS s, avg(g) AS a, avg(m) AS b, max(d) AS x, bool_and(id > 1) AS y,"
        " count(DISTINCT n COLLATE UTF8_LCASE) AS z, median(d) AS w, count_if(id > 1) AS v FROM t GROUP BY g",
        "SELECT g, sort_array(collect_list(id)) AS a, array_sort(collect_set(n)) AS b FROM t GROUP BY g"
        " HAVING size(sort_array(collect_list(id))) > 1",
        "SELECT g, listagg(n) WITHIN GROUP (ORDER BY n) AS a, percentile_disc(0.5) WITHIN GROUP (ORDER BY m) AS b,"
        " mode() WITHIN GROUP (ORDER BY n) AS c FROM t GROUP BY g",
        "SELECT id, first(n) OVER w AS a, lag(n) OVER w AS b, row_number() OVER w AS c, sum(g) OVER w AS d"
        " FROM t WINDOW w AS (PARTITION BY g ORDER BY id)",
        "SELECT a.id, b.n FROM t a LEFT JOIN t b USING (id) WHERE EXISTS (SELECT 1 FROM t c WHERE c.id = a.g)"
        " AND a.id NOT IN (SELECT g FROM t WHERE g IS NOT NULL)",
        "WITH RECURSIVE r AS (SELECT id, 0 AS n FROM t UNION ALL SELECT id, n + 1 FROM r WHERE n < 3) SELECT * FROM r",
        "SELECT id, e FROM t LATERAL VIEW explode(sequence(1, g)) x AS e",
        "SELECT t.id, x.e FROM t, LATERAL explode(array(1, 2)) AS x(e)",
        "SELECT * FROM (SELECT g, n FROM t) PIVOT (max(g) FOR n IN ('a', 'b'))",
        "SELECT g, count(*) AS c FROM t GROUP BY CUBE (g)",
        "SELECT id, g FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY id) = 1",
        "SELECT /*+ BROADCAST(t) */ id FROM t UNION ALL SELECT id FROM range(3)",
        "SELECT session_window(ts, '5 mins').start AS s, count(*) AS c FROM t GROUP BY session_window(ts, '5 mins')",
        "SELECT id, hash(n) AS h, regexp_replace(n, 'a', 'b') AS r, to_json(struct(id, n)) AS j, try_divide(g, 0) AS q"
        " FROM t ORDER BY m, id LIMIT cast(3 AS int) OFFSET 1",
        "SELECT * FROM VALUES (1, 'now'), (2, 'b') AS x(a, b)",
    ],
)  # fmt: skip
def test_view_that_is_a_function_of_its_tables_is_accepted(check: Callable[[str], None], select: str) -> None:
    check(select)


@pytest.mark.parametrize("file", ["order_completed", "order_accepted", "column_names"])
def test_golden_queries_are_understood_by_spark(spark: SparkSession, file: str) -> None:
    session, relations = spark.newSession(), {}
    for number, (name, columns) in enumerate(golden.SCHEMAS.items()):
        relations[name] = f"_cv_input_{number}"
        ddl = ", ".join(f"{column} {SPARK_TYPES.get(kind, 'string')}" for column, kind in columns.items())
        session.createDataFrame([], ddl).createOrReplaceTempView(relations[name])
    for text, expected in golden.cases(golden.FOLDER / f"{file}.sql"):
        if not expected.startswith("-- error"):
            view = golden.compiled(text)
            check_determinism(session.sql(view.query(relations)), view, relations)


def test_functions_of_spark_are_those_that_were_reviewed(spark: SparkSession) -> None:
    """A new function of another Spark is looked at before its line is added: is it a function of its arguments?"""
    java: Any = spark
    registry, found = java._jsparkSession.sessionState().functionRegistry(), set()
    names = registry.listFunction().iterator()
    while names.hasNext():
        name = names.next()
        written = str(registry.lookupFunction(name).get().getClassName())
        found.add(f"{name.funcName()} {written.removeprefix('org.apache.spark.sql.catalyst.expressions.')}")
    reviewed = Path(golden.FOLDER.parent / "spark_functions.txt").read_text().splitlines()
    assert found - set(reviewed) == set()


def test_long_chain_of_conditions_is_checked_without_recursion(check: Callable[[str], None]) -> None:
    check(f"SELECT id FROM t WHERE {' OR '.join(f'id = {number}' for number in range(1200))}")
