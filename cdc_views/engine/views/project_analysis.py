"""Analyses all views of a project without a warehouse, for commands that only check or explain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_views.engine.tables import mirror_spec
from cdc_views.engine.views.analysis import AnalysedView, Shapes, TextColumns, analyse_view, text_columns
from cdc_views.engine.views.internal_views import plan_with_internal_views
from cdc_views.errors import BadView
from cdc_views.plan.compiled import CompiledView
from cdc_views.source.catalog import SourceTable
from cdc_views.store.warehouse import TableSpec


def analyse_views(
    spark: SparkSession, sources: Iterable[SourceTable], views: Iterable[CompiledView], *, is_local: bool = True
) -> Iterator[tuple[CompiledView, AnalysedView | BadView]]:
    """Analyse views, parents before children; views above a bad one are skipped.

    `is_local`: whether the tasks of the engine's Spark run on its machine.
    """
    specs: dict[str, TableSpec] = {}
    texts: dict[str, TextColumns] = {}
    views = [view for view in views if not view.is_refused]
    for source in sources:
        spec = mirror_spec(source, "")
        texts[spec.name] = text_columns(source, spec.schema)
        nullable = {column.name: not column.not_null for column in source.columns}
        schema = pa.schema([field.with_nullable(nullable[field.name]) for field in spec.schema])
        specs[spec.name] = replace(spec, schema=schema)
    shapes = Shapes(spark)
    for view in views:
        if not specs.keys() >= set(view.inputs):
            continue
        try:
            analysed = analyse_view(shapes, specs, texts, view, with_notes=True)
            known = {**specs, analysed.spec.name: analysed.spec}
            maintenance = plan_with_internal_views(shapes, known, texts, view, is_local=is_local)
        except BadView as error:
            yield view, error
            continue
        specs[analysed.spec.name], texts[analysed.spec.name] = analysed.spec, analysed.text_columns
        yield view, replace(analysed, maintenance=maintenance)
    shapes.forget()
