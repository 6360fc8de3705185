"""Compares rows as tables: as multisets, with NULL equal to NULL, and floats with a tolerance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from cdc_views.errors import UnequalRows

Row: TypeAlias = tuple[Any, ...]

TOLERANCE: Final = 1e-9  # relative
_MOST_SHOWN: Final = 10
_FLOAT: Final = "float"


def same_rows(found: Iterable[Sequence[Any]], wanted: Iterable[Sequence[Any]]) -> bool:
    """Whether both have the same rows, with the same multiplicity."""
    return difference(found, wanted) == ([], [])


def assert_equal(found: Iterable[Sequence[Any]], wanted: Iterable[Sequence[Any]], what: str = "rows") -> None:
    """Raise UnequalRows (an AssertionError) with the rows that differ."""
    extra, missing = difference(found, wanted)
    if extra or missing:
        raise UnequalRows(f"{what}: {len(extra)} too many, {len(missing)} missing{_shown('+', extra)}"
                          f"{_shown('-', missing)}")  # fmt: skip


def difference(found: Iterable[Sequence[Any]], wanted: Iterable[Sequence[Any]]) -> tuple[list[Row], list[Row]]:
    """The rows of `found` without an equal row in `wanted`, and the reverse."""
    extra, missing = exact_difference(found, wanted)
    missing_alike: dict[Hashable, list[Row]] = {}
    for row in missing:
        missing_alike.setdefault(_without_floats(row), []).append(row)
    for candidates in missing_alike.values():
        candidates.sort(key=_floats)
    left = []
    # Sorted by their floats, close rows are neighbours.
    for row in sorted(extra, key=_floats):
        candidates = missing_alike.get(_without_floats(row), [])
        match = next((number for number, other in enumerate(candidates) if _is_close(row, other)), None)
        if match is None:
            left.append(row)
        else:
            del candidates[match]
    return left, [row for candidates in missing_alike.values() for row in candidates]


def exact_difference(found: Iterable[Sequence[Any]], wanted: Iterable[Sequence[Any]]) -> tuple[list[Row], list[Row]]:
    """The same without a tolerance. NaN equals NaN, and -0.0 equals 0.0."""
    rows, others = ([(_frozen(row), tuple(row)) for row in each] for each in (found, wanted))
    counts, other_counts = (Counter(key for key, _ in each) for each in (rows, others))
    extra, missing = counts - other_counts, other_counts - counts
    by_key, other_by_key = dict(rows), dict(others)
    return [by_key[key] for key in extra.elements()], [other_by_key[key] for key in missing.elements()]


def _frozen(value: Any) -> Hashable:
    """A hashable form of the value, in which equal values are equal."""
    if isinstance(value, float) and math.isnan(value):
        return (_FLOAT, "NaN")
    if isinstance(value, Mapping):
        return ("struct", *((name, _frozen(item)) for name, item in sorted(value.items())))
    if isinstance(value, list | tuple):
        return ("list", *map(_frozen, value))
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    if isinstance(value, bool):
        return ("bool", value)
    hashable: Hashable = value
    return hashable


def _without_floats(value: Any) -> Hashable:
    """The part that must be equal in rows that differ in their floats only."""
    if isinstance(value, float):
        return _FLOAT
    if isinstance(value, Mapping):
        return ("struct", *((name, _without_floats(item)) for name, item in sorted(value.items())))
    return ("list", *map(_without_floats, value)) if isinstance(value, list | tuple) else _frozen(value)


def _floats(value: Any) -> list[float]:
    if isinstance(value, float):
        return [math.inf if math.isnan(value) else value]
    if isinstance(value, Mapping):
        return [number for _, item in sorted(value.items()) for number in _floats(item)]
    return [number for item in value for number in _floats(item)] if isinstance(value, list | tuple) else []


def _is_close(row: Any, other: Any) -> bool:
    pairs = zip(_floats(row), _floats(other), strict=True)
    return all(one == two or math.isclose(one, two, rel_tol=TOLERANCE) for one, two in pairs)


def _shown(sign: str, rows: Sequence[Row]) -> str:
    lines = [f"\n  {sign} {row!r}" for row in rows[:_MOST_SHOWN]]
    return "".join([*lines, f"\n  {sign} ... {len(rows) - _MOST_SHOWN} more" if len(rows) > _MOST_SHOWN else ""])
