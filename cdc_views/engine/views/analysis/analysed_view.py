"""A view as Spark's analyser sees it: the table that it needs, and whether it can be maintained exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from cdc_views.engine.spark.lost_driver import require_alive
from cdc_views.engine.views.analysis.determinism import check_determinism
from cdc_views.engine.views.analysis.dialect_notes import notes
from cdc_views.engine.views.analysis.plan_tree import AnalysedPlan
from cdc_views.engine.views.analysis.result_columns import check_columns
from cdc_views.engine.views.analysis.shapes import Shapes
from cdc_views.engine.views.analysis.texts import TextColumns, check_text_columns
from cdc_views.engine.views.failures import failure_of, first_line, is_stack_overflow
from cdc_views.engine.views.planning import plan_of
from cdc_views.engine.views.saved.searches import is_saved, searches_of
from cdc_views.engine.views.view_tables import view_spec
from cdc_views.errors import BadView
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.dialect import Note
from cdc_views.plan.incremental.maintenance import Maintenance
from cdc_views.store.warehouse import TableSpec
from cdc_views.views.nesting import nested_too_deeply


@dataclass(frozen=True)
class AnalysedView:
    """The table of a view, and those of its columns that are text in Spark but not in Postgres.

    `maintenance` is how it is maintained, `notes` are the places where Postgres would give another answer.
    """

    spec: TableSpec
    text_columns: TextColumns
    maintenance: Maintenance
    notes: tuple[Note, ...] = ()


def analyse_view(
    shapes: Shapes,
    specs: Mapping[str, TableSpec],
    text_columns: Mapping[str, TextColumns],
    view: CompiledView,
    *,
    with_notes: bool = False,
) -> AnalysedView:
    """Analyse a view; `specs` and `text_columns` describe its inputs.

    Raises BadView where Spark does not understand the query, UnsupportedView for a column that cannot be published,
    for a result that is not a function of the inputs, and for a text column that is used as another type.
    """
    if is_saved(view):
        searches_of(view, specs)
    relations = {source: shapes.of(specs[source]) for source in view.inputs}
    try:
        frame = shapes.session.sql(view.query(relations))
        plan = AnalysedPlan(frame)
    except (AnalysisException, ParseException) as error:
        raise BadView(
            f"{_place(view, error, relations)}: {first_line(error)}", hint="the language of views is Spark SQL"
        ) from None
    except (PySparkException, Py4JJavaError) as error:
        require_alive(shapes.session, error)
        if is_stack_overflow(error):
            raise nested_too_deeply(view.definition) from None
        raise BadView(f"{view.definition.place()}: {failure_of(error, view)}") from None
    schema = frame.schema
    check_columns(view.definition, schema)
    try:
        texts = check_text_columns(view, plan, relations, text_columns)
    except RecursionError:
        raise nested_too_deeply(view.definition) from None
    check_determinism(frame, view, relations)
    named = {schema.names[number]: tag for number, tag in texts.items()}
    found = notes(view, plan, relations) if with_notes else ()
    spec = view_spec(view, schema)
    return AnalysedView(spec, named, plan_of(view, {**specs, spec.name: spec}), tuple(found))


def _place(view: CompiledView, error: AnalysisException | ParseException, relations: Mapping[str, str]) -> str:
    """`file:line:column` of the SQL that Spark complains about; of the SELECT if Spark does not say."""
    for context in error.getQueryContext():
        if context.fragment():
            return view.definition.place(view.offset_of(context.startIndex(), relations))
    return view.definition.place()
