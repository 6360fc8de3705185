"""Arrow schemas as Delta schemas, with types and names that every reader of the published tables understands.

Types that need a further table feature (timestamps without time zone, variants) are refused, and so are column names
that Delta accepts only with column mapping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import orjson
import pyarrow as pa

from cdc_views.errors import UnsupportedType

_FORBIDDEN: Final = " ,;{}()\n\t="

_SIMPLE: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp",
}

_WITHOUT_STATISTICS: Final = frozenset({"boolean", "binary"})

Layout = Literal["vectors", "plain"]


@dataclass(frozen=True)
class TableSpec:
    """A table of the warehouse.

    `path` is relative to the warehouse. An empty `key` means that the table has at most one row. `layout` says how rows
    are deleted: `vectors` hides them by deletion vectors, `plain` rewrites their files without them. `kind` is what
    readers need to know about the shape of a view, as values of JSON. The rows of each file are `sorted_by` columns.
    `not_null` are columns of a mirror that the source declares so. The mirror may hold NULL all the same: of a time
    before the declaration, or after its end.
    """

    name: str
    path: str
    schema: pa.Schema
    key: tuple[str, ...]
    layout: Layout = "vectors"
    kind: Mapping[str, Any] = field(default_factory=dict, hash=False)
    sorted_by: tuple[str, ...] = ()
    not_null: frozenset[str] = field(default=frozenset(), compare=False)


def key_schema(spec: TableSpec) -> pa.Schema:
    """The key columns and their types."""
    return pa.schema([spec.schema.field(name) for name in spec.key])


def delta_schema(spec: TableSpec) -> str:
    """The schema as the JSON text of Delta's metadata. Raises UnsupportedType."""
    require_column_names(spec.name, spec.schema.names)
    fields = [
        {"name": field.name, "type": _delta_type(spec, field.name, field.type), "nullable": field.nullable,
         "metadata": {}} for field in spec.schema
    ]  # fmt: skip
    return orjson.dumps({"type": "struct", "fields": fields}).decode()


def statistics_columns(spec: TableSpec) -> list[str]:
    """The key columns for which Delta can keep minimum and maximum."""
    types = {name: _delta_type(spec, name, spec.schema.field(name).type) for name in spec.key}
    return [name for name, kind in types.items() if isinstance(kind, str) and kind not in _WITHOUT_STATISTICS]


def quoted(name: str) -> str:
    """A name for Spark SQL, in backticks."""
    return "`" + name.replace("`", "``") + "`"


def require_column_names(table: str, names: Sequence[str]) -> None:
    """Raise UnsupportedType for a name that Delta accepts only with column mapping, or that is ambiguous in Spark."""
    seen: dict[str, str] = {}
    for name in names:
        if not name or any(character in _FORBIDDEN for character in name):
            raise UnsupportedType(
                f'table "{table}": column "{name}" has a character that Delta does not allow in a name',
                hint=f"such characters are {', '.join(repr(character) for character in _FORBIDDEN)}; rename the column",
            )
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise UnsupportedType(
                f'table "{table}": columns "{other}" and "{name}" differ by case only',
                hint="Spark cannot tell them apart; rename one of them",
            )
    if len(seen) != len(names):
        raise UnsupportedType(f'table "{table}": a column name occurs twice')


def _delta_type(spec: TableSpec, column: str, kind: pa.DataType) -> str | dict[str, Any]:
    if (simple := _SIMPLE.get(kind)) is not None:
        return simple
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _delta_type(spec, column, kind.value_type)
        return {"type": "array", "elementType": element, "containsNull": kind.value_field.nullable}
    if pa.types.is_map(kind):
        return {
            "type": "map",
            "keyType": _delta_type(spec, column, kind.key_type),
            "valueType": _delta_type(spec, column, kind.item_type),
            "valueContainsNull": kind.item_field.nullable,
        }
    if pa.types.is_struct(kind):
        return {
            "type": "struct",
            "fields": _struct_fields(spec, column, [kind.field(i) for i in range(kind.num_fields)]),
        }
    raise UnsupportedType(
        f'table "{spec.name}": column "{column}" has type {kind}, which our Delta tables cannot hold exactly',
        hint="times are timestamp[us, tz=UTC]; decimals have at most 38 digits; cast the column, or exclude it",
    )


def _struct_fields(spec: TableSpec, column: str, fields: Sequence[pa.Field]) -> list[dict[str, Any]]:
    return [
        {"name": field.name, "type": _delta_type(spec, f"{column}.{field.name}", field.type),
         "nullable": field.nullable, "metadata": {}} for field in fields
    ]  # fmt: skip
