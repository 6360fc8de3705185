"""What a column's name stands for in a FROM. Names are compared in lower case, as Spark compares them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from cdc_views.plan.incremental.columns import Column, Leaf


@dataclass(frozen=True)
class Derived:
    """A derived table: its SELECT, and the table that its rows come from alone."""

    select: exp.Expr
    source: str


@dataclass
class Source:
    """A relation of a FROM. `has_more`: it has columns besides those that are known.

    `leaf` is the table whose rows it has. It is None for other relations, and where an outer join has rows without one
    of the table: an expression over NULL in place of a row is computed from no row.
    """

    alias: str
    columns: list[Column]
    has_more: bool = False
    is_hidden: bool = False
    leaf: Leaf | None = None
    derived: Derived | None = None


@dataclass
class Scope:
    """The relations of a FROM in their order, the columns that USING has merged, and the scope around a subquery.

    The merged columns of a later USING come first.
    """

    outer: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    merged: dict[str, Column] = field(default_factory=dict)

    @property
    def columns(self) -> list[Column]:
        """All known columns of its relations, those that USING has merged first."""
        return [*self.merged.values(), *(column for each in self.sources for column in each.columns)]

    def resolve(self, node: exp.Expr) -> Column | None:
        """The column of this FROM that an expression names, if that is certain; its name is that of the column."""
        if not isinstance(node, exp.Column) or node.args.get("db") or isinstance(node.this, exp.Star):
            return None
        name, alias = node.name.lower(), node.table.lower()
        if not alias and name in self.merged:
            return self.merged[name]
        sources = [each for each in self.sources if not each.is_hidden and alias in ("", each.alias)]
        if alias and len(sources) != 1:
            return None
        if not alias and any(each.has_more for each in sources):
            return None
        found = [column for each in sources for column in each.columns if column.name.lower() == name]
        return found[0] if len(found) == 1 else None

    def name_of(self, node: exp.Expr) -> tuple[str, str] | None:
        """The relation and the column, in lower case, that an expression names, if that is certain.

        A column that USING has merged is that of the side whose values it has; of a full join, of no relation.
        """
        column = self.resolve(node)
        if column is None:
            return None
        name = column.name.lower()
        own = (
            each.alias
            for each in self.sources
            for known in each.columns
            if known is column or (column.origin and known.origin == column.origin and known.name.lower() == name)
        )
        return next(own, ""), name

    def resolve_outer(self, node: exp.Expr) -> Column | None:
        """The column of the FROM around this one, where no relation of this one may have it."""
        if self.outer is None or not isinstance(node, exp.Column):
            return None
        name, alias = node.name.lower(), node.table.lower()
        for each in self.sources:
            # "a.b" is a field of the column "a" of this FROM, if there is one, before it is a column around it.
            if alias == each.alias or each.has_more or any(c.name.lower() == (alias or name) for c in each.columns):
                return None
        return self.outer.resolve(node)

    def has(self, name: str) -> bool:
        """Whether a name, in lower case, may be that of a relation or a column of this FROM."""
        return any(
            each.has_more or each.alias == name or any(column.name.lower() == name for column in each.columns)
            for each in self.sources
        )

    def alias_of(self, leaf: Leaf) -> str | None:
        """What this FROM calls a table whose rows it has; None if it is not one of its relations."""
        return next((each.alias for each in self.sources if each.leaf == leaf), None)

    def make_optional(self, side: str, begin: int, middle: int) -> None:
        """From an outer join on, rows may be without those of the optional side.

        Its left side are the relations from number `begin` on, its right side those from `middle` on.
        """
        for place, source in enumerate(self.sources[begin:], begin):
            if side != ("RIGHT" if place >= middle else "LEFT"):
                source.leaf = None
                source.columns = [replace(column, is_never_null=False) for column in source.columns]

    def require(self, conditions: Iterable[exp.Expr | None]) -> None:
        """From these conditions of WHERE on, columns that they compare with IS NOT NULL have a value in every row."""
        for column in filter(None, map(self._not_null, conjuncts(conditions))):
            for source in self.sources:
                source.columns = [replace(c, is_never_null=True) if c is column else c for c in source.columns]

    def _not_null(self, node: exp.Expr) -> Column | None:
        is_not_null = isinstance(node, exp.Not) and isinstance(node.this, exp.Is)
        return self.resolve(node.this.this) if is_not_null and isinstance(node.this.expression, exp.Null) else None

    def computed_by(self, node: exp.Expr) -> Derived | None:
        """The derived table that computes the column that an expression names, if that is certain."""
        column = self.resolve(node)
        if column is None or column.origin:
            return None
        own = (each.derived for each in self.sources if any(known is column for known in each.columns))
        return next(own, None)  # a column that USING has merged is of none

    def star(self, node: exp.Expr) -> list[Column] | None:
        """The columns that `*` or `t.*` stands for, in Spark's order; None if they are not all known.

        `*` has the columns of the last USING or NATURAL first, then those of the one before. `t.*` has them first too,
        in an order that is not certain for several.
        """
        inner = node.this if isinstance(node, exp.Column) else node
        alias = node.table.lower() if isinstance(node, exp.Column) else ""
        if any(inner.args.values()):
            return None
        sources = [each for each in self.sources if not each.is_hidden and alias in ("", each.alias)]
        if not sources or any(each.has_more for each in sources):
            return None
        columns = [column for each in sources for column in each.columns]
        if alias:
            return columns if not any(column.name.lower() in self.merged for column in columns) else None
        rest = [column for column in columns if column.name.lower() not in self.merged]
        return [*self.merged.values(), *rest]


def conjuncts(conditions: Iterable[exp.Expr | None]) -> Sequence[exp.Expr]:
    """The conditions that must all hold, one by one."""
    found: list[exp.Expr] = []
    pending = [each for each in conditions if each is not None]
    while pending:
        condition = pending.pop(0)
        if isinstance(condition, exp.And):
            pending[:0] = list(condition.flatten())
        elif isinstance(condition, exp.Paren):
            pending.insert(0, condition.this)
        else:
            found.append(condition)
    return found
