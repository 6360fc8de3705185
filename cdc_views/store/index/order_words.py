"""Order words: 64 bits for a value, which are never in another order than the values.

Spark's order: NaN above every other number, texts and binaries by their bytes. The word of a whole number, date, time
or float is the value itself. That of a longer value is as much of it as there is room for, so different values may have
one word: what is found between two words must be compared again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.store.index.fingerprints import (
    SIGN,
    Fingerprints,
    Words,
    are_whole,
    bytes_of,
    halves_of_decimals,
    has_fingerprints,
    joined,
    nulls_of,
    plain_floats,
    whole_numbers,
)

_HIGHEST: Final = (1 << 64) - 1


@dataclass(frozen=True)
class Between:
    """Values of a column from `lower` to `upper`, both included; None is no limit. NULL is between no two values."""

    lower: Any = None
    upper: Any = None

    def words(self, kind: pa.DataType) -> tuple[int, int]:
        """The words that values of this type between the limits have, first and last.

        Raises pa.ArrowException and OverflowError for a limit that is no value of this type: words cannot tell what is
        beyond it.
        """
        lower, upper = (None if value is None else _words(_converted(value, kind))[0] for value in self._limits())
        return (0 if lower is None else int(lower)), (_HIGHEST if upper is None else int(upper))

    def keep(self, rows: pa.Table, column: str) -> pa.Table:
        """Those of the rows found by words that are between the limits themselves."""
        kind = rows.schema.field(column).type
        if are_whole(kind) or pa.types.is_floating(kind):
            return rows
        for value, is_beyond in zip(self._limits(), (pc.less, pc.greater), strict=True):
            if value is not None:
                rows = rows.filter(pc.invert(is_beyond(rows[column], _converted(value, kind)[0])))
        return rows

    def _limits(self) -> tuple[Any, Any]:
        return self.lower, self.upper


def _converted(value: Any, kind: pa.DataType) -> pa.Array:
    """A limit as a value of the column's type, of which no digit is lost; of floats as the widest of them."""
    return pa.array([value]).cast(pa.float64() if pa.types.is_floating(kind) else kind)


def has_order_words(kind: pa.DataType) -> bool:
    """Whether values of this type have order words; nested ones have not."""
    return has_fingerprints(kind) and not pa.types.is_nested(kind)


def order_words(column: pa.Table) -> Fingerprints:
    """The word of each row of one column as `high`; `low` is one for NULL, or None if there is none."""
    return joined([Fingerprints(_words(part), nulls_of(part)) for part in column.column(0).chunks])


def _words(values: pa.Array) -> Words:
    """The words of some values; NULL has any."""
    types, kind = pa.types, values.type
    if are_whole(kind):
        words: Words = whole_numbers(values).view(np.uint64) ^ SIGN
        return words
    if types.is_floating(kind):
        return _words_of_floats(plain_floats(values.fill_null(0)))
    if types.is_decimal128(kind):
        return _words_of_floats(_unscaled(values))
    return _beginnings(values.fill_null(b"" if types.is_binary(kind) or types.is_large_binary(kind) else ""))


def _words_of_floats(values: np.ndarray[Any, np.dtype[np.float64]]) -> Words:
    bits = values.view(np.uint64)
    words: Words = np.where(bits & SIGN, ~bits, bits | SIGN)
    return words


def _unscaled(values: pa.Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Decimals of one scale as their digits; rounded, which changes no order."""
    low, high = halves_of_decimals(values)
    is_negative = (high & SIGN) != 0
    # Of the absolute value, since near zero the sum would lose what a float has for small numbers.
    low, high = np.where(is_negative, ~low + np.uint64(1), low), np.where(is_negative, ~high + (low == 0), high)
    absolute = high.astype(np.float64) * 2.0**64 + low.astype(np.float64)
    digits: np.ndarray[Any, np.dtype[np.float64]] = np.where(is_negative, -absolute, absolute) + 0.0
    return digits


def _beginnings(texts: pa.Array) -> Words:
    """The first eight bytes, the first one highest."""
    starts, lengths, eights = bytes_of(texts.cast(pa.large_binary()))
    beyond = 64 - 8 * np.minimum(lengths, 8).astype(np.uint64)
    words: Words = np.where(lengths > 0, eights[starts] << beyond >> beyond, np.uint64(0)).byteswap()
    return words
