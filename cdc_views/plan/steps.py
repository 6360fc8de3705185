"""The steps of a view's query, in words: what each does with the rows of the steps below it, and what identifies its
rows.

    select o.user_id, count(*) AS orders; one row for each (user_id)
      group the rows by o.user_id; one row for each (o.user_id)
        join on i.order_id = o.id; one row for each (i.order_id, i.line)
          read public.orders AS o; one row for each (id)
          read public.order_items AS i; one row for each (order_id, line)

They are for people. Spark decides how it runs the query, and the planner which rows are looked up. The columns that
identify a row are those that plan/facts has proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Final

from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError

from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.facts.joins import Join, JoinFacts, join_facts
from cdc_views.plan.facts.keys import Selected, is_aggregated, makes_rows, windows
from cdc_views.plan.facts.relation import FromClause, RelationFacts, no_key
from cdc_views.plan.incremental.columns import start_of

# Longer expressions are shortened. The generator of SQL calls itself for each level of an expression.
_MOST_CHARACTERS: Final = 100
_MOST_NODES: Final = 120
_SET_OPERATIONS: Final = {
    (exp.Union, True): "the different rows of all inputs, each once",
    (exp.Union, False): "all rows of all inputs",
    (exp.Intersect, True): "the different rows that both inputs have, each once",
    (exp.Intersect, False): "the rows that both inputs have, as often as the one that has fewer of them",
    (exp.Except, True): "the different rows of the first input that the second lacks, each once",
    (exp.Except, False): "the rows of the first input, less one for each equal row of the second",
}
_JOINS: Final = {
    "LEFT": ", and keep rows of the first input without a match",
    "RIGHT": ", and keep rows of the second input without a match",
    "FULL": ", and keep rows of either input without a match",
}
_MAY_REPEAT: Final = "rows may repeat"
_ONE_ROW: Final = "one row"
_KEPT: Final = {"SEMI": "that have a match", "ANTI": "that have no match"}


@dataclass(frozen=True)
class Step:
    """What is done with the rows of the `inputs`. `name` is what the query calls the result, if it has a name there.

    `rows` says which columns identify a row of the result; it is empty if nothing is known of it.
    """

    text: str
    rows: str
    inputs: tuple[Step, ...] = ()
    name: str = ""

    def lines(self) -> Iterator[str]:
        """Yield a line for the step, then those of its inputs, which are indented."""
        yield f"{f'{self.name}: ' if self.name else ''}{self.text}{f'; {self.rows}' if self.rows else ''}"
        for step in self.inputs:
            yield from (f"  {line}" for line in step.lines())


@dataclass(frozen=True)
class _Cte:
    query: exp.Expr
    ctes: _Ctes


_Ctes = Mapping[str, _Cte]


def step_lines(view: CompiledView) -> tuple[str, ...]:
    """A line for each step, the last one first; none if there is no SELECT, or one that is nested too deeply."""
    if view.parsed is None:
        return ()
    try:
        return tuple(_Steps(view).query(view.parsed.tree, {}).lines())
    except RecursionError:
        return ()


@dataclass
class _Steps:
    view: CompiledView
    shown: set[int] = field(default_factory=set)  # the ids of the CTEs whose steps are listed
    queries: int = 0

    def query(self, query: exp.Expr, ctes: _Ctes) -> Step:
        ctes = _with_ctes(query, ctes)
        if isinstance(query, exp.Select):
            step = self._select(query, ctes)
        elif isinstance(query, exp.Subquery):
            step = self.query(query.this, ctes)
        elif isinstance(query, exp.SetOperation):
            text = _SET_OPERATIONS[type(query), bool(query.args.get("distinct"))]
            branches = tuple(self.query(each, ctes) for each in _branches(query))
            step = Step(text, self._rows_of(query), branches)
        elif isinstance(query, exp.Values):
            step = Step("a list of values", _MAY_REPEAT)
        else:
            step = _function(query)
        return self._limited(query, step)

    def _facts(self, query: exp.Expr) -> Selected | None:
        return self.view.selected.get(id(query))

    def _rows_of(self, query: exp.Expr) -> str:
        facts = self._facts(query)
        return _rows(facts.rows if facts is not None else None)

    def _limited(self, query: exp.Expr, step: Step) -> Step:
        limit, offset, order = (query.args.get(name) for name in ("limit", "offset", "order"))
        order_text = f" by {_text(order).removeprefix('ORDER BY ')}" if order is not None else ""
        for verb, clause in (("skip", offset), ("keep", limit)):
            if clause is not None:
                step = Step(f"{verb} the first {_text(clause.expression)}{order_text}", step.rows, (step,))
        return step

    def _select(self, select: exp.Select, ctes: _Ctes) -> Step:
        facts = self._facts(select)
        step = self._from(select, facts, ctes)
        if where := select.args.get("where"):
            rows = _joined_rows(facts.sources, facts.frame) if facts is not None else ""
            step = self._over([where.this], "keep rows where {}".format, rows, step, ctes)
        step = self._grouped(select, facts, step, ctes)
        step = self._windowed(select, step)
        if qualify := select.args.get("qualify"):
            step = self._over([qualify.this], "keep rows where {}".format, step.rows, step, ctes)
        first = "select, without repeats, {}" if select.args.get("distinct") else "select {}"
        last = ", a row for each value" if any(map(makes_rows, select.expressions)) else ""
        return self._over(select.expressions, f"{first}{last}".format, self._rows_of(select), step, ctes)

    def _grouped(self, select: exp.Select, facts: Selected | None, step: Step, ctes: _Ctes) -> Step:
        group, having = select.args.get("group"), select.args.get("having")
        if group is not None:
            groups = facts.groups if facts is not None else None
            items = groups if groups is not None and not _has_sets(group) else None
            texts = tuple(_shortened(_text(item)) for item in items or ())
            by = ", ".join(texts) or _shortened(_text(group).removeprefix("GROUP BY "))
            step = Step(f"group the rows by {by}", _identified(texts or None), (step,))
        elif is_aggregated(select):
            step = Step("make one group of all rows", _ONE_ROW, (step,))
        if having is not None:
            step = self._over([having.this], "keep groups where {}".format, step.rows, step, ctes)
        return step

    def _windowed(self, select: exp.Select, step: Step) -> Step:
        found: dict[str, list[str]] = {}
        for window, _, parts in reversed(list(windows(select))):
            over = f"the rows with equal {', '.join(map(_text, parts))}" if parts else "all rows"
            found.setdefault(over, []).append(_text(window.this))
        for over, functions in found.items():
            computed = _shortened(", ".join(dict.fromkeys(functions)))
            step = Step(f"compute {computed} over {over}", step.rows, (step,))
        return step

    def _from(self, select: exp.Select, facts: Selected | None, ctes: _Ctes) -> Step:
        from_ = select.args.get("from_")
        if from_ is None:
            return Step("make a row without a table", _ONE_ROW)
        sources = facts.sources if facts is not None else FromClause({})
        first = _known(from_.this, sources)
        step = self._item(from_.this, sources, ctes)
        joins = list(select.args.get("joins") or ())
        known: list[Join] = []
        for inner, several in groupby(joins, key=_is_plain):
            for together in [list(several)] if inner else [[join] for join in several]:
                known += [(join, *_known(join.this, sources)) for join in together]
                rows = _joined_rows(*join_facts(*first, known, None)) if facts is not None else ""
                items = [self._item(join.this, sources, ctes) for join in together]
                step = self._joined(together, rows, (step, *items), ctes, has_where=bool(select.args.get("where")))
        for lateral in select.args.get("laterals") or ():
            least = ", at least one" if lateral.args.get("outer") else ""
            step = Step(f"make a row for each value of {_text(lateral.this)}{least}", _MAY_REPEAT, (step,))
        return step

    def _joined(
        self, joins: Sequence[exp.Join], rows: str, inputs: tuple[Step, ...], ctes: _Ctes, *, has_where: bool
    ) -> Step:
        join = joins[0]
        conditions = [on for each in joins if (on := each.args.get("on")) is not None and on != exp.true()]
        named = [f"equal {_names(each)}" for each in joins if each.args.get("using")]
        named += ["all columns with equal names" for each in joins if each.method == "NATURAL"]
        first = "join each row with what the query gives for it" if isinstance(join.this, exp.Lateral) else "join"
        every = "" if isinstance(join.this, exp.Lateral) else " each row with each row"
        missing = " by the conditions above" if has_where and every else every

        def text(found: str) -> str:
            on = " and ".join([*named, *filter(None, [found])])
            if join.kind in _KEPT:
                return f"keep rows of the first input {_KEPT[join.kind]} on {on}"
            return f"{first}{f' on {on}' if on else missing}{_JOINS.get(join.side, '')}"

        return self._over(conditions, text, rows, inputs[0], ctes, inputs[1:], between=" AND ")

    def _item(self, node: exp.Expr, sources: FromClause, ctes: _Ctes) -> Step:
        """An item of FROM."""
        rows = _rows(sources.rows.get(node.alias_or_name.lower()))
        if isinstance(node, exp.Subquery | exp.Lateral):
            is_query = isinstance(node.this, exp.Query)
            step = self.query(node.this, _with_ctes(node, ctes)) if is_query else _function(node.this)
            return replace(step, name=node.alias_or_name)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier | exp.Dot):
            return _function(node)
        suffix = f" AS {node.alias}" if node.alias else ""
        cte = ctes.get(node.name.lower()) if not node.args.get("db") else None
        if cte is None:
            source = self.view.sources.get(start_of(node), node.name)
            return Step(f"read {source}{suffix}", rows)
        if id(cte.query) in self.shown:
            return Step(f"the rows of {node.name}{suffix}, as above", rows)
        self.shown.add(id(cte.query))
        return replace(self.query(cte.query, cte.ctes), name=f"{node.name}{suffix}")

    def _over(
        self,
        nodes: Sequence[exp.Expr],
        text: Callable[[str], str],
        rows: str,
        step: Step,
        ctes: _Ctes,
        others: Sequence[Step] = (),
        between: str = ", ",
    ) -> Step:
        """A step that evaluates expressions over rows: their subqueries are numbered, and are further inputs of it."""
        texts, queries = list[str](), list[Step]()
        for node in nodes:
            names = list[str]()
            for query in _subqueries(node):
                self.queries += 1
                names.append(f"query {self.queries}")
                queries.append(replace(self.query(query, ctes), name=names[-1]))
            texts.append(_text(_with_names(node, names) if names and _is_short(node) else node))
        return Step(text(_shortened(between.join(texts))), rows, (step, *others, *queries))


def _with_ctes(query: exp.Expr, ctes: _Ctes) -> _Ctes:
    with_ = query.args.get("with_")
    if not isinstance(with_, exp.With):
        return ctes
    found = dict(ctes)
    for cte in with_.expressions:
        # A recursive query names itself; by then it is among those that are shown.
        found[cte.alias.lower()] = _Cte(cte.this, found if with_.recursive else dict(found))
    return found


def _branches(query: exp.SetOperation) -> Iterator[exp.Expr]:
    """The inputs of a set operation; of several UNIONs in a row, all."""
    left = query.left
    if isinstance(left, exp.Union) and isinstance(query, exp.Union) and _are_one(left, query):
        yield from _branches(left)
    else:
        yield left
    yield query.right


def _are_one(inner: exp.Union, outer: exp.Union) -> bool:
    clauses = {name for name, value in inner.args.items() if value}
    return inner.args.get("distinct") == outer.args.get("distinct") and clauses <= {"this", "expression", "distinct"}


def _is_plain(join: exp.Join) -> bool:
    return not join.side and join.kind in ("", "INNER", "CROSS") and not isinstance(join.this, exp.Lateral)


def _function(node: exp.Expr) -> Step:
    """A function in FROM, or something else that has no rows of a table."""
    return Step(f"rows of {_shortened(_text(node))}", _MAY_REPEAT)


def _known(node: exp.Expr, sources: FromClause) -> tuple[str, RelationFacts]:
    """The alias of an item of FROM, in lower case, and what is known of it."""
    alias = node.alias_or_name.lower()
    return alias, sources.rows.get(alias) or no_key("unknown")


def _identified(key: Sequence[str] | None) -> str:
    if key is None:
        return _MAY_REPEAT
    return f"one row for each ({', '.join(key)})" if key else _ONE_ROW


def _rows(facts: RelationFacts | None) -> str:
    if facts is None:
        return ""
    return _identified(None if facts.key is None else [facts.spelling.get(name, name) for name in facts.key])


def _joined_rows(sources: FromClause, frame: JoinFacts) -> str:
    """Which columns identify a row of a FROM, each with its relation if there are several."""
    if frame.key is None:
        return _MAY_REPEAT
    spelled = [(alias, sources.rows[alias].spelling.get(name, name)) for alias, name in frame.key]
    return _identified([f"{alias}.{name}" if len(sources.rows) > 1 else name for alias, name in spelled])


def _names(join: exp.Join) -> str:
    return ", ".join(column.name for column in join.args["using"])


def _has_sets(group: exp.Expr) -> bool:
    return any(group.find_all(exp.Cube, exp.Rollup, exp.GroupingSets))


def _subqueries(node: exp.Expr) -> list[exp.Expr]:
    """The queries in an expression that are in no other query of it, in a fixed order."""
    found, pending = list[exp.Expr](), [node]
    while pending:
        each = pending.pop(0)
        if isinstance(each, exp.Query):
            found.append(each)
        else:
            pending[:0] = list(each.iter_expressions())
    return found


def _with_names(expression: exp.Expr, names: Sequence[str]) -> exp.Expr:
    """The expression with names in place of its subqueries."""
    copied = exp.Tuple(expressions=[expression.copy()])
    for query, name in zip(_subqueries(copied), names, strict=True):
        query.replace(exp.var(name) if isinstance(query.parent, exp.Exists) else exp.Paren(this=exp.var(name)))
    [found] = copied.iter_expressions()
    return found


def _is_short(node: exp.Expr) -> bool:
    nodes = node.walk(prune=lambda each: isinstance(each, exp.Query))
    return len(list(islice(nodes, _MOST_NODES))) < _MOST_NODES


def _text(node: exp.Expr) -> str:
    if not _is_short(node):
        return "..."
    try:
        text = node.sql("spark", normalize_functions="lower", comments=False, unsupported_level=ErrorLevel.RAISE)
    except (UnsupportedError, LookupError):  # else to_char(x, 'MM') would be CAST(x AS STRING)
        return "..."
    return text.strip()


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
