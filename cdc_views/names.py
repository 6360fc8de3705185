"""Names of source tables and of their columns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True, slots=True)
class TableName:
    """A table of the source, by schema and name, unquoted and case-sensitive."""

    schema: str
    table: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Read `schema.table`; a name alone is in schema `public`."""
        schema, dot, table = text.rpartition(".")
        return cls(schema if dot else "public", table)

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, order=True, slots=True)
class ColumnName:
    """A column of a source table, unquoted and case-sensitive."""

    table: TableName
    column: str

    @classmethod
    def parse(cls, text: str) -> ColumnName:
        """Read `schema.table.column`, or `table.column` for a table of schema `public`."""
        table, _, column = text.rpartition(".")
        return cls(TableName.parse(table), column)

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"
