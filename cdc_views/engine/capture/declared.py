"""What the user declared: tables and views, checked as far as possible without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cdc_views.base.names import TableName
from cdc_views.base.stopped import StoppedTable
from cdc_views.config import Settings
from cdc_views.engine.capture.captures import known_takeover
from cdc_views.engine.capture.mirrored import published_of, read_mirrored
from cdc_views.errors import BadView, CdcViewsError
from cdc_views.plan.compiled import CompiledView, compile_view, fingerprint_with, refused_view
from cdc_views.source.catalog import SourceIdentity, SourceTable, read_identity
from cdc_views.source.connection import Connection
from cdc_views.store.control import BUILDING, PUBLISHING, ControlRecord, TableVersion, TakeoverDetail
from cdc_views.views.definition import ViewDefinition, read_views
from cdc_views.views.graph import ViewGraph


@dataclass(frozen=True)
class Declared:
    """The tables and views of a project. `stopped` and `changed` are as in Mirrored.

    `running` are the views whose text is the one that the last engine ran, and where they are published. `refused` are
    those of them that this version refuses. `removed` are the views of the last epoch that are no longer declared.
    """

    sources: list[SourceTable]
    identity: SourceIdentity
    levels: list[list[CompiledView]]
    stopped: Mapping[TableName, StoppedTable] = field(default_factory=dict)
    changed: Mapping[TableName, CdcViewsError] = field(default_factory=dict)
    running: Mapping[str, TableVersion] = field(default_factory=dict)
    refused: Mapping[str, BadView] = field(default_factory=dict)
    removed: tuple[str, ...] = ()

    @property
    def definitions(self) -> list[ViewDefinition]:
        """What the view files declare."""
        return [view.definition for level in self.levels for view in level]


def declare(
    settings: Settings,
    connection: Connection,
    records: Sequence[ControlRecord] = (),
    definitions: Sequence[ViewDefinition] | None = None,
) -> Declared:
    """Read the source's catalog and the view files. The `records` of the control log say which views are running.

    With the `definitions` of a run that continues, the view files are not read.
    Raises BadView for a view that is not running and as `require_views_folder` does, UnknownTable, UnsupportedType.
    """
    if definitions is None:
        definitions = read_views(settings.views)
        require_views_folder(settings.views, records)
    graph = ViewGraph(definitions, settings.source.tables)
    mirrored = read_mirrored(settings, connection, records)
    running = _running(definitions, records)
    refused: dict[str, BadView] = {}
    compiled: dict[str, CompiledView] = {}
    levels: list[list[CompiledView]] = []
    for level in graph.levels:
        views = []
        for definition in level:
            try:
                views.append(compile_declared(definition, graph, mirrored.sources, compiled))
            except BadView as error:
                if definition.name not in running:
                    raise
                refused[definition.name] = error
                views.append(refused_view(definition, graph.inputs(definition.name)))
        levels.append(views)
        compiled |= {view.definition.name: view for view in views}
    removed = _published_views(records) - {definition.name for definition in definitions}
    return Declared(
        mirrored.sources,
        read_identity(connection),
        levels,
        mirrored.stopped,
        mirrored.changed,
        running,
        refused,
        tuple(sorted(removed)),
    )


def require_views_folder(folder: Path, records: Sequence[ControlRecord]) -> None:
    """Raise BadView if the folder of views is not there, but the last published epoch has views.

    A project with mirrors alone needs no folder.
    """
    if not folder.exists() and (views := _published_views(records)):
        names = ", ".join(f'"{view}"' for view in sorted(views))
        raise BadView(
            f'no folder "{folder}" of views, and the last epoch has {names}',
            hint='correct the setting "views", or mount the folder; to remove all views, create it without files',
        )


def _published_views(records: Sequence[ControlRecord]) -> set[str]:
    """The views of the user in the last published epoch, of any generation."""
    last = next((each for each in reversed(records) if each.kind in PUBLISHING), None)
    return set() if last is None else {name for name, table in last.tables.items() if table.kind == "view"}


def texts_of(views: Iterable[ViewDefinition]) -> dict[str, str]:
    """The hash of each view's text, for the detail of a takeover."""
    return {view.name: view.text_hash for view in views}


def edited_files(folder: Path, definitions: Sequence[ViewDefinition]) -> list[str]:
    """The names of the view files that declare something else than these definitions. Raises BadView."""
    found = read_views(folder)
    here, before = texts_of(found), texts_of(definitions)
    return sorted({each.file.name for each in (*found, *definitions) if here.get(each.name) != before.get(each.name)})


def _running(views: Iterable[ViewDefinition], records: Sequence[ControlRecord]) -> dict[str, TableVersion]:
    known = known_takeover(records)
    published = published_of(records, known)
    if known is None or published is None:
        return {}
    texts = TakeoverDetail.read(known).views
    names = [name for name, text in texts_of(views).items() if texts.get(name) == text]
    found = {name: published.tables[name] for name in names if name in published.tables}
    return {name: table for name, table in found.items() if table.status != BUILDING}


def compile_declared(
    definition: ViewDefinition, graph: ViewGraph, sources: Iterable[SourceTable], parents: Mapping[str, CompiledView]
) -> CompiledView:
    """Compile a view of the graph over these tables; `parents` are the views that it reads. Raises UnsupportedView."""
    tables = {str(table.name): table for table in sources}
    columns = {name: {column.name: column.mirrored_type for column in table.columns} for name, table in tables.items()}
    keys = {name: table.key for name, table in tables.items()}
    keys |= {name: view.key for name, view in parents.items() if view.key is not None}
    return _with_parents(compile_view(definition, graph, columns, keys), parents)


def _with_parents(view: CompiledView, parents: Mapping[str, CompiledView]) -> CompiledView:
    """The view with a fingerprint that includes its parents: if a parent's definition changes, so does its table."""
    facts = [view.fingerprint, *(parents[name].fingerprint for name in view.inputs if name in parents)]
    if len(facts) == 1:
        return view
    return replace(view, fingerprint=fingerprint_with(facts))
