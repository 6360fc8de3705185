"""What is known of the rows of a table, a query, or the relations of a FROM.

Columns are compared in lower case, as Spark compares them; `columns` keep their spelling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from cdc_views.views.expression_text import Texts

ColumnRef = tuple[str, str]  # a column in a FROM: alias of its relation and name, in lower case


@dataclass(frozen=True)
class RelationFacts:
    """What is known of the rows of a table or query.

    `columns` is None if they are not all known; a column that Spark names is an empty text. `types` are those of the
    source's catalog, for columns that are passed through unchanged. `key`, in lower case, is None if none is proven;
    `reason` says why, or where the key comes from. `nullable`: a key column may be NULL. `spelling` maps the columns'
    names in lower case to their names as written.
    """

    columns: tuple[str, ...] | None
    types: Mapping[str, str]
    key: tuple[str, ...] | None
    reason: str
    nullable: bool = False
    spelling: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_all_names(self) -> bool:
        """Whether the names of all columns are known."""
        return self.columns is not None and all(self.columns)

    def with_all_columns_as_key(self, reason: str) -> RelationFacts:
        """Return the facts of rows of which no two are equal."""
        if self.columns is None or not self.has_all_names:
            return replace(self, key=None, reason="not all columns have a known name")
        key = tuple(dict.fromkeys(name.lower() for name in self.columns))
        return replace(self, key=key, nullable=True, reason=reason)

    def renamed(self, names: Sequence[str]) -> RelationFacts:
        """Return the facts with other column names."""
        if self.columns is None or len(self.columns) != len(names):
            return no_key("the renamed columns are not known")
        old = [name.lower() for name in self.columns]
        if len({name for name in old if name}) < len([name for name in old if name]):
            return no_key("two columns have the same name")
        new = dict(zip(old, (name.lower() for name in names), strict=True))
        key = None if self.key is None else tuple(new[name] for name in self.key)
        types = {new[name]: kind for name, kind in self.types.items() if name in new}
        spelling = {name.lower(): name for name in names}
        return replace(self, columns=tuple(names), types=types, key=key, spelling=spelling)


def no_key(reason: str) -> RelationFacts:
    """Return the facts of unknown rows."""
    return RelationFacts(None, {}, None, reason)


@dataclass(frozen=True)
class OutputColumn:
    """A column of a SELECT; `origin` is the column of FROM that it passes through, if it does.

    `name` is empty if Spark makes it up; `is_many`: it stands for columns that are not known.
    """

    name: str
    value: exp.Expr | None = None
    origin: ColumnRef | None = None
    type: str | None = None
    is_many: bool = False


@dataclass(frozen=True)
class FromClause:
    """The relations of a FROM, by alias.

    `hidden`: relations whose columns are not visible (semi and anti joins); `has_more`: there are columns besides
    theirs; `merged`: columns that USING has merged.
    """

    rows: Mapping[str, RelationFacts]
    hidden: frozenset[str] = frozenset()
    has_more: bool = False
    merged: Mapping[str, ColumnRef | None] = field(default_factory=dict)

    def with_rows(self, alias: str, rows: RelationFacts) -> FromClause:
        """Return the FROM with one more relation."""
        return replace(self, rows={**self.rows, alias: rows})

    def visible(self) -> dict[str, RelationFacts]:
        """Return the relations whose columns can be selected."""
        return {alias: rows for alias, rows in self.rows.items() if alias not in self.hidden}

    def resolve(self, column: exp.Expr) -> ColumnRef | None:
        """Return the column of FROM that a name stands for, if that is certain."""
        if not isinstance(column, exp.Column) or column.args.get("db"):
            return None
        name, visible = column.name.lower(), self.visible()
        if column.table:
            # "a.b" is a field of the struct "a" if no relation is called "a".
            alias = column.table.lower()
            known = alias in visible and _may_have(visible[alias], name)
            return (alias, name) if known else None
        if name in self.merged:
            return self.merged[name]
        if self.has_more:
            return None
        if len(visible) == 1:
            ((alias, rows),) = visible.items()
            return (alias, name) if _may_have(rows, name) else None
        owners = [alias for alias, rows in visible.items() if _may_have(rows, name)]
        return (owners[0], name) if len(owners) == 1 and visible[owners[0]].has_all_names else None

    def lacks(self, name: str) -> bool:
        """Whether it is certain that no relation has a column."""
        return not self.has_more and not any(_may_have(rows, name.lower()) for rows in self.visible().values())

    def type_of(self, source: ColumnRef | None) -> str | None:
        """Return the catalog's type of a column, if known."""
        return self.rows[source[0]].types.get(source[1]) if source else None

    def star(self, star: exp.Expr) -> list[OutputColumn]:
        """Return the columns that `*` or `t.*` stands for."""
        only = star.table.lower() if isinstance(star, exp.Column) else None
        inner = star.this if isinstance(star, exp.Column) else star
        unknown = OutputColumn("", is_many=True)
        if self.has_more or any(inner.args.values()) or (self.merged and only is None):
            return [unknown]
        found = []
        for alias, rows in self.visible().items():
            if only not in (None, alias):
                continue
            for name in rows.columns if rows.columns is not None else rows.key or ():
                spelled = rows.spelling.get(name.lower(), name)
                origin = (alias, name.lower()) if name else None
                found.append(OutputColumn(spelled, None, origin, rows.types.get(name.lower())))
            if rows.columns is None:
                found.append(unknown)
        return found or [unknown]


def _may_have(rows: RelationFacts, name: str) -> bool:
    return not rows.has_all_names or name in (column.lower() for column in rows.columns or ())


def output_of(expression: exp.Expr, outputs: Sequence[OutputColumn], sources: FromClause, texts: Texts) -> str | None:
    """Return the output column that is a group expression: by its number, by its expression, or by its alias."""
    if isinstance(expression, exp.Literal) and expression.name.isdigit() and not expression.is_string:
        position = int(expression.name) - 1
        many = any(output.is_many for output in outputs[: position + 1])
        return outputs[position].name or None if not many and 0 <= position < len(outputs) else None
    origin = sources.resolve(expression)
    same = [o for o in outputs if (origin is not None and o.origin == origin) or texts.are_same(o.value, expression)]
    # Spark prefers a column to an alias, so an alias counts only if no column can be meant.
    if not same and isinstance(expression, exp.Column) and not expression.table and sources.lacks(expression.name):
        same = [output for output in outputs if output.name.lower() == expression.name.lower()]
    return next((output.name for output in same if output.name), None)
