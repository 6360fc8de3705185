"""Where Spark SQL and Postgres give different answers for the same text, as `explain` and `check` report it.

Each difference is proven by cases in tests/dialect_cases.py, which run on both engines; docs/dialect.md is generated
from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class DialectDifference:
    """A difference between the engines: what each does, and how to write what Postgres does."""

    name: str
    spark: str
    postgres: str
    write: str


@dataclass(frozen=True)
class Note:
    """A place in a view where the engines differ; `place` is `file:line:column`, `fragment` the text there."""

    place: str
    fragment: str
    difference: DialectDifference

    def problem(self) -> str:
        """Return what differs, in one line."""
        return f'{self.place}: "{self.fragment}": Spark {self.difference.spark}; Postgres {self.difference.postgres}'


DIFFERENCES: Final = {
    difference.name: difference
    for difference in (
        DialectDifference(
            "null order",
            "puts NULL first in ascending order",
            "puts NULL last",
            "write NULLS LAST (with DESC: NULLS FIRST)",
        ),
        DialectDifference("integer division", "gives a fraction for integers", "gives a whole number", "write div"),
        DialectDifference(
            "backslash",
            "reads a backslash in a literal as an escape",
            "keeps the backslash",
            r"write r'^\d+$', or '^\\d+$'",
        ),
        DialectDifference(
            "double quotes",
            "reads double quotes as a string",
            "reads them as a column's name",
            "write the name in backticks, or without quotes",
        ),
        DialectDifference("day of week", "counts Sunday as 1", "counts Sunday as 0", "write dayofweek(x) - 1"),
        DialectDifference(
            "rounding of floats",
            "rounds half away from zero",
            "rounds half of a float to the even number",
            "write rint(x), or round a decimal",
        ),
        DialectDifference(
            "cast to integer",
            "truncates the fraction",
            "rounds",
            "write CAST(round(x) AS INT) for a decimal, CAST(rint(x) AS INT) for a float",
        ),
        DialectDifference(
            "decimal without digits",
            "reads DECIMAL as DECIMAL(10, 0)",
            "keeps every digit",
            "write precision and scale, as DECIMAL(38, 10)",
        ),
        DialectDifference("float", "reads FLOAT as 4 bytes", "reads FLOAT as 8 bytes", "write DOUBLE"),
        DialectDifference(
            "length in a cast",
            "keeps the whole text in CAST(x AS VARCHAR(n))",
            "truncates the text",
            "write left(x, n)",
        ),
        DialectDifference(
            "numbers as text",
            "prints floats as 1.0 and 1.0E10",
            "prints 1 and 10000000000",
            "cast to a decimal, then to STRING",
        ),
        DialectDifference(
            "order of text",
            "orders texts by their bytes",
            "orders them by the database's collation",
            'nothing if the collation is C; else write COLLATE "C" in Postgres to have what Spark answers',
        ),
        DialectDifference(
            "concat of NULL", "gives NULL for concat() with a NULL", "ignores NULL", "write concat_ws('', ...)"
        ),
        DialectDifference(
            "substring",
            "counts a negative start from the end, and reads 0 as 1",
            "starts before the first character",
            "write a start of 1 or more",
        ),
        DialectDifference("array index", "counts elements from 0", "counts them from 1", "write element_at(x, n)"),
        DialectDifference(
            "initcap",
            "begins a word after a space",
            "begins a word after anything but a letter or digit",
            "nothing: Spark has no function that splits words as Postgres does",
        ),
        DialectDifference(
            "regexp_replace",
            "replaces every match",
            "replaces the first match",
            "write regexp_replace(x, pattern, text, 'g') in Postgres to have what Spark answers",
        ),
        DialectDifference(
            "log", "reads log(x) as the natural logarithm", "reads log(x) as the logarithm to base 10", "write log10(x)"
        ),
        DialectDifference("power", "reads ^ as bitwise exclusive or", "reads ^ as the power", "write power(x, y)"),
        DialectDifference(
            "avg of integers", "gives a float", "gives a numeric", "write avg(CAST(x AS DECIMAL(20, 0)))"
        ),
        DialectDifference(
            "digits of a product",
            "drops decimals of a product with more than 38 digits",
            "keeps every digit",
            "cast both sides to fewer digits",
        ),
        DialectDifference(
            "digits of a quotient",
            "gives a quotient of decimals the scale of its types",
            "gives it some 16 significant digits or more",
            "round both to the digits that count",
        ),
        DialectDifference(
            "order in arrays",
            "puts NULL first in sort_array()",
            "puts NULL last by array_agg(x ORDER BY x)",
            "write array_sort(x)",
        ),
    )
}
