"""Runs the lookups of a plan, one after the other, on rows that the driver holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.plan.incremental import Leaf, Lookup, Values

Rows = dict[Leaf, pa.Table]
"""The rows that are found for each leaf. The affected keys of a handle are the rows of a leaf of their own."""

FindRows = Callable[[Leaf, pa.Table, Collection[str]], pa.Table]
"""Returns the rows of a leaf whose columns equal those of one of the keys, with these columns."""

_BOUNDS: Final = {pa.int8(): 1 << 7, pa.int16(): 1 << 15, pa.int32(): 1 << 31}


def search(lookups: Iterable[Lookup], known: Rows, columns: Mapping[Leaf, Collection[str]], find: FindRows) -> Rows:
    """Run the lookups, each from the rows found before it; returns `known` with the rows found.

    `columns` are those to fetch for each leaf. A leaf that is looked up again has the new rows from then on.
    """
    found = dict(known)
    for lookup in lookups:
        keys = values_of(lookup.values, found, lookup.columns)
        found[lookup.leaf] = find(lookup.leaf, keys, columns[lookup.leaf])
    return found


def values_of(values: Values, known: Rows, names: Collection[str]) -> pa.Table:
    """The distinct values, as columns of these names. Leaves for which nothing is known add none."""
    parts = [
        known[columns[0].leaf].select([column.name for column in columns]).rename_columns(list(names))
        for columns in values.columns
        if columns[0].leaf in known
    ]
    # Whole numbers of several widths are united as the widest.
    rows = pa.concat_tables(parts, promote_options="permissive")
    return distinct(rows.drop_null() if values.is_join else rows)


def distinct(rows: pa.Table) -> pa.Table:
    """The rows without their copies. NULL equals NULL; floats that only Spark takes for equal may both stay."""
    return rows.group_by(rows.column_names, use_threads=False).aggregate([]) if rows.num_rows > 1 else rows


def as_compared(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values of which two are the same exactly if Spark takes them for equal: NULL too, and any two NaN.

    For floats these are whole numbers, for other columns their own values.
    """
    if not pa.types.is_floating(column.type):
        return column
    values = column.fill_null(0.0).to_numpy() + 0.0  # which makes 0.0 of -0.0
    plain = np.where(np.isnan(values), values.dtype.type(np.nan), values)
    numbers = pa.array(plain.view(f"i{plain.itemsize}"), mask=column.is_null().to_numpy())
    return pa.chunked_array([numbers])


def cast_keys(keys: pa.Table, schema: pa.Schema) -> pa.Table:
    """The keys with these types, without those that no value of the types equals: whole numbers beyond their range."""
    for field in schema:
        column = keys.column(field.name)
        bound = _BOUNDS.get(field.type)
        if bound is not None and column.type != field.type and pa.types.is_integer(column.type):
            fits = pc.and_(pc.greater_equal(column, -bound), pc.less(column, bound))
            keys = keys.filter(pc.fill_null(fits, True))
    return keys.select(schema.names).cast(schema)
