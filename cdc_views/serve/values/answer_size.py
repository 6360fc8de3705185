"""The size of an answer, and its limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.errors import ResultTooLarge

_OF_NULL: Final = 4
"""The bytes of JSON for a value that Arrow keeps in no byte."""


def answer_bytes(rows: pa.Table | pa.RecordBatch) -> int:
    """About how many bytes rows take when they are sent.

    These are the bytes of their values and, as in JSON, the names of columns and fields once for each row or struct, a
    few for each element of a list, and the texts of a dictionary as often as they occur.
    """
    names = sum(len(name) + _OF_NULL for name in rows.schema.names)
    return int(rows.nbytes + rows.num_rows * names + sum(map(_bytes_beside_values, rows.columns)))


def within(batches: Iterable[pa.RecordBatch], most_bytes: int | None, hint: str) -> Iterator[pa.RecordBatch]:
    """The batches of an answer. Raises ResultTooLarge as soon as they are larger than that; None is no limit."""
    size = 0
    for batch in batches:
        size += answer_bytes(batch)
        if most_bytes is not None and size > most_bytes:
            raise ResultTooLarge(f"the answer has more than {most_bytes >> 20} MiB, which is the limit", hint=hint)
        yield batch


def _bytes_beside_values(values: pa.Array | pa.ChunkedArray) -> int:
    """The bytes of JSON that Arrow does not have once for each value."""
    if isinstance(values, pa.ChunkedArray):
        return sum(map(_bytes_beside_values, values.chunks))
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _bytes_of_texts(values)
    if not pa.types.is_nested(kind):
        return 0
    parts = _parts(values)
    own = sum(map(len, parts)) * _OF_NULL
    if pa.types.is_struct(kind):
        own += (len(values) - values.null_count) * sum(len(field.name) for field in kind)
    return own + sum(map(_bytes_beside_values, parts))


def _parts(values: pa.Array) -> list[pa.Array]:
    """The fields of structs, the elements of lists, the keys and values of maps."""
    kind = values.type
    if pa.types.is_struct(kind):
        found: list[pa.Array] = values.flatten()
        return found
    if pa.types.is_map(kind):
        begin, end = (values.offsets[place].as_py() for place in (0, -1))
        return [part.slice(begin, end - begin) for part in (values.keys, values.items)]
    if pa.types.is_union(kind):
        return [values.field(place) for place in range(kind.num_fields)]
    return [values.flatten()]


def _bytes_of_texts(values: pa.DictionaryArray) -> int:
    kind = values.type.value_type
    if not pa.types.is_string(kind) and not pa.types.is_large_string(kind):
        return 0
    return pc.sum(pc.binary_length(values.dictionary).take(values.indices)).as_py() or 0
