"""Settings of single columns: mirrored as text, mirrored as a decimal, or excluded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cdc_views.base.names import ColumnName, TableName

MAX_DECIMAL_DIGITS: Final = 38
_DECIMAL: Final = re.compile(r"(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", re.IGNORECASE)


@dataclass(frozen=True)
class DecimalColumn:
    """A column of source.decimal_columns, mirrored as decimal(precision, scale)."""

    column: ColumnName
    precision: int
    scale: int

    @classmethod
    def parse(cls, name: str, type_name: str) -> DecimalColumn:
        """Parse a column's name and `decimal(p,s)`. Raises ValueError."""
        found = _DECIMAL.fullmatch(type_name.strip())
        precision, scale = (int(part or 0) for part in found.groups()) if found else (0, 0)
        if not 0 < precision <= MAX_DECIMAL_DIGITS or scale > precision:
            raise ValueError(
                f'"{name}" has type "{type_name}", wanted decimal(precision, scale) of at most '
                f"{MAX_DECIMAL_DIGITS} digits, with a scale of at most the precision"
            )
        return cls(ColumnName.parse(name), precision, scale)


@dataclass(frozen=True)
class ColumnOptions:
    """The settings of all columns. A column is in at most one of them."""

    text: frozenset[ColumnName] = frozenset()
    decimal: tuple[DecimalColumn, ...] = ()
    excluded: frozenset[ColumnName] = frozenset()

    def decimal_type(self, column: ColumnName) -> tuple[int, int] | None:
        """Return precision and scale of a column of source.decimal_columns, and None for any other column."""
        return next(((each.precision, each.scale) for each in self.decimal if each.column == column), None)

    def named(self) -> Iterable[tuple[str, ColumnName]]:
        """Yield each setting with each of its columns."""
        yield from (("source.text_columns", column) for column in sorted(self.text))
        yield from (("source.decimal_columns", each.column) for each in self.decimal)
        yield from (("source.exclude_columns", column) for column in sorted(self.excluded))

    def of_table(self, table: TableName) -> Iterable[tuple[str, ColumnName]]:
        """Yield the settings and columns of one table."""
        return (found for found in self.named() if found[1].table == table)
