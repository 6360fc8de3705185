"""What the user declared, checked as far as it can be without Spark."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import psycopg

from cdc_views.capture.types import arrow_schema
from cdc_views.config import Settings
from cdc_views.plan.compiled import CompiledView, compile_view
from cdc_views.source.catalog import SourceIdentity, SourceTable, read_identity, read_tables
from cdc_views.views.definition import ViewDefinition, read_views
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
    found = read_tables(connection, settings.source.tables, settings.source.columns)
    for table in found.values():
        arrow_schema(table)  # a type that has no exact form is refused here
    compiled: dict[str, CompiledView] = {}
    levels: list[list[CompiledView]] = []
    for level in graph.levels:
        levels.append([compile_declared(view, graph, found.values(), compiled) for view in level])
        compiled |= {view.definition.name: view for view in levels[-1]}
    return Declared([found[name] for name in settings.source.tables], read_identity(connection), levels)


def compile_declared(
    definition: ViewDefinition, graph: ViewGraph, sources: Iterable[SourceTable], parents: Mapping[str, CompiledView]
) -> CompiledView:
    """Compile a view of the graph over these tables; `parents` has the views that it reads. Raises UnsupportedView."""
    tables = {str(table.name): table for table in sources}
    columns = {name: {column.name: column.mirrored_type for column in table.columns} for name, table in tables.items()}
    keys = {name: table.key for name, table in tables.items()}
    keys |= {name: view.key for name, view in parents.items() if view.key is not None}
    return _told_apart_by_parents(compile_view(definition, graph, columns, keys), parents)


def _told_apart_by_parents(view: CompiledView, parents: Mapping[str, CompiledView]) -> CompiledView:
    """A view whose parent is another one now has another table: its rows are those of another query."""
    facts = [view.fingerprint, *(parents[name].fingerprint for name in view.inputs if name in parents)]
    if len(facts) == 1:
        return view
    return replace(view, fingerprint=hashlib.sha256("\0".join(facts).encode()).hexdigest()[: len(view.fingerprint)])
