"""The Delta table of a view: its path, its columns, and the columns that readers do not see.

A view without a provable key is a bag. Two hidden columns identify its rows: the hash of all columns, and a number
among the rows of the same hash.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from cdc_views.plan.compiled import CompiledView
from cdc_views.store.control import VIEW_FOLDER, table_kind
from cdc_views.store.delta_log import quoted
from cdc_views.store.warehouse import TableSpec
from cdc_views.views.kinds import DEFAULT_KIND, KINDS

HASH: Final = "_cv_hash"
NUMBER: Final = "_cv_number"
BAG_KEY: Final = (HASH, NUMBER)
# Only in results of queries: which of several sets of rows a row is computed for.
BOX: Final = "_cv_box"


def view_path(view: CompiledView) -> str:
    """The folder of a view's table, below the warehouse. A rebuild adds a suffix."""
    return f"{VIEW_FOLDER}{view.definition.name}/{view.fingerprint}"


def view_spec(view: CompiledView, schema: T.StructType) -> TableSpec:
    """The table for a view whose query returns these columns. All columns may be NULL.

    Raises BadView if the view's kind refuses them.
    """
    arrow = to_arrow_schema(schema, timezone="UTC")
    key = view.key
    definition = view.definition
    types = {each.name: collated(each.dataType) or str(field.type) for each, field in zip(schema, arrow, strict=True)}
    record = KINDS[definition.kind].record(definition.kind_options, types, key)
    if key is None:
        key = BAG_KEY
        arrow = arrow.append(pa.field(HASH, pa.int64())).append(pa.field(NUMBER, pa.int32()))
    arrow = pa.schema([field.with_nullable(True) for field in arrow])
    kind = {} if definition.kind == DEFAULT_KIND else {"kind": definition.kind, **record}
    return TableSpec(definition.name, view_path(view), arrow, key, definition.layout, kind)


def collated(kind: T.DataType) -> str | None:
    """The type of a text with a collation, which Arrow and Delta do not have: it is compared otherwise than they do."""
    is_other = isinstance(kind, T.StringType) and kind.collation != T.StringType().collation
    return kind.simpleString() if is_other else None


def own_columns(view: CompiledView, spec: TableSpec) -> list[str]:
    """The columns of the view's SELECT, without the hidden ones."""
    return [name for name in spec.schema.names if view.key is not None or name not in BAG_KEY]


def is_hidden(path: str, column: str) -> bool:
    """Whether queries do not see a column of a table: `SELECT *` and NATURAL JOIN use a view's own columns only."""
    return table_kind(path) != "mirror" and column in BAG_KEY


def column_types(spec: TableSpec) -> dict[str, str]:
    """The Arrow types of the columns that queries see, by name."""
    return {field.name: str(field.type) for field in spec.schema if not is_hidden(spec.path, field.name)}


def identified(rows: DataFrame, view: CompiledView) -> DataFrame:
    """The rows with the columns that identify them: those of a bag get the hidden columns, in each box by itself."""
    if view.key is not None:
        return rows
    columns = [quoted(name) for name in rows.columns if name != BOX]
    partition = ", ".join(name for name in (HASH, BOX) if name == HASH or name in rows.columns)
    number = f"row_number() OVER (PARTITION BY {partition} ORDER BY {', '.join(columns)})"
    # The hash leaves NULL out: without the array, the rows (1, NULL) and (NULL, 1) would have the same one.
    nulls = f"array({', '.join(f'isnull({each})' for each in columns)})"
    hashed = rows.selectExpr("*", f"xxhash64({', '.join(columns)}, {nulls}) AS {HASH}")
    return hashed.selectExpr("*", f"{number} AS {NUMBER}")
