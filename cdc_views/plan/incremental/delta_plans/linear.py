"""Which FROM gives, over the union of two sets of rows, the rows that it gives over either: as bags.

That holds for a table, for a SELECT without aggregates, windows, DISTINCT and LIMIT over one such FROM, which maps each
row by itself to some rows, and for the UNION ALL of such queries. It does not hold for a join, whose rows need both
sides, and not for a SELECT without FROM, which has its row always.

Inner joins, filters and projections are linear in each of their tables, as long as the others do not change. Over a
part of the rows of each table they give a part of their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlglot import exp

from cdc_views.plan.facts.keys import is_aggregated, is_unclear, nested_queries, own_nodes
from cdc_views.plan.incremental.build import LeafOf
from cdc_views.plan.incremental.columns import Leaf, LeafColumn, Origin, Path, is_exact
from cdc_views.plan.incremental.operators import InnerJoin, Operator, Scan
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental
from cdc_views.plan.incremental.scope import Scope
from cdc_views.plan.incremental.strategy import KeysPlan

_OF_SELECT: Final = frozenset({"expressions", "from_", "where", "laterals", "with_", "hint"})
_OF_UNION: Final = frozenset({"this", "expression", "with_"})
_OF_SUBQUERY: Final = frozenset({"this", "alias", "with_"})
_OF_TABLE: Final = frozenset({"this", "db", "alias"})
_WORDS: Final = {
    "group": "GROUP BY",
    "order": "ORDER BY",
    "joins": "a join that is no inner join of tables",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
}
# What is surely evaluated row by row. Some aggregates of Spark are not aggregates to sqlglot, such as any(x).
_OF_ROWS: Final = (
    *(exp.Alias, exp.Aliases, exp.Between, exp.Binary, exp.Boolean, exp.Case, exp.Cast, exp.Coalesce, exp.Column),
    *(exp.DataType, exp.DataTypeParam, exp.Identifier, exp.If, exp.Literal, exp.Neg, exp.Not, exp.Null, exp.Paren),
    exp.UDTF,
)

_Ctes = Mapping[str, "_VisibleCte"]


class _VisibleCte:
    """A query of a WITH, and the CTEs that it may name."""

    def __init__(self, query: exp.Expr, ctes: _Ctes) -> None:
        self.query, self.ctes = query, ctes


def require_linear(select: exp.Select) -> None:
    """Raise NotIncremental if the FROM and WHERE of a SELECT are not linear, or it has other clauses."""
    _require_clauses(select, {})


def require_multilinear(operator: Operator, select: exp.Select) -> None:
    """Raise NotIncremental if the FROM of a SELECT, or a query in it, is not linear in each of its leaves."""
    if not _is_of_joins(operator):
        raise NotIncremental("not only inner joins, filters and projections of tables")
    for query in select.find_all(exp.Select):
        if query is not select and not _shows_column(query) and any(map(is_unclear, query.expressions)):
            raise NotIncremental("a subquery with a function that may be an aggregate")


def _is_of_joins(operator: Operator) -> bool:
    if isinstance(operator, InnerJoin):
        return all(map(_is_of_joins, operator.children))
    return isinstance(operator, Scan)


def require_handle(columns: Sequence[exp.Expr], scope: Scope, keys: KeysPlan) -> None:
    """Raise NotIncremental unless the handle of KEYS is these columns of a FROM, in one part, and no floats.

    The rows of a group are put together in the driver, by values that are the same.
    """
    found = [scope.resolve(each) for each in columns]
    origins = {column.origin for column in found if column is not None and column.origin}
    parts = [part for handle in keys.handles for part in handle.parts]
    if any(column is None or not column.origin for column in found) or len(parts) != 1:
        raise NotIncremental("groups that are not found by columns of one table")
    # A window may be restricted by other columns than those of its partition, as many of them (operators/grouping.py).
    if {frozenset(each) for each in zip(*parts[0].origins, strict=True)} != origins:
        raise NotIncremental("a column of the groups is not selected")
    if not all(is_exact(column.type) for origin in parts[0].origins for column in origin):
        raise NotIncremental("groups of floating-point values")


def leaf_among(leaves: Iterable[Leaf]) -> LeafOf:
    """Finds the leaves of a plan by their places in the text. Raises NotIncremental at another place."""
    known = {leaf.path: leaf for leaf in leaves}

    def leaf_of(table: exp.Table, path: Path) -> Leaf:
        if path not in known:
            raise NotIncremental("an internal view stands for a part of the query")
        return known[path]

    return leaf_of


def joins_of(operator: Operator) -> dict[Path, tuple[Lookup, ...]]:
    """For each leaf of inner joins, the lookups from its rows to the rows of the other leaves that they join.

    Raises NotIncremental if no equality leads to one.
    """
    leaves = sorted(operator.leaves, key=lambda leaf: leaf.path)
    return {leaf.path: tuple(operator.find(leaf, all_columns(leaves))) for leaf in leaves}


def all_columns(leaves: Sequence[Leaf]) -> list[Origin]:
    """All columns of some leaves."""
    return [frozenset({LeafColumn(leaf, name)}) for leaf in leaves for name in leaf.types]


def _require_query(query: exp.Expr, ctes: _Ctes) -> None:
    if isinstance(query, exp.Table):
        require_only(query, _OF_TABLE)
        if not isinstance(query.this, exp.Identifier | exp.Dot):
            raise NotIncremental("a function in FROM")
        cte = ctes.get(query.name.lower()) if not query.args.get("db") else None
        if cte is not None:
            _require_query(cte.query, cte.ctes)
    elif isinstance(query, exp.Subquery):
        require_only(query, _OF_SUBQUERY)
        _require_query(query.this, _with_ctes(query, ctes))
    elif isinstance(query, exp.SetOperation):
        if not isinstance(query, exp.Union) or query.args.get("distinct") is not False:
            raise NotIncremental(f"{query.key.upper()} of its rows")
        require_only(query, _OF_UNION)
        for branch in (query.left, query.right):
            _require_query(branch, _with_ctes(query, ctes))
    elif isinstance(query, exp.Select):
        if is_aggregated(query) or _may_aggregate(query):
            raise NotIncremental("an aggregate, or what may be one, below it")
        _require_clauses(query, ctes)
    else:
        raise NotIncremental(f"{query.key.upper()} in FROM")


def _require_clauses(select: exp.Select, ctes: _Ctes) -> None:
    require_only(select, _OF_SELECT)
    if any(isinstance(node, exp.Window) for node in own_nodes(select)):
        raise NotIncremental("a window")
    if any(nested_queries(select)):
        raise NotIncremental("a subquery in an expression")
    from_ = select.args.get("from_")
    if from_ is None:
        raise NotIncremental("a SELECT without FROM")
    _require_query(from_.this, _with_ctes(select, ctes))


def require_only(node: exp.Expr, allowed: frozenset[str]) -> None:
    """Raise NotIncremental if a node has other clauses than these."""
    for name, value in node.args.items():
        if value and name not in allowed:
            raise NotIncremental(_WORDS.get(name, name.strip("_").upper()))


def _with_ctes(query: exp.Expr, ctes: _Ctes) -> _Ctes:
    with_ = query.args.get("with_")
    for cte in with_.expressions if isinstance(with_, exp.With) else ():
        ctes = {**ctes, cte.alias.lower(): _VisibleCte(cte.this, ctes)}
    return ctes


def _may_aggregate(select: exp.Select) -> bool:
    """Whether a SELECT without GROUP BY may be an aggregate by a function that sqlglot does not know as one.

    Only what is surely evaluated row by row is none.
    """
    is_of_rows = all(isinstance(node, _OF_ROWS) for item in select.expressions for node in item.walk())
    return not is_of_rows and not _shows_column(select)


def _shows_column(select: exp.Select) -> bool:
    """Whether a column of the FROM is selected: beside an aggregate, Spark refuses it.

    An alias of an item before is no column of the FROM.
    """
    aliases: set[str] = set()
    for item in select.expressions:
        value = item.unalias()
        if isinstance(value, exp.Star) or (isinstance(value, exp.Column) and value.name.lower() not in aliases):
            return True
        aliases |= (
            {name.name.lower() for name in item.expressions} if isinstance(item, exp.Aliases) else {item.alias.lower()}
        )
    return False
