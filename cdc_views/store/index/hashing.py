"""Fingerprints of keys: 128 bits for each row, equal where the keys are equal, NULL equal to NULL.

A key of one whole number, date or time is its own fingerprint. Any other key is cut into words of 32 bits, which are
multiplied by random numbers and added up, twice: once as they are, once with their bytes reversed (multilinear hashing;
Lemire and Kaser, "Strongly universal string hashing is fast", 2014). Different keys share a fingerprint with a
probability of at most 2^-90, whatever the keys are, because each process draws its random numbers in secret. Among ten
million keys the probability of any collision is at most 2^-43, so keys found by fingerprint are not compared again. For
a list or a structure, the fingerprints of its elements are hashed in turn.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

_SEED: Final = secrets.randbits(128)
_SECRET: Final = _SEED.to_bytes(16, "little")
_SIGN: Final = np.uint64(1 << 63)
_LOW_HALF: Final = np.uint64(0xFFFF_FFFF)
_HALF: Final = np.uint64(32)
_BATCH_ROWS: Final = 1 << 18
# Longer texts are replaced by a digest, so that no column needs more random numbers than this.
_MOST_BYTES: Final = 256
_NUMBERS: Final = 2 + _MOST_BYTES // 4 + 4
_LENGTH, _IS_NULL, _FIRST = 0, 1, 2
_DIGEST: Final = _FIRST + _MOST_BYTES // 4


class Fingerprints(NamedTuple):
    """A fingerprint for each row, as two halves; `low` is None where it is zero for all rows.

    For a key of one whole number, date or time, `high` sorts as the keys do.
    """

    high: Words
    low: Words | None

    def take(self, numbers: Any) -> Fingerprints:
        """The fingerprints of some rows, by number or by mask."""
        return Fingerprints(self.high[numbers], None if self.low is None else self.low[numbers])

    def distinct(self) -> Fingerprints:
        """Each fingerprint once, in no particular order."""
        if self.low is None:
            return Fingerprints(np.unique(self.high), None)
        high, low = np.unique(np.stack([self.high, self.low]), axis=1)
        return Fingerprints(high, low)


def has_fingerprints(kind: pa.DataType) -> bool:
    """Whether values of this type have fingerprints; maps have none, nor lists or structures with maps."""
    types = pa.types
    if _is_nested(kind):
        return all(has_fingerprints(kind.field(number).type) for number in range(kind.num_fields))
    return any(
        is_kind(kind)
        for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_date32, types.is_timestamp,
                        types.is_decimal128, types.is_string, types.is_large_string, types.is_binary,
                        types.is_large_binary)
    )  # fmt: skip


def fingerprints(keys: pa.Table) -> Fingerprints:
    """The fingerprint of each row over all columns, at least one.

    Keys compare as Spark compares them: -0.0 equals 0.0, and NaN equals NaN. Columns must have the same types
    wherever fingerprints are compared.
    """
    return joined([_of_batch(batch) for batch in keys.to_batches(max_chunksize=_BATCH_ROWS)])


def joined(parts: Sequence[Fingerprints]) -> Fingerprints:
    """The fingerprints of several tables, one after the other."""
    if not parts:
        return Fingerprints(np.empty(0, np.uint64), None)
    high = np.concatenate([part.high for part in parts])
    if all(part.low is None for part in parts):
        return Fingerprints(high, None)
    return Fingerprints(high, np.concatenate([_low(part) for part in parts]))


def are_among(found: Fingerprints, wanted: Fingerprints) -> bool:
    """Whether every one of `found` is one of `wanted`."""
    return bool(np.isin(found.high, wanted.high).all() and np.isin(_low(found), _low(wanted)).all())


def _low(keys: Fingerprints) -> Words:
    return np.zeros(len(keys.high), np.uint64) if keys.low is None else keys.low


def _of_batch(batch: pa.RecordBatch) -> Fingerprints:
    if batch.num_columns == 1 and are_whole(batch.schema.field(0).type):
        values, nulls = _whole_numbers(batch.column(0)), _nulls_of(batch.column(0))
        high = values.view(np.uint64) ^ _SIGN
        return Fingerprints(high, None) if nulls is None else Fingerprints(np.where(nulls, 0, high), nulls)
    high, low = np.zeros(batch.num_rows, np.uint64), np.zeros(batch.num_rows, np.uint64)
    for number, column in enumerate(batch.columns):
        forward, backward = _multipliers(number)
        for index, rows, words in _words_of(column):
            high[rows] += words * forward[index]
            low[rows] += words.astype(np.uint32).byteswap().astype(np.uint64) * backward[index]
    return Fingerprints(high, low)


@cache
def _multipliers(column: int) -> tuple[Words, Words]:
    drawn = np.random.default_rng([_SEED, column]).integers(0, 1 << 64, (2, _NUMBERS), np.uint64)
    return drawn[0], drawn[1]


def are_whole(kind: pa.DataType) -> bool:
    """Whether values of this type are handled as whole numbers; dates, times and booleans are."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_date32(kind) or types.is_timestamp(kind) or types.is_boolean(kind))


def _whole_numbers(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Such values as numbers, with any number for NULL."""
    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    values: np.ndarray[Any, np.dtype[np.int64]] = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return values


def _nulls_of(column: pa.Array) -> Words | None:
    """One for NULL and zero for a value; None if there is no NULL."""
    if not column.null_count:
        return None
    nulls: Words = pc.is_null(column).to_numpy(zero_copy_only=False).astype(np.uint64)
    return nulls


_Selection: TypeAlias = Any  # of rows: a mask, numbers, or all of them
_ALL: Final = slice(None)


def _words_of(column: pa.Array) -> Iterator[tuple[int, _Selection, Words]]:
    """For one column: the number of a multiplier, rows, and their words. Words that are not yielded are zero."""
    nulls, kind = _nulls_of(column), column.type
    if nulls is not None:
        yield _IS_NULL, _ALL, nulls
    if _is_nested(kind):
        column = _packed(column)
    elif nulls is not None:
        # Below a NULL there may be any value.
        column = column.fill_null(_zero(kind))
    if pa.types.is_decimal128(kind):
        low, high = _halves_of_decimals(column)
        yield from _halves(_FIRST, _ALL, low)
        yield from _halves(_FIRST + 2, _ALL, high)
    elif are_whole(kind):
        yield from _halves(_FIRST, _ALL, _whole_numbers(column).view(np.uint64))
    elif pa.types.is_floating(kind):
        yield from _halves(_FIRST, _ALL, _plain_floats(column).view(np.uint64))
    else:
        yield from _words_of_texts(column.cast(pa.large_binary()))


def _plain_floats(column: pa.Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Floats without NULL, with the same bits where they are equal."""
    # Adding 0.0 turns -0.0 into 0.0; every NaN becomes NumPy's.
    values = column.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
    return np.where(np.isnan(values), np.nan, values)


def _halves_of_decimals(column: pa.Array) -> tuple[Words, Words]:
    """The lower and the higher half of 128 bits in two's complement, with any value for NULL."""
    values = np.frombuffer(column.buffers()[1], np.uint64)[2 * column.offset : 2 * (column.offset + len(column))]
    return values[0::2], values[1::2]


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_struct(kind))


def _packed(column: pa.Array) -> pa.Array:
    """Lists or structures as binary values: the fingerprints of their elements, 16 bytes each."""
    if pa.types.is_struct(column.type):
        # flatten() makes a field of a NULL structure NULL, whatever value is below.
        within, lengths = pa.table(column.flatten(), names=list(map(str, range(column.type.num_fields)))), None
    else:
        within = pa.table([column.flatten()], names=["element"])
        lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    found = fingerprints(within)
    sizes = np.ones(len(column), np.int64) if lengths is None else lengths.astype(np.int64)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]) * 16
    packed = np.stack([found.high, _low(found)], axis=1)
    return pa.Array.from_buffers(pa.large_binary(), len(column), [None, pa.py_buffer(ends), pa.py_buffer(packed)])


def _zero(kind: pa.DataType) -> pa.Scalar:
    types = pa.types
    if types.is_decimal128(kind):
        return pa.scalar(Decimal(0), kind)
    if types.is_string(kind) or types.is_large_string(kind):
        return pa.scalar("", kind)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return pa.scalar(b"", kind)
    return pa.scalar(False if types.is_boolean(kind) else 0, kind)


def _words_of_texts(column: pa.Array) -> Iterator[tuple[int, _Selection, Words]]:
    starts, lengths, eights = _bytes_of(column)
    yield _LENGTH, _ALL, lengths.astype(np.uint64)
    is_long = lengths > _MOST_BYTES
    if is_long.any():
        yield from _words_of_long_texts(column, np.flatnonzero(is_long))
        lengths = np.where(is_long, 0, lengths)
    for position in range(0, int(lengths.max(initial=0)), 8):
        left = lengths - position
        rows: _Selection = _ALL if left.min() > 0 else np.flatnonzero(left > 0)
        words = eights[starts[rows] + position]
        beyond = 64 - 8 * np.minimum(left[rows], 8).astype(np.uint64)
        yield from _halves(_FIRST + position // 4, rows, words << beyond >> beyond)


def _bytes_of(texts: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Words]:
    """Start and length in bytes of each text of a `large_binary` array, and the eight bytes from any byte on.

    The end is padded with zeros.
    """
    _, offset_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = b"" if data_buffer is None else memoryview(data_buffer)[first:last]
    padded = np.concatenate([np.frombuffer(data, np.uint8), np.zeros(8, np.uint8)])
    eights: Words = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))
    return offsets[:-1] - first, np.diff(offsets), eights


def _words_of_long_texts(column: pa.Array, rows: np.ndarray[Any, Any]) -> Iterator[tuple[int, _Selection, Words]]:
    texts = (column[int(row)].as_buffer() for row in rows)
    digests = b"".join(hashlib.blake2b(text, digest_size=16, key=_SECRET).digest() for text in texts)
    words = np.frombuffer(digests, np.uint64)
    yield from _halves(_DIGEST, rows, words[0::2])
    yield from _halves(_DIGEST + 2, rows, words[1::2])


def _halves(index: int, rows: _Selection, words: Words) -> Iterator[tuple[int, _Selection, Words]]:
    yield index, rows, words & _LOW_HALF
    yield index + 1, rows, words >> _HALF
