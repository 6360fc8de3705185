"""Names of source tables and their columns, and their written form.

The parts of a name are separated by dots: `schema.table`. A part that contains a dot, or begins with a double quote, is
in double quotes, as in SQL: `"my.schema".orders`. Any other part is written as it is. Names are case-sensitive.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

HIDDEN: Final = "_cv_"
"""The first letters of what tables and the warehouse have of ours: readers do not see it, and users may not name it."""

_DEFAULT_SCHEMA: Final = "public"
_PART: Final = re.compile(r'(?:"((?:[^"]|"")+)"|([^".][^.]*))(?=\.|\Z)')


@dataclass(frozen=True, order=True, slots=True)
class TableName:
    """A source table: schema and name, unquoted and case-sensitive."""

    schema: str
    table: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parse `schema.table`; without a schema, the table is in `public`. Raises ValueError."""
        parts = _parts(text)
        if len(parts) not in (1, 2):
            raise ValueError(f"a table is schema.table or table, {_DOTS}")
        return cls(_DEFAULT_SCHEMA if len(parts) == 1 else parts[0], parts[-1])

    def __str__(self) -> str:
        return _dotted(self.schema, self.table)


@dataclass(frozen=True, order=True, slots=True)
class ColumnName:
    """A column of a source table, unquoted and case-sensitive."""

    table: TableName
    column: str

    @classmethod
    def parse(cls, text: str) -> ColumnName:
        """Parse `schema.table.column`, or `table.column` for a table in `public`. Raises ValueError."""
        parts = _parts(text)
        if len(parts) not in (2, 3):
            raise ValueError(f"a column is schema.table.column or table.column, {_DOTS}")
        return cls(TableName(_DEFAULT_SCHEMA if len(parts) == 2 else parts[0], parts[-2]), parts[-1])

    def __str__(self) -> str:
        return _dotted(self.table.schema, self.table.table, self.column)


def is_table(name: str) -> bool:
    """Whether a name in the manifest is that of a table. Names of views have no dot."""
    return "." in name


_DOTS: Final = "with double quotes around a part that holds a dot"


def distinct_names(names: Iterable[str]) -> list[str]:
    """Names of columns, of which two of a join may be the same: the second becomes `name_1`, as in DuckDB."""
    found: list[str] = []
    for name in names:
        numbered = (f"{name}_{number}" for number in itertools.count(1))
        found.append(next(free for free in itertools.chain([name], numbered) if free not in found))
    return found


def _parts(text: str) -> list[str]:
    """Split a name into its parts, without quotes; returns an empty list if it is not a valid name."""
    parts: list[str] = []
    end = -1
    while end < len(text):
        found = _PART.match(text, end + 1)
        if found is None:
            return []
        quoted, plain = found.groups()
        parts.append(plain if quoted is None else quoted.replace('""', '"'))
        end = found.end()
    return parts


def _dotted(*parts: str) -> str:
    return ".".join(
        '"{}"'.format(part.replace('"', '""')) if "." in part or part[:1] == '"' else part for part in parts
    )
