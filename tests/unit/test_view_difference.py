"""The difference between two states of a view: which rows have changed, and which keys have gone."""

from __future__ import annotations

import struct
from typing import Any, Final

import pyarrow as pa
import pytest

from cdc_views.engine.views.strategies.difference import difference

NAN: Final = float("nan")
OTHER_NAN: Final = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
LIST: Final = pa.list_(pa.float64())
STRUCT: Final = pa.struct([("name", pa.string()), ("values", LIST)])


def changed(type_: pa.DataType, old: Any, new: Any) -> bool:
    """Whether the row with a value is changed by another value, in a view with a key."""
    states = [pa.table({"id": [1], "v": pa.array([value], type_)}) for value in (new, old)]
    deleted, rows = difference(*states, ["id"])
    assert deleted.num_rows == 0
    return bool(rows.num_rows)


@pytest.mark.parametrize(
    ("type_", "wrapped"),
    [
        (pa.float64(), lambda value: value),
        (pa.float32(), lambda value: value),
        (LIST, lambda value: [1.0, value]),
        (STRUCT, lambda value: {"name": "-nan", "values": [value]}),
    ],
)
def test_zero_of_the_other_sign_is_another_value_and_each_nan_is_the_same(type_: pa.DataType, wrapped: Any) -> None:
    values = (0.0, -0.0, 1.5, NAN, None)
    for old in values:
        for new in values:
            assert changed(type_, wrapped(old), wrapped(new)) == (str(old) != str(new))
    assert not changed(type_, wrapped(NAN), wrapped(OTHER_NAN))


def test_texts_in_a_struct_are_compared_as_they_are() -> None:
    assert changed(STRUCT, {"name": "nan", "values": None}, {"name": "-nan", "values": None})


@pytest.mark.parametrize("key", [0.0, -0.0])
def test_row_whose_key_is_a_zero_of_the_other_sign_takes_the_place_of_the_stored_one(key: float) -> None:
    stored, new = (pa.table({"f": [value, 2.0], "n": [1, 1]}) for value in (-key, key))
    deleted, rows = difference(new, stored, ["f"])
    assert (deleted.num_rows, str(rows.to_pylist())) == (0, str([{"f": key, "n": 1}]))


@pytest.mark.parametrize("value", [1, 1.5])
def test_row_of_a_view_with_one_row_goes(value: float) -> None:
    stored = pa.table({"n": [value]})
    deleted, rows = difference(stored.slice(0, 0), stored, [])
    assert (deleted.num_rows, rows.num_rows) == (1, 0)
