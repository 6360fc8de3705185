"""Compares tables with Postgres as it is now: every column of every row, by the rules of the oracle.

Views are compared with what Postgres answers to the demo's SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.database import ALERTS, SEARCHES
from cdc_views.base.names import TableName
from cdc_views.demo.check import check
from cdc_views.source.catalog import read_tables
from cdc_views.source.connection import connect as connect_to_source
from cdc_views.store.control import last_published
from cdc_views.store.reading import read_table
from cdc_views.testing.postgres.compare import Difference
from cdc_views.testing.postgres.question import Question
from cdc_views.testing.postgres.shadow import connect_for_queries


@dataclass(frozen=True)
class StoredTable:
    """A version of a Delta table."""

    root: Path
    path: str
    version: int


def published_mirrors(warehouse: Path) -> dict[str, StoredTable]:
    """The mirrors of the newest published epoch, by `schema.table`. Raises NothingPublished."""
    tables = last_published(warehouse).tables
    return {
        name: StoredTable(warehouse, table.path, table.version)
        for name, table in tables.items()
        if table.kind == "mirror"
    }


def demo_differences(dsn: str, warehouse: Path) -> list[Difference]:
    """The rows in which the newest epoch (mirrors and views) differs from Postgres's answers to the demo's SQL.

    A view that is missing, failed, or without an SQL text for Postgres counts as different. Raises NothingPublished.
    """
    return check(dsn, warehouse, last_published(warehouse).tables, without=(f"public.{SEARCHES}", ALERTS))


def differences(dsn: str, tables: Mapping[str, StoredTable]) -> list[Difference]:
    """The rows in which the tables differ from Postgres. Nobody may write to Postgres meanwhile."""
    with connect_to_source(dsn) as source:
        sources = read_tables(source, map(TableName.parse, tables))
    found: list[Difference] = []
    with connect_for_queries(dsn) as connection:
        for name, table in sources.items():
            stored = tables[str(name)]
            rows = read_table(stored.root, stored.path, stored.version)
            columns = ", ".join(f'"{column.name}"' for column in table.columns)
            question = Question(f'SELECT {columns} FROM "{name.schema}"."{name.table}"', table.key)
            found += question.differences(connection, str(name), rows)
    return found
