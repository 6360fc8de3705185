"""How Debezium writes a value that Postgres left out of the WAL: stored out of line and not changed.

What it writes has the JSON type of the column, so there are variants, all of them measured
(tests/stack/test_types.py). The setting `unavailable.value.placeholder` must be the default.
"""

from __future__ import annotations

from hashlib import md5
from typing import Any, Final
from uuid import UUID

import orjson

from cdc_views.source.catalog import Column, SourceTable
from cdc_views.source.refusals import has_placeholder

PLACEHOLDER: Final = "__debezium_unavailable_value"

_BYTES: Final = PLACEHOLDER.encode()
# Java's UUID.nameUUIDFromBytes: version 3 without a namespace.
_UUID: Final = str(UUID(bytes=md5(_BYTES, usedforsecurity=False).digest(), version=3))

_VARIANTS: Final[dict[str, tuple[Any, ...]]] = {
    # A domain over hstore has the text.
    "hstore": (orjson.dumps({PLACEHOLDER: PLACEHOLDER}).decode(), PLACEHOLDER),
}
_LIST_VARIANTS: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(("int4", "int8", "date"), (list(_BYTES),)),
    "uuid": ([_UUID],),
}


def placeholders(column: Column) -> tuple[Any, ...]:
    """The JSON values that stand for an unchanged value of this column; none if no event leaves it out.

    A type without a placeholder has none either: see `unmarked`.
    """
    if not column.toastable or not has_placeholder(column):
        return ()
    if column.element is not None:
        return _LIST_VARIANTS.get(column.element, ([PLACEHOLDER],))
    return _VARIANTS.get(column.type_name, (PLACEHOLDER,))


def unchangeable(table: SourceTable) -> dict[str, tuple[Any, ...]]:
    """The columns of a table whose values events may leave out, with what stands for them."""
    return {column.name: found for column in table.columns if (found := placeholders(column))}


def unmarked(table: SourceTable) -> tuple[str, ...]:
    """The columns of a table that hold NULL where an event leaves their value out."""
    return tuple(column.name for column in table.columns if column.toastable and not has_placeholder(column))
