"""Names of source tables."""

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
