"""Comparing rows as bags: a row counts as often as it occurs.

The comparison is exact: two rows are the same only if Spark shows the same values. So -0.0 differs from 0.0, every NaN
is the same, and NULL is the same as NULL. Each column becomes small numbers, equal where its values are the same; the
numbers of several columns are joined to one number per row. Two maps with the same entries in another order count as
different, as Spark shows them differently.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_NUMBER_BYTES: Final = 8


def without_common_rows(old: pa.Table, new: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both tables, which have one schema, without the rows that are in both; each copy cancels one copy."""
    if not old.num_rows or not new.num_rows:
        return old, new
    rows = pa.concat_tables([old, new])
    numbers = _joined((_numbers(_one_array(column)) for column in rows.columns), rows.num_rows)
    of_old, of_new = np.split(numbers, [old.num_rows])
    count = int(numbers.max()) + 1
    common = np.minimum(np.bincount(of_old, minlength=count), np.bincount(of_new, minlength=count))
    return old.filter(_beyond(of_old, common)), new.filter(_beyond(of_new, common))


def rows_in_both(old: pa.Table, new: pa.Table) -> tuple[_Numbers, _Numbers]:
    """The numbers of the rows in both tables, which have one schema and in which no row occurs twice.

    The numbers in the first table and those in the second are in one order.
    """
    if not old.num_rows or not new.num_rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = pa.concat_tables([old, new])
    numbers = _joined((_numbers(_one_array(column)) for column in rows.columns), rows.num_rows)
    first, second = np.split(numbers, [old.num_rows])
    _, of_old, of_new = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    return of_old.astype(np.int64), of_new.astype(np.int64)


def _beyond(numbers: _Numbers, common: _Numbers) -> pa.Array:
    """A mask of the rows after the first `common[number]` copies of their number."""
    order = np.argsort(numbers, kind="stable")
    in_order = numbers[order]
    copies_before = np.arange(len(numbers)) - np.searchsorted(in_order, in_order, "left")
    is_beyond = np.empty(len(numbers), bool)
    is_beyond[order] = copies_before >= common[in_order]
    return pa.array(is_beyond)


def _joined(columns: Iterable[_Numbers], count: int) -> _Numbers:
    """A number for each of `count` rows, the same where the numbers of all columns are the same."""
    joint = np.zeros(count, np.int64)
    for numbers in columns:
        # Both are below the number of rows plus two, so the product does not overflow.
        joint = np.unique(joint * (numbers.max(initial=0) + 1) + numbers, return_inverse=True)[1]
    return joint


def _numbers(column: pa.Array) -> _Numbers:
    """A number for each value, the same where the values are the same: 0 for NULL."""
    types, kind = pa.types, column.type
    if types.is_struct(kind):
        # flatten() makes a field of a NULL structure NULL, whatever value is below.
        return _joined([_validity(column), *map(_numbers, column.flatten())], len(column))
    if types.is_map(kind):
        entry = pa.struct([kind.key_field.with_name("key"), kind.item_field.with_name("value")])
        column = column.cast(pa.list_(entry))
        kind = column.type
    if types.is_list(kind) or types.is_large_list(kind):
        return _joined([_validity(column), _numbers(_packed(column))], len(column))
    if types.is_floating(kind):
        column = _bits(column)
    numbers: _Numbers = column.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64) + 1
    return numbers


def _validity(column: pa.Array) -> _Numbers:
    valid: _Numbers = column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
    return valid


def _bits(column: pa.Array) -> pa.Array:
    """Floats as whole numbers with the same bits, and one number for every NaN."""
    values = column.fill_null(0.0).to_numpy(zero_copy_only=False)
    plain = np.where(np.isnan(values), values.dtype.type(np.nan), values)
    return pa.array(plain.view(f"i{plain.itemsize}"), mask=column.is_null().to_numpy(zero_copy_only=False))


def _packed(column: pa.Array) -> pa.Array:
    """Lists or maps as binary values: the numbers of their elements, 8 bytes each."""
    elements = _numbers(column.flatten())
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]) * _NUMBER_BYTES
    return pa.Array.from_buffers(pa.large_binary(), len(column), [None, pa.py_buffer(ends), pa.py_buffer(elements)])


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        column = column.cast(pa.large_binary())  # the texts of all chunks may take more than 2 GiB
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else combined.chunk(0)
