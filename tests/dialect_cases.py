"""Expressions for which Spark and Postgres give different answers, by the differences of cdc_views/plan/dialect.py.

tests/spark/test_dialect.py asks both engines. docs/dialect.md is generated from these cases
(tests/unit/test_dialect_page.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Case:
    """`postgres` and `spark` look alike, and give different answers.

    `in_spark` gives in Spark the answer of `postgres`; `in_postgres` gives in Postgres the answer of `spark`.
    """

    difference: str
    postgres: str
    spark: str
    in_spark: str = ""
    in_postgres: str = ""


_NULLS: Final = "FROM (VALUES (1), (NULL), (2)) AS t(v)"

CASES: Final = (
    Case("null order", f"(SELECT v {_NULLS} ORDER BY v LIMIT 1)", f"(SELECT v {_NULLS} ORDER BY v LIMIT 1)",
         f"(SELECT v {_NULLS} ORDER BY v NULLS LAST LIMIT 1)", f"(SELECT v {_NULLS} ORDER BY v NULLS FIRST LIMIT 1)"),
    Case("null order", f"(SELECT v {_NULLS} ORDER BY v DESC LIMIT 1)", f"(SELECT v {_NULLS} ORDER BY v DESC LIMIT 1)",
         f"(SELECT v {_NULLS} ORDER BY v DESC NULLS FIRST LIMIT 1)",
         f"(SELECT v {_NULLS} ORDER BY v DESC NULLS LAST LIMIT 1)"),
    Case("null order", f"(SELECT sum(n * v) FROM (SELECT v, row_number() OVER (ORDER BY v) AS n {_NULLS}) x)",
         f"(SELECT sum(n * v) FROM (SELECT v, row_number() OVER (ORDER BY v) AS n {_NULLS}) x)",
         f"(SELECT sum(n * v) FROM (SELECT v, row_number() OVER (ORDER BY v NULLS LAST) AS n {_NULLS}) x)"),
    Case("integer division", "7 / 2", "7 / 2", "7 div 2", "7 / 2.0"),
    Case("integer division", "-7 / 2", "-7 / 2", "-7 div 2", "-7 / 2.0"),
    Case("backslash", r"'42' ~ '^\d+$'", r"'42' RLIKE '^\d+$'", r"'42' RLIKE r'^\d+$'", "'42' ~ '^d+$'"),
    Case("backslash", r"length('a\tb')", r"length('a\tb')", r"length(r'a\tb')", r"length(E'a\tb')"),
    Case("double quotes", '(SELECT max("n") FROM (VALUES (1)) AS t(n))', '(SELECT max("n") FROM (VALUES (1)) AS t(n))',
         "(SELECT max(`n`) FROM (VALUES (1)) AS t(n))", "(SELECT max('n') FROM (VALUES (1)) AS t(n))"),
    Case("day of week", "extract(dow FROM date '2026-11-22')", "extract(dow FROM date '2026-11-22')",
         "dayofweek(date '2026-11-22') - 1", "extract(dow FROM date '2026-11-22') + 1"),
    Case("rounding of floats", "round(CAST(0.5 AS double precision))", "round(CAST(0.5 AS DOUBLE))",
         "rint(CAST(0.5 AS DOUBLE))", "round(CAST(0.5 AS numeric))"),
    Case("cast to integer", "CAST(1.9 AS int)", "CAST(1.9 AS INT)", "CAST(round(1.9) AS INT)",
         "CAST(trunc(1.9) AS int)"),
    Case("cast to integer", "CAST(CAST(1.5 AS double precision) AS int)", "CAST(CAST(1.5 AS DOUBLE) AS INT)",
         "CAST(rint(CAST(1.5 AS DOUBLE)) AS INT)"),
    Case("decimal without digits", "CAST('1.5' AS decimal)", "CAST('1.5' AS DECIMAL)", "CAST('1.5' AS DECIMAL(38, 10))",
         "CAST('1.5' AS decimal(10, 0))"),
    Case("float", "CAST('0.1' AS float) = CAST('0.1' AS double precision)",
         "CAST('0.1' AS FLOAT) = CAST('0.1' AS DOUBLE)", "CAST('0.1' AS DOUBLE) = CAST('0.1' AS DOUBLE)",
         "CAST('0.1' AS real) = CAST('0.1' AS double precision)"),
    Case("length in a cast", "CAST('abcdef' AS varchar(3))", "CAST('abcdef' AS VARCHAR(3))", "left('abcdef', 3)",
         "CAST('abcdef' AS varchar)"),
    Case("numbers as text", "CAST(CAST(1 AS double precision) AS text)", "CAST(CAST(1 AS DOUBLE) AS STRING)",
         "CAST(CAST(CAST(1 AS DOUBLE) AS DECIMAL(38, 0)) AS STRING)"),
    Case("order of text", "'a' < ('B' COLLATE \"und-x-icu\")", "'a' < 'B'", "'a' COLLATE UNICODE < 'B'",
         "'a' < ('B' COLLATE \"C\")"),
    Case("order of text", "(SELECT max(v COLLATE \"und-x-icu\") FROM (VALUES ('a'), ('B')) AS t(v))",
         "(SELECT max(v) FROM (VALUES ('a'), ('B')) AS t(v))", "",
         "(SELECT max(v COLLATE \"C\") FROM (VALUES ('a'), ('B')) AS t(v))"),
    Case("concat of NULL", "concat('a', NULL)", "concat('a', NULL)", "concat_ws('', 'a', NULL)", "'a' || NULL"),
    Case("substring", "substring('abcdef', -1, 3)", "substring('abcdef', -1, 3)", "substring('abcdef', 1, 1)",
         "right('abcdef', 1)"),
    Case("substring", "substring('abcdef', 0, 3)", "substring('abcdef', 0, 3)", "substring('abcdef', 1, 2)",
         "substring('abcdef', 1, 3)"),
    Case("array index", "(ARRAY[10, 20, 30])[1]", "array(10, 20, 30)[1]", "element_at(array(10, 20, 30), 1)",
         "(ARRAY[10, 20, 30])[2]"),
    Case("initcap", "initcap('o-neil')", "initcap('o-neil')"),
    Case("regexp_replace", "regexp_replace('aaa', 'a', 'b')", "regexp_replace('aaa', 'a', 'b')", "",
         "regexp_replace('aaa', 'a', 'b', 'g')"),
    Case("log", "log(100)", "log(100)", "log10(100)", "ln(100)"),
    Case("power", "2 ^ 3", "2 ^ 3", "power(2, 3)", "2 # 3"),
    Case("avg of integers", "(SELECT CAST(avg(v) AS text) FROM (VALUES (1), (2)) AS t(v))",
         "(SELECT CAST(avg(v) AS STRING) FROM (VALUES (1), (2)) AS t(v))"),
    Case("digits of a product", "CAST('1.0000000001' AS numeric(38, 10)) * CAST('1.0000000001' AS numeric(38, 10))",
         "CAST('1.0000000001' AS DECIMAL(38, 10)) * CAST('1.0000000001' AS DECIMAL(38, 10))",
         "CAST('1.0000000001' AS DECIMAL(18, 10)) * CAST('1.0000000001' AS DECIMAL(18, 10))"),
    Case("digits of a quotient", "1.00 / 3", "1.00 / 3", "", "round(1.00 / 3, 6)"),
    Case("order in arrays", "(SELECT (array_agg(v ORDER BY v))[1] FROM (VALUES (2), (NULL), (1)) AS t(v))",
         "element_at(sort_array(array(2, NULL, 1)), 1)", "element_at(array_sort(array(2, NULL, 1)), 1)"),
)  # fmt: skip

# Often thought to differ, but both engines give the same answer for the same text.
SAME: Final = (
    "-7 % 3", "mod(-7, 3)", "greatest(1, NULL)", "least(NULL, 2)", "'a' || NULL", "round(2.5)", "round(-2.5)",
    "'abc' LIKE 'a%'", "'a%c' LIKE 'a\\%c'", "nullif(1, 1)", "coalesce(NULL, 2)",
    "1 IN (2, NULL)",
    "substring('abcdef', 2, 3)", "length('ünï')", "trim('  a ')", "upper('a')", "CAST('2024-02-29' AS date)",
    "extract(week FROM date '2024-12-30')", "extract(year FROM date '2024-12-30')", "'b' BETWEEN 'a' AND 'c'",
    "(SELECT sum(v) FROM (VALUES (1)) AS t(v) WHERE v > 1)",
    "position('b' IN 'abc')",
    "date_trunc('week', timestamp '2024-05-05 12:00:00')", "split_part('a,b', ',', 2)", "lpad('a', 3, 'x')", "abs(-2)",
)  # fmt: skip
