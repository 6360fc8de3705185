"""Random views over random tables, as Hypothesis draws them.

The views are SQL that means the same to Spark, DuckDB and Postgres: the order of NULL is written out, names are not
quoted. What only Spark has (explode, LATERAL VIEW, windows of time, ROLLUP over no rows) is drawn for Spark alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tests.unit.incremental.random_tables import NUMBERS, Column, Draws

LITERALS: Final = {
    "int": ["0", "1", "2"],
    "bigint": ["0", "1", "2"],
    "text": ["'a'", "'b'", "''"],
    "decimal": ["0.5", "1.0"],
    "date": ["DATE '2026-01-01'", "DATE '2026-01-02'"],
    "bool": ["TRUE", "FALSE"],
    "double": ["CAST(1.5 AS DOUBLE)", "CAST('NaN' AS DOUBLE)"],
    "time": ["TIMESTAMP '2026-01-01 00:00:00'", "TIMESTAMP '2026-01-01 00:25:00'"],
}
CASTS: Final = {
    "int": "INT",
    "bigint": "BIGINT",
    "text": "STRING",
    "decimal": "DECIMAL(8, 2)",
    "date": "DATE",
    "bool": "BOOLEAN",
    "double": "DOUBLE",
    "time": "TIMESTAMP",
}
JOINS: Final = (
    *("JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN", "comma", "LATERAL"),
    *("SEMI JOIN", "ANTI JOIN"),
)
# Of these, only the columns of the left side are left.
FILTERING: Final = ("SEMI JOIN", "ANTI JOIN")


@dataclass(frozen=True)
class Query:
    """A query and its output columns, written as their names."""

    sql: str
    columns: tuple[Column, ...]
    is_simple: bool = False  # needs no parentheses as a branch of a set operation


@dataclass
class Views:
    """Makes one view. `used` counts the constructs in it. `of_spark`: also those that only Spark has."""

    draws: Draws
    tables: Sequence[tuple[str, tuple[Column, ...]]]
    of_spark: bool = False
    used: Counter[str] = field(default_factory=Counter)
    ctes: list[tuple[str, Query]] = field(default_factory=list)
    named: int = 0

    def fresh(self, prefix: str) -> str:
        self.named += 1
        return f"{prefix}{self.named}"

    def view(self, depth: int) -> Query:
        query = self.query(depth)
        if not self.ctes:
            return query
        texts = []
        for name, cte in self.ctes:
            self.used["CTE"] += 1
            if self.draws.chance(20):
                texts.append(f"{name} ({', '.join(column.name for column in cte.columns)}) AS ({cte.sql})")
            else:
                texts.append(f"{name} AS ({cte.sql})")
        return Query(f"WITH {', '.join(texts)} {query.sql}", query.columns)

    def query(self, depth: int) -> Query:
        query = self.set_operation(depth) if depth > 0 and self.draws.chance(25) else self.select(depth)
        return self.first_rows(query) if self.draws.chance(4) else query

    def first_rows(self, query: Query) -> Query:
        """The first rows of a query, in an order of all of its columns."""
        self.used["ORDER BY LIMIT"] += 1
        order = self.draws.some(query.columns, len(query.columns), len(query.columns))
        words = [f"{each.name} {self.draws.pick(('NULLS FIRST', 'DESC NULLS LAST'))}" for each in order]
        return Query(f"{query.sql} ORDER BY {', '.join(words)} LIMIT {self.draws.number(1, 3)}", query.columns)

    # ---- FROM

    def source(self, depth: int) -> tuple[str, str, tuple[Column, ...]]:
        """An item of FROM, its alias, and its columns by their names."""
        kind = self.draws.pick(("table", "table", "table", "derived", "cte")) if depth > 0 else "table"
        if kind == "derived" and self.draws.chance(15):
            alias, query = self.fresh("q"), self.first_of_table()
            return f"({query.sql}) {alias}", alias, query.columns
        if kind == "derived":
            self.used["derived table"] += 1
            alias, query = self.fresh("q"), self.query(depth - 1)
            names = ""
            columns = query.columns
            if self.draws.chance(15):
                names = f"({', '.join(f'n{number}' for number in range(len(columns)))})"
                columns = tuple(replace(each, text=f"n{n}", name=f"n{n}") for n, each in enumerate(columns))
            return f"({query.sql}) {alias}{names}", alias, columns
        if kind == "cte":
            if self.ctes and self.draws.chance(60):
                self.used["CTE used twice"] += 1
                name, query = self.draws.pick(self.ctes)
            else:
                query = self.query(depth - 1)
                name = self.fresh("cte")
                self.ctes.append((name, query))
            if self.draws.chance(50):
                alias = self.fresh("c")
                return f"{name} {alias}", alias, query.columns
            alias = self.fresh("c")
            return f"{name} AS {alias}", alias, query.columns
        name, columns = self.draws.pick(self.tables)
        alias = self.fresh(name)
        return f"{name} {alias}", alias, columns

    def groups(self) -> tuple[str, str, tuple[Column, ...]]:
        """A derived table with groups of a table, its alias, and its columns by their names."""
        name, columns = self.draws.pick(self.tables)
        inner, alias = self.fresh(name), self.fresh("q")
        query = self.grouped(0, _qualified(inner, columns), f" FROM {name} {inner}")
        return f"({query.sql}) {alias}", alias, query.columns

    def first_of_table(self) -> Query:
        """The first rows of a table, in an order of all of its columns."""
        self.used["first rows below"] += 1
        name, columns = self.draws.pick(self.tables)
        alias = self.fresh(name)
        scope = _qualified(alias, columns)
        where = f" WHERE {self.comparison(scope)}" if self.draws.chance(30) else ""
        order = ", ".join(
            f"{each.text} {self.draws.pick(('NULLS FIRST', 'DESC NULLS LAST'))}"
            for each in self.draws.some(scope, len(scope), len(scope))
        )
        query = self.selected("SELECT ", self.draws.some(scope, 1, 3), f" FROM {name} {alias}{where}")
        return Query(f"{query.sql} ORDER BY {order} LIMIT {self.draws.number(1, 3)}", query.columns)

    def in_parentheses(self, depth: int, item: str, columns: Sequence[Column]) -> tuple[str, list[Column]]:
        """An item of FROM, joined with another one in parentheses; or alone, if no equality joins them."""
        other, alias, more = self.source(depth)
        others = _qualified(alias, more)
        pairs = [(a, b) for a in columns for b in others if _are_equal_types(a.type, b.type)]
        if not pairs:
            return item, list(columns)
        self.used["join in parentheses"] += 1
        kind = self.draws.pick(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"))
        return f"({item} {kind} {other} ON {self.equalities(pairs)})", _joined(kind, columns, others)

    def from_(self, depth: int) -> tuple[str, list[Column], list[str]]:
        """A FROM; its columns; conditions that WHERE must have."""
        text, alias, columns = self.source(depth)
        scope = _qualified(alias, columns)
        where: list[str] = []
        merged: set[str] = set()
        for _ in range(self.draws.pick((0, 0, 1, 1, 1, 2)) if depth > 0 else self.draws.pick((0, 0, 0, 1))):
            kind = self.draws.pick(JOINS)
            if kind == "LATERAL":
                text, scope = self.lateral(depth, text, scope)
                continue
            is_grouped = self.draws.chance(15)
            item, right, columns = self.groups() if is_grouped else self.source(depth - 1)
            others = _qualified(right, columns)
            is_nested = kind != "comma" and self.draws.chance(10)
            if is_nested:
                item, others = self.in_parentheses(depth - 1, item, others)
            pairs = [(a, b) for a in scope for b in others if _are_equal_types(a.type, b.type)]
            if is_grouped:
                pairs = [pair for pair in pairs if not pair[1].is_plain] or pairs
            if not pairs:
                continue
            ambiguous = Counter(each.name for each in scope)
            shared = [
                b
                for b in others
                if ambiguous[b.name] == 1
                and b.name not in merged
                and any(a.name == b.name and _are_equal_types(a.type, b.type) for a in scope)
            ]
            names = {each.name for each in scope} & {each.name for each in others}
            if kind not in ("comma", *FILTERING) and shared and not is_nested and self.draws.chance(30):
                is_natural = not merged and len(names) == len(shared) and max(ambiguous.values()) == 1
                if is_natural and self.draws.chance(40):
                    self.used["NATURAL"] += 1
                    text = f"{text} NATURAL {kind} {item}"
                    using = shared
                else:
                    self.used["USING"] += 1
                    using = self.draws.some(shared, 1, 2)
                    text = f"{text} {kind} {item} USING ({', '.join(each.name for each in using)})"
                merged |= {each.name for each in using}
                self.used[kind] += 1
                both = _joined(kind, scope, others)
                common = [
                    Column(each.name, each.name, _wider(each.type, next(a.type for a in scope if a.name == each.name)))
                    for each in using
                ]
                scope = [*common, *both]
                continue
            condition = self.equalities(pairs)
            if kind == "comma":
                text, where = f"{text}, {item}", [*where, condition]
                if "JOIN" in text:
                    # A comma binds less than JOIN: later joins see the last item only.
                    self.used["comma"] += 1
                    return text, [*scope, *others], where
            else:
                if self.draws.chance(25):
                    condition += f" AND {self.comparison([*scope, *others])}"
                    self.used["ON with more"] += 1
                text = f"{text} {kind} {item} ON {condition}"
            self.used[kind] += 1
            scope = scope if kind in FILTERING else _joined(kind, scope, others)
            if kind == "comma":
                return text, scope, where
            if self.draws.chance(5):
                self.used["parentheses that change nothing"] += 1
                text = f"({text})"
        if self.of_spark and self.draws.chance(12):
            text, scope = self.lateral_view(text, scope)
        return text, scope, where

    def lateral(self, depth: int, text: str, scope: list[Column]) -> tuple[str, list[Column]]:
        is_left = self.draws.chance(40)
        self.used["LEFT LATERAL" if is_left else "LATERAL"] += 1
        alias = self.fresh("l")
        inner, _ = self.correlated(depth - 1, scope, "lateral")
        joined = f"{text} LEFT JOIN LATERAL ({inner.sql}) {alias} ON TRUE"
        if not is_left:
            joined = f"{text} CROSS JOIN LATERAL ({inner.sql}) {alias}"
        return joined, [*scope, *_qualified(alias, inner.columns)]

    def lateral_view(self, text: str, scope: list[Column]) -> tuple[str, list[Column]]:
        """A FROM with the elements of an array for each row, which OUTER keeps if there are none; Spark alone."""
        self.used["LATERAL VIEW"] += 1
        array, type_ = self.array(scope)
        alias, outer = self.fresh("v"), self.draws.pick(("", "OUTER "))
        value = Column(f"{alias}.element", "element", type_, is_plain=False)
        if self.draws.chance(30):
            place = Column(f"{alias}.place", "place", "int", is_plain=False)
            return f"{text} LATERAL VIEW {outer}posexplode({array}) {alias} AS place, element", [*scope, place, value]
        return f"{text} LATERAL VIEW {outer}explode({array}) {alias} AS element", [*scope, value]

    def array(self, scope: Sequence[Column]) -> tuple[str, str]:
        """An array of values of a row, and the type of its elements; it may be empty, or have NULL; Spark alone."""
        column = self.draws.pick(scope)
        other = self.draws.pick([each for each in scope if each.type == column.type])
        if column.type == "text" and self.draws.chance(50):
            return f"split({column.text}, 'a')", "text"
        array = f"array({column.text}, {other.text})"
        return self.draws.pick((array, f"array_compact({array})")), column.type

    def equalities(self, pairs: Sequence[tuple[Column, Column]]) -> str:
        texts = []
        plain = [pair for pair in pairs if all(each.is_plain for each in pair)]
        for one, other in self.draws.some(plain if plain and self.draws.chance(85) else pairs, 1, 2):
            equals = "IS NOT DISTINCT FROM" if self.draws.chance(10) else "="
            self.used[equals] += 1
            first, second = (one, other) if self.draws.chance(60) else (other, one)
            texts.append(f"{first.text} {equals} {second.text}")
        return " AND ".join(texts)

    # ---- expressions

    def comparison(self, scope: Sequence[Column]) -> str:
        column = self.draws.pick(scope)
        kind = self.draws.pick(("literal", "null", "column"))
        others = [each for each in scope if _are_equal_types(each.type, column.type) and each is not column]
        if kind == "column" and others:
            return f"{column.text} {self.draws.pick(('=', '<>', '<='))} {self.draws.pick(others).text}"
        if kind == "null":
            return f"{column.text} IS {self.draws.pick(('NOT ', ''))}NULL"
        return f"{column.text} {self.draws.pick(('=', '<>', '<', '>='))} {self.draws.pick(LITERALS[column.type])}"

    def condition(self, depth: int, scope: Sequence[Column]) -> str:
        kinds = ["comparison", "comparison"]
        if depth > 0:
            kinds += ["exists", "not exists", "in", "scalar", "not", "or", "and", "not in"]
        kind = self.draws.pick(kinds)
        if kind == "comparison":
            return self.comparison(scope)
        if kind == "not":
            return f"NOT ({self.condition(depth - 1, scope)})"
        if kind in ("or", "and"):
            return f"({self.condition(depth - 1, scope)} {kind.upper()} {self.condition(depth - 1, scope)})"
        if kind in ("in", "not in"):
            return self.in_(depth, scope, kind.upper())
        if kind == "scalar":
            inner, value = self.correlated(depth - 1, scope, "scalar")
            others = [each for each in scope if _are_equal_types(each.type, value)]
            self.used["scalar subquery"] += 1
            return f"{self.draws.pick(others).text} >= ({inner.sql})" if others else f"({inner.sql}) IS NULL"
        self.used[kind.upper()] += 1
        inner, _ = self.correlated(depth - 1, scope, "exists")
        return f"{kind.upper()} ({inner.sql})"

    def in_(self, depth: int, scope: Sequence[Column], word: str) -> str:
        self.used[word] += 1
        column = self.draws.pick(scope)
        if self.draws.chance(60):
            query = self.first_of_table() if self.draws.chance(10) else self.query(depth - 1)
            same = [each for each in query.columns if _are_equal_types(each.type, column.type)]
            if same:
                alias = self.fresh("i")
                if self.draws.chance(40) and len(query.columns) == 1:
                    return f"{column.text} {word} ({query.sql})"
                name = self.draws.pick(same).name
                where = f" WHERE {name} IS NOT NULL" if self.draws.chance(50) else ""
                return f"{column.text} {word} (SELECT {name} FROM ({query.sql}) {alias}{where})"
        inner, _ = self.correlated(depth - 1, scope, "in", column.type)
        return f"{column.text} {word} ({inner.sql})"

    def correlated(self, depth: int, scope: Sequence[Column], use: str, wanted: str = "") -> tuple[Query, str]:
        """A subquery with an equality between its columns and those around it, and the type of its column.

        Some do not depend on what is around them.
        """
        text, inner, where = self.from_(max(depth, 0))
        names = {each.name for each in inner}
        scope = [each for each in scope if each.text not in names]  # a name after USING would be that of the subquery
        if use in ("exists", "scalar") and self.draws.chance(10):
            self.used["uncorrelated subquery"] += 1
            scope = inner
        pairs = [(a, b) for a in scope for b in inner if scope is not inner and _are_equal_types(a.type, b.type)]
        conditions = list(where)
        if scope is not inner and self.draws.chance(12):
            self.used["correlation by expressions"] += 1
            conditions.append(self.equal_expressions(inner, scope))
        elif pairs:
            conditions.append(self.equalities(pairs))
        if self.draws.chance(30):
            conditions.append(self.condition(depth, inner))
        if self.draws.chance(20):
            conditions.append(self.comparison([*inner, *scope]))
        after = f" FROM {text}{' WHERE ' + ' AND '.join(conditions) if conditions else ''}"
        column = self.draws.pick([each for each in inner if not wanted or _are_equal_types(each.type, wanted)] or inner)
        if wanted and not _are_equal_types(column.type, wanted):
            return Query(f"SELECT CAST(NULL AS {CASTS[wanted]}){after}", ()), wanted
        if use == "exists":
            return Query(f"SELECT 1{after}", ()), "int"
        if use == "in":
            return Query(f"SELECT {column.text}{after}", ()), column.type
        if use == "lateral":
            if self.draws.chance(50):
                alias = self.fresh("o")
                return Query(
                    f"SELECT count(*) AS {alias}{after}", (Column(alias, alias, "bigint", is_plain=False),)
                ), "bigint"
            chosen = self.draws.some(inner, 1, 2)
            items = [(each, self.fresh("o")) for each in chosen]
            columns = tuple(Column(name, name, each.type, is_plain=False) for each, name in items)
            if self.draws.chance(30):
                self.used["LIMIT in LATERAL"] += 1
                after += f" ORDER BY {', '.join(f'{each.text} NULLS FIRST' for each in inner)} LIMIT 1"
            return Query(f"SELECT {', '.join(f'{each.text} AS {name}' for each, name in items)}{after}", columns), ""
        function = self.draws.pick(("max", "count", "min"))
        if column.type == "bool":
            function = "count"
        return Query(f"SELECT {function}({column.text}){after}", ()), "bigint" if function == "count" else column.type

    def equal_expressions(self, one: Sequence[Column], other: Sequence[Column]) -> str:
        """An equality of an expression over some columns and a column of others, or an expression over these."""
        text, type_ = self.function(self.draws.pick(("coalesce", "plus", "lower", "trunc")), one)
        others = [each.text for each in other if _are_equal_types(each.type, type_)]
        texts = [each.text for each in other if each.type == type_ == "text"]
        others += [f"upper({each})" for each in texts]
        return f"{text} = {self.draws.pick(others)}" if others else f"{text} IS NOT NULL"

    def value(self, depth: int, scope: Sequence[Column]) -> Column:
        """An expression that is not a column."""
        text, type_ = self.expression(depth, scope)
        return Column(text, "", type_, is_plain=False)

    def expression(self, depth: int, scope: Sequence[Column]) -> tuple[str, str]:
        kind = self.draws.pick(("coalesce", "case", "literal", "plus", "subquery", "exists", "in", "lower", "trunc"))
        if kind == "subquery" and depth > 0:
            self.used["scalar subquery"] += 1
            inner, type_ = self.correlated(depth - 1, scope, "scalar")
            return f"({inner.sql})", type_
        if kind == "exists" and depth > 0:
            self.used["EXISTS as a value"] += 1
            inner, _ = self.correlated(depth - 1, scope, "exists")
            return f"EXISTS ({inner.sql})", "bool"
        if kind == "in" and depth > 0:
            self.used["IN as a value"] += 1
            return f"({self.in_(depth, scope, self.draws.pick(('IN', 'NOT IN')))})", "bool"
        if kind == "literal":
            type_ = self.draws.pick(("int", "text", "date", "bool"))
            return self.draws.pick(LITERALS[type_]), type_
        return self.function(kind, scope)

    def function(self, kind: str, scope: Sequence[Column]) -> tuple[str, str]:
        """A function of columns of a row, and its type."""
        column = self.draws.pick(scope)
        if kind == "case":
            self.used["CASE"] += 1
            return f"CASE WHEN {self.comparison(scope)} THEN {column.text} END", column.type
        if kind == "trunc" and column.type == "time":
            return f"date_trunc('{self.draws.pick(('day', 'hour'))}', {column.text})", "time"
        if kind == "plus" and column.type in NUMBERS:
            return f"CAST({column.text} + 1 AS BIGINT)", "bigint"
        if kind == "lower" and column.type == "text":
            return f"upper({column.text})", "text"
        return f"coalesce({column.text}, {self.draws.pick(LITERALS[column.type])})", column.type

    # ---- SELECT

    def select(self, depth: int) -> Query:
        text, scope, where = self.from_(depth)
        if self.draws.chance(40):
            where = [*where, self.condition(depth, scope)]
        after = f" FROM {text}{' WHERE ' + ' AND '.join(where) if where else ''}"
        shape = self.draws.pick(("plain", "plain", "plain", "group", "group", "distinct", "window", "window"))
        if shape == "group":
            return self.grouped(depth, scope, after)
        if shape == "window":
            return self.windowed(depth, scope, after)
        names = Counter(each.name for each in scope)
        if max(names.values()) == 1 and self.draws.chance(15):
            self.used["star"] += 1
            distinct = "DISTINCT " if shape == "distinct" else ""
            return Query(f"SELECT {distinct}*{after}", tuple(replace(each, text=each.name) for each in scope))
        items = [self.draws.column(scope), *self.draws.some(scope, 0, 3)]
        items = list(dict.fromkeys(items))
        if self.draws.chance(25):
            items.append(self.value(depth, scope))
            if self.draws.chance(25):
                self.used["expression alone"] += 1
                del items[:-1]
        if self.of_spark and shape == "plain" and self.draws.chance(8):
            self.used["explode"] += 1
            array, type_ = self.array(scope)
            items.append(Column(f"{self.draws.pick(('explode', 'explode_outer'))}({array})", "", type_, is_plain=False))
        if shape == "distinct":
            self.used["DISTINCT"] += 1
        return self.selected("SELECT DISTINCT " if shape == "distinct" else "SELECT ", items, after)

    def selected(self, start: str, items: Sequence[Column], after: str) -> Query:
        """A SELECT of columns and expressions."""
        found, texts, taken = [], [], set[str]()
        for item in items:
            text, own = item.text, item.name
            if own and own not in taken and self.draws.chance(60):
                name = own
                texts.append(text if self.draws.chance(70) else f"{text} AS {own}")
            else:
                # A name that other columns may have too: an alias that shadows a column.
                free = [
                    each for each in ("id", "k", "g", "h") if each not in taken and each not in {i.name for i in items}
                ]
                name = self.draws.pick(free) if free and self.draws.chance(15) else self.fresh("o")
                texts.append(f"{text} AS {name}")
            taken.add(name)
            found.append(replace(item, text=name, name=name))
        return Query(f"{start}{', '.join(texts)}{after}", tuple(found), is_simple=True)

    def grouped(self, depth: int, scope: Sequence[Column], after: str) -> Query:
        if self.draws.chance(8):
            return self.total(scope, after)
        self.used["GROUP BY"] += 1
        if self.draws.chance(8):
            return self.grouping_sets(scope, after)
        items: list[Column] = []
        groups: list[str] = []
        for column in dict.fromkeys([self.draws.column(scope), *self.draws.some(scope, 0, 2)]):
            if self.draws.chance(90):
                items.append(column)
                groups.append(str(len(items)) if self.draws.chance(15) else column.text)
            else:
                groups.append(column.text)
        if self.draws.chance(20):
            self.used["group expression"] += 1
            text, type_ = self.function(self.draws.pick(("coalesce", "case", "plus", "lower", "trunc")), scope)
            items.append(Column(text, "", type_, is_plain=False))
            groups.append(text)
            if self.draws.chance(30):
                del items[:-1], groups[:-1]  # by computed values only
        times = [each for each in scope if each.type == "time"]
        if self.of_spark and times and self.draws.chance(25):
            self.used["time window"] += 1
            length = self.draws.pick(("'30 minutes'", "'1 hour', '30 minutes'", "'1 day'"))
            function = "window"
            if self.draws.chance(30):
                self.used["session_window"] += 1
                function, length = "session_window", "'40 minutes'"
            items.append(Column(f"`{function}`.start", "", "time", is_plain=False))
            groups.append(f"`{function}`({self.draws.pick(times).text}, {length})")
        for _ in range(self.draws.number(0 if items else 1, 2)):
            text, type_ = self.aggregate(scope)
            items.append(Column(text, "", type_, is_plain=False))
        return self.selected("SELECT ", items, f"{after} GROUP BY {', '.join(groups)}{self.having(25)}")

    def grouping_sets(self, scope: Sequence[Column], after: str) -> Query:
        """Groups by several sets of columns. Only Spark has no row for the set of no column over no rows."""
        columns = list(dict.fromkeys([self.draws.column(scope), *self.draws.some(scope, 0, 1)]))
        if self.draws.chance(25):
            self.used["computed group of sets"] += 1
            text, type_ = self.function(self.draws.pick(("coalesce", "lower", "trunc", "plus")), scope)
            columns = list(dict.fromkeys([*columns[:1], Column(text, "", type_, is_plain=False)]))
        names = ", ".join(each.text for each in columns)
        kind = self.draws.pick(("GROUPING SETS", "ROLLUP", "CUBE") if self.of_spark else ("GROUPING SETS",))
        self.used[kind] += 1
        sets = f"({names})"
        if kind == "GROUPING SETS":
            sets = f"(({names}), ({columns[0].text}))" if len(columns) > 1 else f"(({names}))"
        by = f"{kind} {sets}"
        if self.of_spark and self.draws.chance(40):
            self.used["sets behind their columns"] += 1
            by = f"{names} GROUPING SETS {sets}" if kind == "GROUPING SETS" else f"{names} WITH {kind}"
        items = [replace(each, is_plain=False) for each in columns]
        level = (f"grouping_id({names})", "bigint")
        found = [level, *self.totals(scope)]
        if self.draws.chance(50):
            self.used["stored totals"] += 1
            del found[: self.draws.number(1, 2)]
        items += [Column(text, "", type_, is_plain=False) for text, type_ in found]
        return self.selected("SELECT ", items, f"{after} GROUP BY {by}{self.having(25)}")

    def total(self, scope: Sequence[Column], after: str) -> Query:
        """One row of totals over all rows; none if its HAVING does not hold."""
        self.used["total"] += 1
        found = self.totals(scope)
        if self.draws.chance(60):
            self.used["stored totals"] += 1
            found = [(f"coalesce({text}, 0) + 1", type_) for text, type_ in found]
        return self.selected(
            "SELECT ", [Column(text, "", type_, is_plain=False) for text, type_ in found], after + self.having(40)
        )

    def having(self, percent: int) -> str:
        if not self.draws.chance(percent):
            return ""
        self.used["HAVING"] += 1
        return self.draws.pick((" HAVING count(*) > 1", " HAVING count(*) < 2"))

    def totals(self, scope: Sequence[Column]) -> list[tuple[str, str]]:
        """Counts and sums that ADD can keep."""
        numbers = [each for each in scope if each.type in NUMBERS]
        found = [("count(*)", "bigint")]
        for column in self.draws.some(numbers, 0, 1):
            found += [(f"CAST(sum({column.text}) AS BIGINT)", "bigint"), (f"count({column.text})", "bigint")]
        return found

    def aggregate(self, scope: Sequence[Column]) -> tuple[str, str]:
        column = self.draws.pick(scope)
        kind = self.draws.pick(("count(*)", "max", "count distinct", "filter", "sum", "list"))
        texts = [each for each in scope if each.type == "text"]
        if kind == "list" and texts:
            self.used["ordered list"] += 1
            return f"array_join(sort_array(collect_list({self.draws.pick(texts).text})), ',')", "text"
        if kind == "sum" and column.type in NUMBERS:
            return f"CAST(sum({column.text}) AS BIGINT)", "bigint"
        if kind == "max" and column.type != "bool":
            return f"{self.draws.pick(('max', 'min'))}({column.text})", column.type
        if kind == "count distinct":
            self.used["count(DISTINCT)"] += 1
            return f"count(DISTINCT {column.text})", "bigint"
        if kind == "filter":
            self.used["FILTER"] += 1
            return f"count(*) FILTER (WHERE {self.comparison(scope)})", "bigint"
        return "count(*)", "bigint"

    def windowed(self, depth: int, scope: Sequence[Column], after: str) -> Query:
        everything = ", ".join(f"{each.text} NULLS FIRST" for each in scope)
        order = self.draws.pick(scope)
        parts = list(dict.fromkeys([self.draws.column(scope), *self.draws.some(scope, 0, 1)]))
        partition = f"PARTITION BY {', '.join(each.text for each in parts)}"
        by_order = f"{partition} ORDER BY {order.text} {self.draws.pick(('DESC NULLS LAST', 'NULLS FIRST'))}"
        total = f"{by_order}, {everything}"
        value = self.draws.pick(scope)
        kind = self.draws.pick(("row_number", "rank", "sum", "lag", "count"))
        self.used[f"window {kind}"] += 1
        text, type_ = {
            "row_number": (f"row_number() OVER ({total})", "int"),
            "rank": (f"rank() OVER ({by_order})", "int"),
            "sum": (f"CAST(sum({value.text}) OVER ({by_order}) AS BIGINT)", "bigint"),
            "lag": (f"lag({value.text}) OVER ({total})", value.type),
            "count": (f"count({value.text}) OVER ({partition})", "bigint"),
        }[kind if kind != "sum" or value.type in NUMBERS else "count"]
        items = list(dict.fromkeys([*parts[: self.draws.number(0, 2)], *self.draws.some(scope, 1, 2)]))
        place = Column(text, "", type_, is_plain=False)
        if kind == "row_number" and self.draws.chance(50):
            # The rows that it selects must not depend on which one of equal rows is first.
            self.used["QUALIFY"] += 1
            return self.selected("SELECT ", items, f"{after} QUALIFY {text} <= {self.draws.number(1, 2)}")
        if kind == "row_number" and self.draws.chance(50):
            self.used["top-k"] += 1
            inner, alias = self.selected("SELECT ", [*items, place], after), self.fresh("k")
            outer = _qualified(alias, inner.columns)
            item = f"({inner.sql}) {alias}"
            if self.draws.chance(25):
                item = alias
                self.ctes.append((alias, inner))
            where = f" FROM {item} WHERE {outer[-1].text} <= {self.draws.number(1, 2)}"
            return self.selected("SELECT ", outer if self.draws.chance(50) else outer[:-1], where)
        places = [place]
        if self.draws.chance(25):
            self.used["window by another column"] += 1
            counted = f"count({value.text}) OVER (PARTITION BY {self.draws.column(scope).text})"
            places.append(Column(counted, "", "bigint", is_plain=False))
        return self.selected("SELECT ", [*items, *places], after)

    # ---- set operations

    def set_operation(self, depth: int) -> Query:
        word = self.draws.pick(("UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"))
        left = self.query(depth - 1)
        right = self.like(depth - 1, left.columns)
        self.used[word] += 1
        columns = tuple(replace(a, type=_wider(a.type, b)) for a, b in zip(left.columns, right[1], strict=True))
        one = left.sql if left.is_simple and self.draws.chance(50) else f"({left.sql})"
        return Query(f"{one} {word} {right[0]}", columns)

    def like(self, depth: int, wanted: Sequence[Column]) -> tuple[str, list[str]]:
        """A branch of a set operation: a SELECT with columns of these types."""
        if self.draws.chance(8):
            self.used["constant branch"] += 1
            return (
                f"SELECT {', '.join(f'CAST({self.draws.pick(LITERALS[c.type])} AS {CASTS[c.type]})' for c in wanted)}",
                [c.type for c in wanted],
            )
        text, scope, where = self.from_(max(depth, 0))
        if self.draws.chance(30):
            where = [*where, self.condition(depth, scope)]
        items, types = [], []
        for column in wanted:
            same = [each for each in scope if _are_equal_types(each.type, column.type)]
            if same and self.draws.chance(90):
                named = [each for each in same if each.name == column.name]
                chosen = self.draws.pick(named or same)
                # Spark cannot plan INTERSECT ALL and EXCEPT ALL over a column that a branch has twice under one name.
                again = f" AS again_{len(items)}" if chosen.text in items else ""
                items.append(chosen.text + again)
                types.append(chosen.type)
            else:
                items.append(f"CAST({self.draws.pick(LITERALS[column.type])} AS {CASTS[column.type]})")
                types.append(column.type)
        return f"SELECT {', '.join(items)} FROM {text}{' WHERE ' + ' AND '.join(where) if where else ''}", types


def _qualified(alias: str, columns: Sequence[Column]) -> list[Column]:
    return [replace(each, text=f"{alias}.{each.name}") for each in columns]


def _joined(kind: str, left: Sequence[Column], right: Sequence[Column]) -> list[Column]:
    """The columns of a join: those of a side that may be missing are not plain."""
    one, other = kind.startswith("RIGHT"), kind.startswith("LEFT")
    return [
        *(replace(each, is_plain=False) if one else each for each in left),
        *(replace(each, is_plain=False) if other else each for each in right),
    ]


def _are_equal_types(one: str, other: str) -> bool:
    return one == other or (one in NUMBERS and other in NUMBERS)


def _wider(one: str, other: str) -> str:
    return "bigint" if "bigint" in (one, other) else one
