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

    These are the bytes of their values, with the texts of a dictionary as often as they occur, and the names of the
    columns once for each row, as in JSON.
    """
    names = sum(len(name) + _OF_NULL for name in rows.schema.names)
    texts = sum(_bytes_of_texts(column) for column in rows.columns if pa.types.is_dictionary(column.type))
    return int(rows.nbytes + rows.num_rows * names + texts)


def within(batches: Iterable[pa.RecordBatch], most_bytes: int | None, hint: str) -> Iterator[pa.RecordBatch]:
    """The batches of an answer. Raises ResultTooLarge as soon as they are larger than that; None is no limit."""
    size = 0
    for batch in batches:
        size += answer_bytes(batch)
        if most_bytes is not None and size > most_bytes:
            raise ResultTooLarge(f"the answer has more than {most_bytes >> 20} MiB, which is the limit", hint=hint)
        yield batch


def _bytes_of_texts(column: pa.ChunkedArray | pa.DictionaryArray) -> int:
    if not pa.types.is_string(column.type.value_type) and not pa.types.is_large_string(column.type.value_type):
        return 0
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return sum(pc.sum(pc.binary_length(each.dictionary).take(each.indices)).as_py() or 0 for each in chunks)
