"""Leaves, the places where a view's text names a table; and columns, with the leaf columns whose values they have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from cdc_views.base.names import HIDDEN, is_table

Path = tuple[int, ...]
"""Offsets in the view's text: those of the CTE references through which a place is reached, then its own."""

_WHOLE: Final = frozenset({"int8", "int16", "int32", "int64"})
_EXACT: Final = ("string", "large_string", "bool", "date32", "timestamp", "binary", "decimal128")
_ORDERED: Final = ("int", "decimal128", "date32", "timestamp")
_FLOATS: Final = frozenset({"float", "double"})


@dataclass(frozen=True)
class Leaf:
    """One occurrence of a table or view in a query, after each CTE is written out where it is used.

    `source` is its name in the manifest. `types` maps its columns, as they are spelled in the table, to the names of
    their Arrow types. Two occurrences of one table are two leaves. `is_internal`: it is a view of ours, which the query
    does not name (expressions/known.py). `never_null` are columns that are not NULL in any row.
    """

    path: Path
    source: str
    types: Mapping[str, str]
    is_internal: bool = False
    never_null: frozenset[str] = frozenset()

    @property
    def is_stored(self) -> bool:
        """Whether it is an internal view whose rows stand in the text for a part of the query."""
        return self.source.startswith(HIDDEN) and not self.is_internal

    def __hash__(self) -> int:
        return hash(self.path)

    def __str__(self) -> str:
        return self.source


def start_of(table: exp.Table) -> int:
    """The offset at which the text names a table."""
    return min(int(part.meta["start"]) for part in table.parts if "start" in part.meta)


def leaf_at(
    source_of: Callable[[int], str],
    types: Mapping[str, Mapping[str, str]],
    row_keys: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Callable[[object, Path], Leaf]:
    """Makes the leaf of a table at a path, of the manifest's name at an offset of the text, and the types of each.

    The columns of the key of a table are never NULL. That of a view may hold NULL.
    """

    def leaf(table: object, path: Path) -> Leaf:
        source = source_of(path[-1])
        never_null = frozenset(row_keys.get(source, ()) if is_table(source) else ())
        return Leaf(path, source, types[source], never_null=never_null)

    return leaf


@dataclass(frozen=True)
class LeafColumn:
    """A column of a leaf."""

    leaf: Leaf
    name: str

    @property
    def type(self) -> str:
        """The name of its Arrow type."""
        return self.leaf.types[self.name]

    def __str__(self) -> str:
        return f"{self.leaf}.{self.name}"


Origin = frozenset[LeafColumn]
"""The leaf columns of which a column passes on the value unchanged: one, or one for each branch of a set operation."""


def _want_nothing() -> None:
    return


@dataclass(frozen=True)
class Column:
    """A column of an operator's output. `origin` is empty if its value is computed.

    `want` is called where rows can only be looked up by this column: it remembers that its computed value has to be
    stored (expressions/known.py).

    Above an outer join a column of the optional side may be NULL where its leaf has no row: the join does not pass a
    restriction by it. `is_never_null`: it is known to have a value in every row.
    """

    name: str
    origin: Origin = frozenset()
    is_never_null: bool = False
    want: Callable[[], None] = field(default=_want_nothing, compare=False, repr=False)


def is_exact(type_: str) -> bool:
    """Whether two values of a type are equal in Spark exactly if they are the same value.

    Not for floats, where -0.0 equals 0.0.
    """
    return type_ in _WHOLE or type_.startswith(_EXACT)


def is_ordered(type_: str) -> bool:
    """Whether the rows with the first or the last values of a type can be searched for: numbers, dates, timestamps."""
    return type_.startswith(_ORDERED)


def is_looked_up(type_: str) -> bool:
    """Whether rows are looked up by values of a type: a lookup then finds those that Spark takes for equal.

    Spark compares floats as lookups do (engine/views/lookups.py): joins, groups, partitions and set operations take
    -0.0 for 0.0, and NaN for NaN. So equal floats need not be the same, and rules that need more than a lookup, such as
    those of ADD and PATCH, ask `is_exact`. Nested types have no index.
    """
    return type_ in _FLOATS or is_exact(type_)


def are_comparable(left: Iterable[LeafColumn], right: Iterable[LeafColumn]) -> bool:
    """Whether `left = right` compares the values as they are, without a cast that changes one."""
    types = {column.type for column in (*left, *right)}
    return types <= _WHOLE or (len(types) == 1 and is_looked_up(*types))
