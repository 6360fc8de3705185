"""What the user declared, checked as far as it can be without Spark."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import psycopg

from cdc_views.capture.types import arrow_schema
from cdc_views.config import Settings
from cdc_views.plan.compiled import CompiledView, compile_view
from cdc_views.source.catalog import SourceIdentity, SourceTable, read_identity, read_tables
from cdc_views.views.definition import read_views
from cdc_views.views.graph import ViewGraph


@dataclass(frozen=True)
class Declared:
    """What the user declared, checked as far as it can be without Spark."""

    sources: list[SourceTable]
    identity: SourceIdentity
    levels: list[list[CompiledView]]


def declare(settings: Settings, connection: psycopg.Connection) -> Declared:
    """Read the source's catalog and the view files. Raises BadView, UnknownTable, UnsupportedType."""
    definitions = read_views(settings.views)
    graph = ViewGraph(definitions, settings.source.tables)
    found = read_tables(connection, settings.source.tables, settings.source.text_columns)
    for table in found.values():
        arrow_schema(table)  # a type that has no exact form is refused here
    keys = {str(name): table.key for name, table in found.items()}
    columns = {str(name): {c.name: c.mirrored_type for c in table.columns} for name, table in found.items()}
    levels: list[list[CompiledView]] = []
    for level in graph.levels:
        compiled = [compile_view(view, graph, columns, keys) for view in level]
        levels.append([_told_apart_by_parents(view, levels) for view in compiled])
        keys |= {view.definition.name: view.key for view in levels[-1] if view.key is not None}
    return Declared([found[name] for name in settings.source.tables], read_identity(connection), levels)


def _told_apart_by_parents(view: CompiledView, above: list[list[CompiledView]]) -> CompiledView:
    """A view whose parent is another one now has another table: its rows are those of another query."""
    parents = {parent.definition.name: parent.fingerprint for level in above for parent in level}
    facts = [view.fingerprint, *(parents[name] for name in view.inputs if name in parents)]
    if len(facts) == 1:
        return view
    return replace(view, fingerprint=hashlib.sha256("\0".join(facts).encode()).hexdigest()[: len(view.fingerprint)])
