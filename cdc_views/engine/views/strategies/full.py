"""FULL: run the whole query and compare the result with the stored rows.

Rows are compared by the view's key. In a bag, a view without a provable key, rows are identified by the hidden columns
of view_tables.py: if a row has n copies and then m, only |n - m| stored rows change.

The driver holds a result, or a difference, only up to a size limit. A larger one stays in Spark up to the commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from cdc_views import metrics
from cdc_views.engine.views.strategies.difference import difference, has_floats, is_unique
from cdc_views.engine.views.strategies.guards import TOO_LARGE, bounded, is_raised, key_not_unique, unique
from cdc_views.engine.views.strategies.recompute import Recompute
from cdc_views.engine.views.strategies.results import changes_of, require_columns
from cdc_views.engine.views.view_tables import identified, own_columns
from cdc_views.errors import ColumnsDiffer
from cdc_views.plan.compiled import CompiledView
from cdc_views.store.commits import frame_of
from cdc_views.store.delta_log import quoted
from cdc_views.store.warehouse import Changes, TableSpec

_DELETED: Final = "_cv_deleted"
_PRESENT: Final = "_cv_present"


def full(work: Recompute) -> Changes | None:
    """Recompute the view; returns None if its stored rows are equal already."""
    spec = work.spec
    recomputed = _recomputed(work)
    if isinstance(work.stored, pa.Table):
        rows = _collected(recomputed, work)
        if rows is not None:
            return _in_driver(rows, work.stored, spec, work.view)
    checked = recomputed if work.view.key is None else unique(recomputed, spec.key)
    require_columns(to_arrow_schema(checked.schema, timezone="UTC"), spec)
    if work.stored is None or (isinstance(work.stored, pa.Table) and not work.stored.num_rows):
        return Changes(deleted=None, rows=checked, all_new=True)
    stored = work.stored if isinstance(work.stored, DataFrame) else frame_of(work.session, work.stored)
    return _by_spark(_difference(checked, stored, spec), work)


def _recomputed(work: Recompute) -> DataFrame:
    rows = work.session.sql(work.view.query(work.relations))
    columns = own_columns(work.view, work.spec)
    if len(rows.columns) != len(columns):
        raise ColumnsDiffer(f"the result has {len(rows.columns)} columns, wanted {len(columns)}")
    return identified(rows.toDF(*columns), work.view)


def _collected(rows: DataFrame, work: Recompute) -> pa.Table | None:
    """Collect the rows in the driver; None if they exceed its limit."""
    try:
        return bounded(rows, work.most).toArrow()
    except (PySparkException, Py4JJavaError) as error:
        if is_raised(error, TOO_LARGE):
            return None
        raise


def _in_driver(rows: pa.Table, stored: pa.Table, spec: TableSpec, view: CompiledView) -> Changes | None:
    metrics.count(rows_recomputed=rows.num_rows)
    require_columns(rows.schema, spec)
    recomputed = rows.cast(spec.schema)
    if view.key is not None and not is_unique(recomputed, spec.key):
        raise key_not_unique(spec.key)
    deleted, upserts = difference(recomputed, stored, spec.key)
    return changes_of(deleted, upserts, all_new=not stored.num_rows)


def _by_spark(difference: DataFrame, work: Recompute) -> Changes | None:
    spec = work.spec
    found = _collected(difference, work)
    if found is None:
        deleted = difference.where(F.col(_DELETED)).select(*map(quoted, spec.key))
        rows = difference.where(~F.col(_DELETED)).select(*map(quoted, spec.schema.names))
        return Changes(deleted=deleted, rows=rows)
    is_deleted = found.column(_DELETED)
    rows = found.filter(pc.invert(is_deleted)).select(spec.schema.names).cast(spec.schema)
    return changes_of(found.filter(is_deleted).select(list(spec.key)), rows)


def _difference(recomputed: DataFrame, stored: DataFrame, spec: TableSpec) -> DataFrame:
    """The rows to delete (`_cv_deleted` is true and only the key columns are set) and the rows to upsert."""
    new = recomputed.withColumn(_PRESENT, F.lit(True)).alias("new")
    old = stored.withColumn(_PRESENT, F.lit(True)).alias("old")
    vanished = _column("new", _PRESENT).isNull()

    def result(name: str) -> Column:
        value = _column("new", name)
        return (F.when(vanished, _column("old", name)).otherwise(value) if name in spec.key else value).alias(name)

    return (
        new.join(old, _same(spec.key), "full_outer")
        .where(~(_same([*spec.schema.names, _PRESENT]) & _same_signs(spec)))
        .select(vanished.alias(_DELETED), *map(result, spec.schema.names))
    )


def _same(columns: Iterable[str]) -> Column:
    """NULL-safe equality of these columns between the new and the old row."""
    pairs = (_column("new", name).eqNullSafe(_column("old", name)) for name in columns)
    return reduce(Column.__and__, pairs, F.lit(True))


def _same_signs(spec: TableSpec) -> Column:
    """Whether floats that are equal have the same sign: -0.0 equals 0.0, but is another value."""
    names = (field.name for field in spec.schema if has_floats(field.type))
    texts = ((_column("new", name).cast("string"), _column("old", name).cast("string")) for name in names)
    return reduce(Column.__and__, (new.eqNullSafe(old) for new, old in texts), F.lit(True))


def _column(side: str, name: str) -> Column:
    return F.col(f"{side}.{quoted(name)}")
