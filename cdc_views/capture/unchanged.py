"""How Debezium writes a value that Postgres left out of the WAL: stored out of line and not changed.

What it writes has the JSON type of the column, so there are variants. The setting
`unavailable.value.placeholder` must be the default.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import md5
from typing import Any, Final
from uuid import UUID

import orjson

from cdc_views.source.catalog import Column, SourceTable

PLACEHOLDER: Final = "__debezium_unavailable_value"

_BYTES: Final = PLACEHOLDER.encode()
# Java's UUID.nameUUIDFromBytes: version 3 without a namespace.
_UUID: Final = str(UUID(bytes=md5(_BYTES, usedforsecurity=False).digest(), version=3))

_VARIANTS: Final[dict[str, tuple[Any, ...]]] = {
    "bytea": (b64encode(_BYTES).decode(), PLACEHOLDER),
    "hstore": (orjson.dumps({PLACEHOLDER: PLACEHOLDER}).decode(), PLACEHOLDER),
}
_LIST_VARIANTS: Final[dict[str, tuple[Any, ...]]] = {
    "int2": (list(_BYTES),),
    "int4": (list(_BYTES),),
    "int8": (list(_BYTES),),
    "uuid": ([_UUID], [PLACEHOLDER]),
    "bytea": ([b64encode(_BYTES).decode()], [PLACEHOLDER]),
}


def placeholders(column: Column) -> tuple[Any, ...]:
    """The JSON values that stand for an unchanged value of this column; none if it cannot be TOASTed."""
    if not column.toastable:
        return ()
    if column.element is not None:
        return _LIST_VARIANTS.get(column.element, ([PLACEHOLDER], list(_BYTES)))
    return _VARIANTS.get(column.type_name, (PLACEHOLDER,))


def unchangeable(table: SourceTable) -> dict[str, tuple[Any, ...]]:
    """The columns of a table whose values events may leave out, with what stands for them."""
    return {column.name: found for column in table.columns if (found := placeholders(column))}
