"""Thrift's compact protocol, as far as the footers of Parquet files need it: any structure, without its declaration.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
I32: Final = 5
I64: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
STRUCT: Final = 12

_WHOLE: Final = frozenset({4, I32, I64})
_SETS_AND_LISTS: Final = frozenset({LIST, 10})
_LONG: Final = 15


class ThriftValue(NamedTuple):
    """A value with its type: a number, bytes, a `Struct`, or `ThriftList`."""

    kind: int
    value: Any


class ThriftList(NamedTuple):
    """The elements of a list, without their type, which is `kind`."""

    kind: int
    values: list[Any]


Struct: TypeAlias = dict[int, ThriftValue]
"""The fields of a structure by their number."""


def read_struct(content: bytes) -> Struct:
    """The structure that some bytes begin with."""
    return _read_struct(iter(content))


def first_list(content: bytes) -> tuple[int, bytes]:
    """The list that a structure begins with: how many elements it has, and the bytes from the first one on."""
    left = iter(content)
    next(left)
    count, _ = _list_header(left)
    return count, bytes(left)


def all_numbers(content: bytes) -> tuple[Numbers, Numbers]:
    """Content that has nothing but numbers of variable length: where each begins, and their values without sign."""
    data = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero(data < 128)
    begins = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])
    shifts = 7 * (np.arange(len(data)) - np.repeat(begins, ends - begins + 1))
    return begins, np.add.reduceat((data & 127).astype(np.int64) << shifts, begins)


def written(fields: Struct) -> bytes:
    """A structure as bytes."""
    into = bytearray()
    _write_struct(into, fields)
    return bytes(into)


def _read_struct(content: Iterator[int]) -> Struct:
    fields: Struct = {}
    number = 0
    while header := next(content):
        number = number + (header >> 4) if header >> 4 else _signed(_number(content))
        kind = header & 15
        fields[number] = ThriftValue(kind, _value(content, kind) if kind > FALSE else kind == TRUE)
    return fields


def _value(content: Iterator[int], kind: int) -> Any:
    if kind in _WHOLE:
        return _signed(_number(content))
    if kind == BINARY:
        return bytes(islice(content, _number(content)))
    if kind == STRUCT:
        return _read_struct(content)
    if kind in _SETS_AND_LISTS:
        count, of_elements = _list_header(content)
        return ThriftList(of_elements, [_value(content, of_elements) for _ in range(count)])
    if kind == DOUBLE:
        return bytes(islice(content, 8))
    if kind in (TRUE, FALSE, BYTE):  # in a list a boolean has a byte of its own
        return next(content)
    raise ValueError(f"type {kind} in a footer of Parquet, expected one of Thrift's compact protocol")


def _list_header(content: Iterator[int]) -> tuple[int, int]:
    """How many elements follow, and their type."""
    header = next(content)
    count = header >> 4
    return _number(content) if count == _LONG else count, header & 15


def _number(content: Iterator[int]) -> int:
    number = next(content)
    shift = 7
    if number > 127:
        number &= 127
        while (byte := next(content)) > 127:
            number |= (byte & 127) << shift
            shift += 7
        number |= byte << shift
    return number


def _signed(zigzag: int) -> int:
    return (zigzag >> 1) ^ -(zigzag & 1)


def _write_struct(into: bytearray, fields: Struct) -> None:
    before = 0
    for number, (kind, value) in sorted(fields.items()):
        assert 0 < number - before < _LONG, "Parquet numbers its fields without such gaps"
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        into.append((number - before) << 4 | kind)
        before = number
        if kind > FALSE:
            _write(into, kind, value)
    into.append(0)


def _write(into: bytearray, kind: int, value: Any) -> None:
    if kind in _WHOLE:
        _write_number(into, value << 1 ^ value >> 63)
    elif kind == BINARY:
        _write_number(into, len(value))
        into += value
    elif kind == STRUCT:
        _write_struct(into, value)
    elif kind in _SETS_AND_LISTS:
        count = len(value.values)
        into.append(min(count, _LONG) << 4 | value.kind)
        if count >= _LONG:
            _write_number(into, count)
        for each in value.values:
            _write(into, value.kind, each)
    elif kind == DOUBLE:
        into += value
    else:
        into.append(value)


def _write_number(into: bytearray, number: int) -> None:
    while number > 127:
        into.append(number & 127 | 128)
        number >>= 7
    into.append(number)
