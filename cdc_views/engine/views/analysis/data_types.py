"""Questions about Spark's data types, which may be nested. Types are the JVM's own objects, reached through py4j."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_FLOATS: Final = frozenset({"float", "double"})
_TEXTS: Final = ("string", "char", "varchar")


def contains_timestamp(kind: Any) -> bool:
    """Whether a type is `timestamp`, or has it inside."""
    return kind.typeName() == "timestamp" or any(map(contains_timestamp, _inside(kind)))


def reads_timestamps(source: Any, target: Any) -> bool:
    """Whether a cast from one type to the other makes a timestamp of a text, or of a variant, which may hold one."""
    name = source.typeName()
    if name == "variant" or name.startswith(_TEXTS):
        return contains_timestamp(target)
    # Spark casts by position, and has refused a cast between nested types of other lengths.
    return any(map(reads_timestamps, _inside(source), _inside(target)))


def is_made_of_floats(kind: Any) -> bool:
    """Whether a type has nothing but floats, so that two of its values may be equal and differ: 0.0 and -0.0."""
    parts = list(_inside(kind))
    return all(map(is_made_of_floats, parts)) if parts else kind.typeName() in _FLOATS


def _inside(kind: Any) -> Iterator[Any]:
    """The types of the elements of a list, of the keys and values of a map, or of the fields of a struct, in order."""
    name = kind.typeName()
    if name == "array":
        yield kind.elementType()
    elif name == "map":
        yield from (kind.keyType(), kind.valueType())
    elif name == "struct":
        for field in kind.fields():
            yield field.dataType()
