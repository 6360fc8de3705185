"""FULL: run the whole query and compare it with the stored rows.

Rows are compared by the view's key. A view without a provable key is a bag: its rows are identified
by the hash of all columns and a number among the rows of the same hash, so that n copies of a row
that become m touch |n - m| stored rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_views.engine.strategies.difference import difference
from cdc_views.engine.strategies.recompute import Recompute
from cdc_views.plan.compiled import CompiledView
from cdc_views.store.schema import quoted
from cdc_views.store.warehouse import Changes, TableSpec

HASH: Final = "_cv_hash"
NUMBER: Final = "_cv_number"
_DELETED: Final = "_cv_deleted"
_PRESENT: Final = "_cv_present"


def full(work: Recompute) -> Changes | None:
    """Recompute the view; None if its stored rows are equal already."""
    view, spec = work.view, work.spec
    recomputed = identified(work.session.sql(view.query(work.relations)).toDF(*own_columns(view, spec)), view)
    if work.stored is None:
        return Changes(deleted=None, rows=recomputed, all_new=True)
    if isinstance(work.stored, DataFrame):
        deleted, rows = _by_spark(recomputed, work.stored, spec)
    else:
        deleted, rows = difference(recomputed.toArrow().cast(spec.schema), work.stored, spec.key)
    if not deleted.num_rows and not rows.num_rows:
        return None
    is_first = not isinstance(work.stored, DataFrame) and not work.stored.num_rows
    return Changes(deleted=deleted if deleted.num_rows else None, rows=rows, all_new=is_first)


def own_columns(view: CompiledView, spec: TableSpec) -> list[str]:
    """The columns that the view's SELECT has, without those that identify rows of a bag."""
    return [name for name in spec.schema.names if view.key is not None or name not in (HASH, NUMBER)]


def identified(rows: DataFrame, view: CompiledView) -> DataFrame:
    """The rows with the columns that identify them."""
    if view.key is not None:
        return rows
    columns = [quoted(name) for name in rows.columns]
    numbered = "row_number() OVER (PARTITION BY {hash} ORDER BY {columns})"
    return rows.selectExpr("*", f"xxhash64({', '.join(columns)}) AS {HASH}").selectExpr(
        "*", f"{numbered.format(hash=HASH, columns=', '.join(columns))} AS {NUMBER}"
    )


def _by_spark(recomputed: DataFrame, stored: DataFrame, spec: TableSpec) -> tuple[pa.Table, pa.Table]:
    found = _difference(recomputed, stored, spec).toArrow()
    is_deleted = found.column(_DELETED)
    rows = found.filter(pc.invert(is_deleted)).select(spec.schema.names).cast(spec.schema)
    return found.filter(is_deleted).select(list(spec.key)), rows


def _difference(recomputed: DataFrame, stored: DataFrame, spec: TableSpec) -> DataFrame:
    """The rows to delete (`_cv_deleted`; key columns set) and those to upsert."""
    new = recomputed.withColumn(_PRESENT, F.lit(True)).alias("new")
    old = stored.withColumn(_PRESENT, F.lit(True)).alias("old")
    vanished = _column("new", _PRESENT).isNull()

    def result(name: str) -> Column:
        value = _column("new", name)
        return (F.when(vanished, _column("old", name)).otherwise(value) if name in spec.key else value).alias(name)

    return (
        new.join(old, _same(spec.key), "full_outer")
        .where(~_same([*spec.schema.names, _PRESENT]))
        .select(vanished.alias(_DELETED), *map(result, spec.schema.names))
    )


def _same(columns: Iterable[str]) -> Column:
    """NULL-safe equality of these columns in the new and the old row."""
    pairs = (_column("new", name).eqNullSafe(_column("old", name)) for name in columns)
    return reduce(Column.__and__, pairs, F.lit(True))


def _column(side: str, name: str) -> Column:
    return F.col(f"{side}.{quoted(name)}")
