"""Which columns identify a view's rows: derived from its SQL if that can be proven, else none.

The rules: a table has its primary key. A filter, a projection and a window keep it. An inner join has both keys, or one
side's if the join fixes the other side's key; an outer join too, if the key of the side that may be missing is never
NULL. GROUP BY has its columns. DISTINCT and the set operations without ALL have all columns. An aggregate without GROUP
BY has one row, so its key is empty. Whatever is not certain (functions that return rows, UNION ALL, names that cannot
be resolved) has no key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from cdc_views.plan.facts.grouping_sets import GroupsOfSets
from cdc_views.plan.facts.joins import JoinFacts, join_facts
from cdc_views.plan.facts.relation import ColumnRef, FromClause, OutputColumn, RelationFacts, no_key, output_of
from cdc_views.views.expression_text import Texts
from cdc_views.views.join_parentheses import joins_inside
from cdc_views.views.references import ParsedQuery
from cdc_views.views.selected import given_name

_GENERATORS: Final = frozenset(
    ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack", "json_tuple")
)

MAY_AGGREGATE: Final = (exp.AggFunc, exp.Anonymous, exp.Any)
"""What sqlglot makes of Spark's aggregates: it has no class for mean(x), and any(x) is that of `= ANY (...)`."""

TableFacts = Callable[[exp.Table], RelationFacts]  # what is known of a table or view that the query names


@dataclass(frozen=True)
class Selected:
    """What is known of a query, or of a SELECT in it: its FROM, its columns, and its rows before ORDER BY and LIMIT.

    `groups` identify a group of a SELECT with aggregates; empty if all rows are one group, None without aggregates.
    """

    sources: FromClause
    frame: JoinFacts
    outputs: Sequence[OutputColumn]
    rows: RelationFacts
    groups: Sequence[exp.Expr] | None


Visit = Callable[[exp.Expr, Selected], None]  # called for every SELECT, set operation and query in parentheses


@dataclass(frozen=True)
class _Scope:
    """What names stand for in a query: its CTEs, then the view's inputs."""

    tables: TableFacts
    visit: Visit
    texts: Texts
    ctes: Mapping[str, RelationFacts] = field(default_factory=dict)

    def rows(self, table: exp.Table) -> RelationFacts:
        """Return what is known of a table, view, CTE or function in FROM."""
        if not isinstance(table.this, exp.Identifier):
            return no_key("a function in FROM has no key")
        if not table.args.get("db") and table.name.lower() in self.ctes:
            return self.ctes[table.name.lower()]
        return self.tables(table)


def derive_key(query: ParsedQuery, tables: TableFacts, visit: Visit = lambda query, selected: None) -> RelationFacts:
    """Return what is known of a query's rows: columns, types, and a key or why there is none."""
    return _query(query.tree, _Scope(tables, visit, Texts(query)))


def makes_rows(item: exp.Expr) -> bool:
    """Whether an item of a SELECT makes several rows out of one, as explode() does."""
    return any(map(_is_generator, _own_nodes(item)))


def is_aggregated(select: exp.Select) -> bool:
    """Whether a SELECT without GROUP BY is an aggregate over all rows."""
    return any(map(has_aggregate, select.expressions)) or select.args.get("having") is not None


def has_aggregate(item: exp.Expr) -> bool:
    """Whether an item of a SELECT is an aggregate, or computed from one."""
    return any(isinstance(node, exp.AggFunc) for node in _own_nodes(item))


def is_unclear(item: exp.Expr) -> bool:
    """Whether an item of a SELECT may be an aggregate, by a function that sqlglot does not know as one."""
    return not has_aggregate(item) and any(isinstance(node, MAY_AGGREGATE) for node in _own_nodes(item))


def is_counted(star: exp.Star) -> bool:
    """Whether this is the star of count(*), which stands for no column; in count(*, x) it stands for all."""
    count = star.parent
    return isinstance(count, exp.Count) and not count.expressions and not any(star.args.values())


def _query(query: exp.Expr, scope: _Scope) -> RelationFacts:
    if isinstance(with_ := query.args.get("with_"), exp.With):
        scope = _with_ctes(with_, scope)
    if isinstance(query, exp.Select):
        return _select(query, scope)
    if isinstance(query, exp.Subquery):
        rows = _query(query.this, scope)
        scope.visit(query, _of_rows(rows))
        return _renamed(rows, query)
    if isinstance(query, exp.SetOperation):
        return _set_operation(query, scope)
    return no_key("a list of values has no key")


def _of_rows(rows: RelationFacts) -> Selected:
    columns = [OutputColumn(name, is_many=not name) for name in rows.columns or ("",)]
    return Selected(FromClause({}), JoinFacts(None, False, rows.reason), columns, rows, None)


def _with_ctes(with_: exp.With, scope: _Scope) -> _Scope:
    for cte in with_.expressions:
        name = cte.alias.lower()
        rows = no_key("a recursive query has no key") if with_.recursive else _renamed(_query(cte.this, scope), cte)
        scope = replace(scope, ctes={**scope.ctes, name: rows})
    return scope


def _renamed(rows: RelationFacts, aliased: exp.Expr) -> RelationFacts:
    """The facts with the column names of an alias like `t(a, b)`."""
    names = [column.name for column in aliased.args["alias"].columns] if aliased.args.get("alias") else []
    return rows.renamed(names) if names else rows


def _set_operation(query: exp.SetOperation, scope: _Scope) -> RelationFacts:
    left = _query(query.left, scope)
    _query(query.right, scope)
    result = RelationFacts(left.columns, {}, None, "", spelling=left.spelling)
    if query.args.get("distinct"):
        result = result.with_all_columns_as_key("all columns of a set operation")
    else:
        # The key of the left side is no key of the result: its values become those of the wider type of both sides.
        result = replace(result, reason=f"{type(query).__name__.upper()} ALL may return a row twice")
    scope.visit(query, _of_rows(result))
    return result


def _select(select: exp.Select, scope: _Scope) -> RelationFacts:
    sources, frame = _from(select, scope)
    outputs = _outputs(select, sources)
    rows = _selected_rows(select, sources, frame, outputs, scope.texts)
    scope.visit(select, Selected(sources, frame, outputs, rows, _groups(select, outputs, sources)))
    for query in nested_queries(select):
        _query(query, scope)
    return rows


def _selected_rows(
    select: exp.Select, sources: FromClause, frame: JoinFacts, outputs: Sequence[OutputColumn], texts: Texts
) -> RelationFacts:
    rows = _named(outputs)
    if any(map(makes_rows, select.expressions)):
        return replace(rows, key=None, reason="a function that returns several rows has no key")
    group = select.args.get("group")
    if group is not None:
        rows = _grouped(group, select, outputs, sources, rows, _never_null(select, sources, frame), texts)
    elif is_aggregated(select):
        rows = replace(rows, key=(), reason="an aggregate without GROUP BY has one row")
    else:
        rows = _projected(outputs, frame, rows)
    if select.args.get("distinct") and rows.key is None:
        return rows.with_all_columns_as_key("all columns of DISTINCT")
    return rows


def own_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the nodes of the expressions of a SELECT; of the queries in them, only the root."""
    pending = [node for name, value in select.args.items() if name not in ("with_", "from_")
               for node in (value if isinstance(value, list) else [value]) if isinstance(node, exp.Expr)]  # fmt: skip
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, exp.Join) and not isinstance(node.this, exp.Lateral):
            pending += [child for child in node.iter_expressions() if child is not node.this]
        elif not isinstance(node, exp.Query):
            pending += list(node.iter_expressions())


def windows(select: exp.Select) -> Iterator[tuple[exp.Window, exp.Window | None, list[exp.Expr]]]:
    """Yield each window of a function of a SELECT, the definition after WINDOW that it names, and its PARTITION BY."""
    named = {window.this.name.lower(): window for window in select.args.get("windows") or ()}
    for window in own_nodes(select):
        if not isinstance(window, exp.Window) or isinstance(window.this, exp.Identifier):
            continue  # a definition after WINDOW has a name there
        base = named.get(window.alias.lower()) if window.args.get("alias") else None
        both = [window] if base is None else [window, base]
        yield window, base, [part for each in both for part in each.args.get("partition_by") or ()]


def nested_queries(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the queries in the expressions of a SELECT, and those of LATERAL."""
    return (node for node in own_nodes(select) if isinstance(node, exp.Query) and not isinstance(node, exp.Table))


def _from(select: exp.Select, scope: _Scope) -> tuple[FromClause, JoinFacts]:
    """The relations of a FROM by alias, and what is known of their join."""
    from_ = select.args.get("from_")
    if from_ is None:
        return FromClause({}), JoinFacts((), False, "a SELECT without FROM has one row")
    where = select.args.get("where")
    first, rows = _source(from_.this, scope)
    joins = [(join, *_source(join.this, scope)) for join in select.args.get("joins") or ()]
    sources, frame = join_facts(first, rows, joins, where.this if where else None)
    nodes = [from_.this, *(join.this for join, _, _ in joins)]
    if any(node.args.get("pivots") for node in nodes):
        return replace(sources, has_more=True), JoinFacts(None, False, "PIVOT has no key")
    for lateral in select.args.get("laterals") or ():
        frame = JoinFacts(None, False, "LATERAL VIEW multiplies rows")
        alias = lateral.args.get("alias")
        names = tuple(column.name for column in alias.columns) if alias else ()
        rows = RelationFacts(names, {}, None, frame.reason)
        # Spark makes up names for its columns if there are none.
        sources = replace(sources.with_rows(lateral.alias.lower(), rows), has_more=sources.has_more or not names)
    if _has_sliding_window(select, scope.texts):
        # The start of the window is a column of each row that no name stands for.
        frame, sources = (
            JoinFacts(None, False, "a time window that slides multiplies rows"),
            replace(sources, has_more=True),
        )
    return sources, frame


def _has_sliding_window(select: exp.Select, texts: Texts) -> bool:
    """Whether Spark makes a row for each window of a time, in whatever clause that names the windows. As an item of
    GROUP BY, the windows are the groups.
    """
    group = select.args.get("group")
    groups = group.expressions if group is not None else ()
    slides = (node for node in own_nodes(select) if is_time_window(node) and len(node.expressions) > 2)
    return any(not any(texts.are_same(node, each) for each in groups) for node in slides)


def is_time_window(node: exp.Expr) -> bool:
    """Whether this is `window(time, '1 hour')`, or with a third argument by which it slides."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def _source(node: exp.Expr, scope: _Scope) -> tuple[str, RelationFacts]:
    """The alias of an item of FROM, in lower case, and what is known of it."""
    name = node.alias_or_name.lower()
    if isinstance(node, exp.Table):
        return name, _renamed(scope.rows(node), node)
    inside = joins_inside(node)
    if inside is not None:
        first, joins = inside
        for each in (first, *(join.this for join in joins)):
            _source(each, scope)
        return name, no_key("a join in parentheses has no key")
    if isinstance(node, exp.Subquery):
        return name, _query(node, scope)
    return name, no_key("an item of FROM that is neither a table nor a query has no key")


def _outputs(select: exp.Select, sources: FromClause) -> list[OutputColumn]:
    """The columns of a SELECT; one without a name stands for columns that are not known."""
    found: list[OutputColumn] = []
    for item in select.expressions:
        value = item.unalias()
        if isinstance(value, exp.Star) or (isinstance(value, exp.Column) and isinstance(value.this, exp.Star)):
            found += sources.star(value)
        else:
            origin = sources.resolve(value)
            is_many = isinstance(item, exp.Aliases)
            found.append(OutputColumn(given_name(item), value, origin, sources.type_of(origin), is_many))
    return found


def _named(outputs: Sequence[OutputColumn]) -> RelationFacts:
    names = None if any(output.is_many for output in outputs) else tuple(output.name for output in outputs)
    types = {output.name.lower(): output.type for output in outputs if output.name and output.type}
    spelling = {output.name.lower(): output.name for output in outputs if output.name}
    return RelationFacts(names, types, None, "", spelling=spelling)


def _projected(outputs: Sequence[OutputColumn], frame: JoinFacts, rows: RelationFacts) -> RelationFacts:
    """The key of the join, if its columns, or columns that always equal them, are selected."""
    if frame.key is None:
        return replace(rows, reason=frame.reason)
    key = []
    for column in frame.key:
        same = frame.equal_to(column)
        name = next((output.name for output in outputs if output.name and output.origin in same), None)
        if name is None:
            alias, missing = column
            return replace(rows, reason=f'column "{missing}" of the key of "{alias}" is not selected unchanged')
        key.append(name.lower())
    return replace(rows, key=tuple(dict.fromkeys(key)), nullable=frame.nullable, reason=frame.reason)


def _groups(select: exp.Select, outputs: Sequence[OutputColumn], sources: FromClause) -> list[exp.Expr] | None:
    """The expressions that identify a group; grouping sets as they stand, since they identify none."""
    group = select.args.get("group")
    if group is None:
        return [] if is_aggregated(select) else None
    if group.args.get("all") and not sources.lacks("all"):
        return [exp.column("all")]
    if group.args.get("all"):
        return [item.unalias() for item in select.expressions if not has_aggregate(item)]
    found = []
    for expression in group.expressions:
        output = _grouped_output(expression, outputs, sources)
        value = None if output is None else output.value
        if output is not None and output.origin is not None:
            value = exp.column(output.origin[1], table=output.origin[0] or None)
        found.append(value if value is not None else expression)
    return [*found, *group.find_all(exp.Cube, exp.Rollup, exp.GroupingSets)]


def _grouped_output(expression: exp.Expr, outputs: Sequence[OutputColumn], sources: FromClause) -> OutputColumn | None:
    """The output column that GROUP BY names by its number or its alias."""
    if isinstance(expression, exp.Literal) and expression.name.isdigit() and not expression.is_string:
        place = int(expression.name) - 1
        return outputs[place] if 0 <= place < len(outputs) else None
    if not isinstance(expression, exp.Column) or expression.table or not sources.lacks(expression.name):
        return None
    return next((output for output in outputs if output.name.lower() == expression.name.lower()), None)


def _never_null(select: exp.Select, sources: FromClause, frame: JoinFacts) -> set[ColumnRef]:
    """Columns that have a value in each row of a FROM: those of its key, and those that WHERE requires to have one."""
    found = set(frame.key or ()) if not frame.nullable else set()
    where = select.args.get("where")
    condition = where.this if where is not None else None
    for each in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        match each:
            case exp.Not(this=exp.Is(this=value, expression=exp.Null())):
                column = sources.resolve(value)
                found |= {column} if column is not None else set()
    return found


def _grouped(
    group: exp.Group,
    select: exp.Select,
    outputs: Sequence[OutputColumn],
    sources: FromClause,
    rows: RelationFacts,
    never_null: set[ColumnRef],
    texts: Texts,
) -> RelationFacts:
    if any(group.find_all(exp.Cube, exp.Rollup, exp.GroupingSets)):
        return _of_grouping_sets(select, outputs, sources, rows, never_null, texts)
    if group.args.get("all"):
        if not sources.lacks("all"):
            return replace(rows, reason='GROUP BY ALL may mean a column "all"')
        if any(map(is_unclear, select.expressions)):
            return replace(rows, reason="GROUP BY ALL beside a function that may be an aggregate")
        wanted = [item.unalias() for item in select.expressions if not has_aggregate(item)]
    else:
        wanted = list(group.expressions)
    key = []
    for expression in wanted:
        name = output_of(expression, outputs, sources, texts)
        if name is None:
            shown = texts.text(expression)
            return replace(rows, reason=f'the group expression "{shown}" is not selected unchanged')
        key.append(name.lower())
    return replace(rows, key=tuple(dict.fromkeys(key)), nullable=True, reason="the columns of GROUP BY")


def _of_grouping_sets(
    select: exp.Select,
    outputs: Sequence[OutputColumn],
    sources: FromClause,
    rows: RelationFacts,
    never_null: set[ColumnRef],
    texts: Texts,
) -> RelationFacts:
    level = next((each.name for each in outputs if each.name and isinstance(each.value, exp.GroupingId)), None)
    groups = GroupsOfSets(select, sources.resolve, lambda name: not sources.lacks(name), texts).all()
    names = [output_of(group, outputs, sources, texts) for group in (groups or {}).values()]
    found = [name.lower() for name in names if name is not None]
    is_known = groups is not None and len(found) == len(groups)
    if is_known and level is not None:
        found, reason = [*found, level.lower()], "the columns of the grouping sets, and grouping_id()"
    elif is_known and never_null.issuperset(groups or ()):
        reason = "the columns of the grouping sets, which are NULL only in sets that lack them"
    else:
        return replace(rows, reason="grouping sets may return a row twice")
    return replace(rows, key=tuple(dict.fromkeys(found)), nullable=True, reason=reason)


def _own_nodes(item: exp.Expr) -> list[exp.Expr]:
    """The nodes of an expression, without those of subqueries and without aggregates over a window."""
    found, pending = [], [item]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Window):
            over = node.this
            while isinstance(over, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
                over = over.this
            pending += list(over.iter_expressions())
            pending += [child for child in node.iter_expressions() if child is not node.this]
            continue
        found.append(node)
        pending += list(node.iter_expressions())
    return found


def _is_generator(node: exp.Expr) -> bool:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name() if isinstance(node, exp.Func) else ""
    return name.lower() in _GENERATORS or isinstance(node, exp.UDTF)
