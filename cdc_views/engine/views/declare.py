"""The Delta table of each view: its columns and types as Spark's analyser gives them, its key, its path."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from cdc_views.engine.epoch.tables import Tables, mirror_spec
from cdc_views.engine.spark.session import require_alive
from cdc_views.engine.views.determinism import check_determinism
from cdc_views.engine.views.dialect_notes import notes
from cdc_views.engine.views.failures import failure_of, first_line
from cdc_views.engine.views.plan_tree import AnalysedPlan
from cdc_views.engine.views.relations import VIEW_FOLDER
from cdc_views.engine.views.shapes import Shapes
from cdc_views.engine.views.strategies.full import HASH, NUMBER
from cdc_views.engine.views.text_columns import TextColumns, require_text_columns_as_meant, text_columns
from cdc_views.errors import BadView, UnsupportedType, UnsupportedView
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.dialect import Note
from cdc_views.source.catalog import SourceTable
from cdc_views.store.control import TableVersion
from cdc_views.store.warehouse import TableSpec
from cdc_views.views.nesting import nested_too_deeply

NO_VIEWS: Final[Mapping[str, TableVersion]] = MappingProxyType({})
NONE_REFUSED: Final[Mapping[str, BadView]] = MappingProxyType({})

# Types that Delta cannot hold, that need a table feature some reader lacks, or that have no equality.
REFUSED: Final = {
    T.MapType: "wrap it in map_entries() or to_json()",
    T.VariantType: "cast it to string",
    T.TimestampNTZType: "cast it to timestamp",
    T.DayTimeIntervalType: "cast it to string",
    T.YearMonthIntervalType: "cast it to string",
    T.NullType: "cast it to the type that it should have",
}


# Delta refuses them, unless columns are mapped to other names.
_NOT_IN_NAMES: Final = frozenset(" ,;{}()\n\t=")


def declare_views(
    spark: SparkSession,
    tables: Tables,
    views: Iterable[CompiledView],
    running: Mapping[str, TableVersion] = NO_VIEWS,
    refused: Mapping[str, BadView] = NONE_REFUSED,
) -> dict[str, str]:
    """Make the table of every view known to `tables`, parents before children; returns the views that have failed.

    `running` are the views that the last engine ran with the same text, and where they are published. One of them that
    Spark no longer understands, since a table that it reads has other columns, or Spark is another one, has failed, and
    keeps its table; so have the `refused` ones, which are among them. Of others raises BadView where Spark does not
    understand the query, UnsupportedView for a column that cannot be published.
    """
    shapes, failures = Shapes(spark), dict[str, str]()
    for view in views:
        name = view.definition.name
        try:
            if name in refused:
                raise refused[name]
            _require_parents(view, failures)
            declare_view(shapes, tables, view)
        except BadView as error:
            if name not in running:
                raise
            failures[name] = error.message
            tables.add(_published_spec(view, tables, running[name]))
    shapes.forget()
    return failures


def _require_parents(view: CompiledView, failures: Collection[str]) -> None:
    for source in view.inputs:
        if source in failures:
            raise BadView(f'{view.definition.place()}: reads view "{source}", which has failed')


def _published_spec(view: CompiledView, tables: Tables, published: TableVersion) -> TableSpec:
    """The table of a view as it is published, whatever the view's SELECT gives now."""
    schema = tables.warehouse.rows_schema(published.path, published.version)
    # Of one that is refused no key is known, and nothing is committed to it.
    key = (HASH, NUMBER) if HASH in schema.names else view.key or ()
    return TableSpec(view.definition.name, published.path, schema, key, view.definition.layout)


def declare_view(shapes: Shapes, tables: Tables, view: CompiledView) -> None:
    """Make the table of one view known, whose inputs are; `shapes` may serve many. Raises like `declare_views`."""
    analysed = analyse_view(shapes, tables.specs, tables.text_columns, view)
    try:
        tables.add(analysed.spec)
    except UnsupportedType as error:
        raise UnsupportedView(f"{view.definition.place()}: {error.message}", hint=error.hint) from None
    tables.text_columns[analysed.spec.name] = analysed.text_columns


def analyse_views(
    spark: SparkSession, sources: Iterable[SourceTable], views: Iterable[CompiledView]
) -> Iterator[tuple[CompiledView, AnalysedView | BadView]]:
    """Analyse views, parents before children, where there is no warehouse; views above a bad one are skipped."""
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
        except BadView as error:
            yield view, error
            continue
        specs[analysed.spec.name], texts[analysed.spec.name] = analysed.spec, analysed.text_columns
        yield view, analysed
    shapes.forget()


@dataclass(frozen=True)
class AnalysedView:
    """A view as Spark's analyser sees it: its table, its columns that are text only here.

    `notes` says where Postgres would answer otherwise.
    """

    spec: TableSpec
    text_columns: TextColumns
    notes: tuple[Note, ...] = ()


def analyse_view(
    shapes: Shapes,
    specs: Mapping[str, TableSpec],
    text_columns: Mapping[str, TextColumns],
    view: CompiledView,
    *,
    with_notes: bool = False,
) -> AnalysedView:
    """Analyse a view, whose inputs are in `specs` and `text_columns`. Raises like `declare_views`."""
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
        if "StackOverflowError" in str(error):
            raise nested_too_deeply(view.definition) from None
        raise BadView(f"{view.definition.place()}: {failure_of(error, view)}") from None
    schema = frame.schema
    _check(view, schema)
    try:
        texts = require_text_columns_as_meant(view, plan, relations, text_columns)
    except RecursionError:
        raise nested_too_deeply(view.definition) from None
    check_determinism(frame, view, relations)
    named = {schema.names[number]: tag for number, tag in texts.items()}
    found = notes(view, plan, relations) if with_notes else ()
    return AnalysedView(_spec(view, schema), named, tuple(found))


def _spec(view: CompiledView, schema: T.StructType) -> TableSpec:
    arrow = to_arrow_schema(schema, timezone="UTC")
    key = view.key
    if key is None:
        key = (HASH, NUMBER)
        arrow = arrow.append(pa.field(HASH, pa.int64())).append(pa.field(NUMBER, pa.int32()))
    arrow = pa.schema([field.with_nullable(True) for field in arrow])
    name = view.definition.name
    return TableSpec(name, view_path(view), arrow, key, view.definition.layout)


def view_path(view: CompiledView) -> str:
    """The folder of a view's table, below the warehouse; a rebuild adds a suffix."""
    return f"{VIEW_FOLDER}{view.definition.name}/{view.fingerprint}"


def _check(view: CompiledView, schema: T.StructType) -> None:
    place = view.definition.place()
    names = [field.name.lower() for field in schema.fields]
    for field in schema.fields:
        if names.count(field.name.lower()) > 1:
            raise BadView(f'{place}: column "{field.name}" appears twice', hint="name the columns apart with AS")
        if set(field.name) & _NOT_IN_NAMES:
            raise BadView(
                f'{place}: column "{field.name}" has a character that Delta does not allow in a name',
                hint="give it another name with AS",
            )
        if field.name.lower().startswith("_cv_"):
            raise BadView(f'{place}: column "{field.name}" begins with "_cv_", which is kept for hidden columns')
        if refused := _refused(field.dataType):
            raise UnsupportedView(
                f'{place}: column "{field.name}" has type {refused.simpleString()}', hint=REFUSED[type(refused)]
            )


def _refused(kind: T.DataType) -> T.DataType | None:
    if type(kind) in REFUSED:
        return kind
    if isinstance(kind, T.ArrayType):
        return _refused(kind.elementType)
    if isinstance(kind, T.StructType):
        return next((inner for field in kind.fields if (inner := _refused(field.dataType))), None)
    return None


def _place(view: CompiledView, error: AnalysisException | ParseException, relations: Mapping[str, str]) -> str:
    """`file:line:column` of what Spark complains about; of the SELECT where it does not say."""
    for context in error.getQueryContext():
        if context.fragment():
            return view.definition.place(view.offset_of(context.startIndex(), relations))
    return view.definition.place()
