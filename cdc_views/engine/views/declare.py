"""Declares the Delta table of every view to the engine, with the columns and types that Spark's analyser finds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pyspark.sql import SparkSession

from cdc_views.engine.tables import Tables
from cdc_views.engine.views.analysis import Shapes, TextColumns, analyse_view, text_columns
from cdc_views.engine.views.internal_views import (
    add_internal_table,
    internal_tables,
    levels_of,
    plan_with_internal_views,
)
from cdc_views.engine.views.queries.small_queries import are_possible
from cdc_views.engine.views.search.tables import PartName, SearchTable, search_spec, search_table
from cdc_views.engine.views.view_tables import BAG_KEY, HASH
from cdc_views.errors import BadView, UnsupportedType, UnsupportedView
from cdc_views.plan.compiled import CompiledView
from cdc_views.search import IndexOptions
from cdc_views.store.control import TableVersion
from cdc_views.store.warehouse import TableSpec
from cdc_views.views.kinds.search_index import SearchIndexKind

NO_VIEWS: Final[Mapping[str, TableVersion]] = MappingProxyType({})
NONE_REFUSED: Final[Mapping[str, BadView]] = MappingProxyType({})


def declare_views(
    spark: SparkSession,
    tables: Tables,
    views: Iterable[CompiledView],
    running: Mapping[str, TableVersion] = NO_VIEWS,
    refused: Mapping[str, BadView] = NONE_REFUSED,
    texts: dict[str, TextColumns] | None = None,
) -> dict[str, str]:
    """Declare the table of every view to `tables`, parents before children; returns the failed views and the reasons.

    Their text columns are added to `texts`, which has those of the mirrors.

    `running` are the views that the last engine ran with the same text, and where they are published; `refused` are
    those of them that this version refuses. A running view fails and keeps its table if it is refused, or if Spark no
    longer understands it: a table that it reads has other columns, or Spark was upgraded. For a view that is not
    running, raises BadView where Spark does not understand the query, and UnsupportedView for a column that cannot be
    published, and StrictViewIsFull.
    """
    shapes, failures = Shapes(spark), dict[str, str]()
    texts = mirrored_text_columns(tables) if texts is None else texts
    for view in views:
        name = view.definition.name
        try:
            if name in refused:
                raise refused[name]
            _require_parents(view, failures)
            declare_view(shapes, tables, texts, view)
        except BadView as error:
            if name not in running:
                raise
            failures[name] = error.message
            tables.add(_published_spec(view, tables, running[name]))
    shapes.forget()
    return failures


def declare_internal_views(
    spark: SparkSession,
    tables: Tables,
    levels: Iterable[Sequence[CompiledView]],
    failures: Collection[str],
    texts: Mapping[str, TextColumns],
) -> list[list[CompiledView]]:
    """Declare the internal views of the views that are declared and have not failed.

    `texts` has the text columns of all tables and views. Returns the levels with those of the internal views between
    them: they read what their views read. There are none where the driver looks nothing up.
    """
    if not (tables.warehouse.allows_direct and are_possible(spark)):
        return [[*level] for level in levels]
    shapes, found = Shapes(spark), list[list[CompiledView]]()
    for level in levels:
        declared = [view for view in level if view.definition.name not in failures]
        internal = [each for view in declared for each in internal_tables(shapes, tables.specs, texts, view)]
        for each in internal:
            add_internal_table(tables, each.spec)
        found += [*levels_of(internal), [*level]]
    shapes.forget()
    return found


def declare_search_tables(
    tables: Tables, views: Iterable[CompiledView], failures: Collection[str] = ()
) -> list[list[SearchTable]]:
    """Declare the tables of the search indexes among the views that are declared and have not failed.

    Returns them in two levels, which come after all views. The totals are the second: those of all documents are
    counted when their postings are made.
    """
    indexes = [view for view in views if view.definition.kind == SearchIndexKind.name]
    parts: tuple[PartName, ...] = ("postings", "totals")
    levels: list[list[SearchTable]] = [[] for _ in parts]
    for view in (view for view in indexes if view.definition.name not in failures):
        documents = tables.specs[view.definition.name]
        for part, level in zip(parts, levels, strict=True):
            table = search_table(view, IndexOptions.of_record(documents.kind), part)
            add_internal_table(tables, search_spec(table, documents))
            level.append(table)
    return levels


def mirrored_text_columns(tables: Tables) -> dict[str, TextColumns]:
    """The text columns of every mirror, by table."""
    return {name: text_columns(source, tables.specs[name].schema) for name, source in tables.sources.items()}


def declare_view(shapes: Shapes, tables: Tables, texts: dict[str, TextColumns], view: CompiledView) -> None:
    """Declare the table of one view whose inputs are declared, and add its text columns to `texts`.

    `shapes` may serve many views. Raises as `declare_views` does for a view that is not running.
    """
    analysed = analyse_view(shapes, tables.specs, texts, view)
    if view.definition.is_strict:
        specs = {**tables.specs, analysed.spec.name: analysed.spec}
        plan_with_internal_views(shapes, specs, texts, view, is_local=are_possible(shapes.session))
    try:
        tables.add(analysed.spec)
    except UnsupportedType as error:
        raise UnsupportedView(f"{view.definition.place()}: {error.message}", hint=error.hint) from None
    texts[analysed.spec.name] = analysed.text_columns


def _require_parents(view: CompiledView, failures: Collection[str]) -> None:
    for source in view.inputs:
        if source in failures:
            raise BadView(f'{view.definition.place()}: reads view "{source}", which has failed')


def _published_spec(view: CompiledView, tables: Tables, published: TableVersion) -> TableSpec:
    """The table of a view as it is published, whatever the view's SELECT returns now."""
    schema = tables.warehouse.rows_schema(published.path, published.version)
    # The key of a refused view is not known; nothing is committed to its table.
    key = BAG_KEY if HASH in schema.names else view.key or ()
    return TableSpec(view.definition.name, published.path, schema, key, view.definition.layout)
