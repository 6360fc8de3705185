"""Which columns cannot be mirrored, because Debezium 3.7 changes or loses their values.

tests/stack/test_types.py measures this against a real server, and docs/types.md lists the results. For a type that
Debezium does not know, it writes the text that Postgres prints (`include.unknown.datatypes`). So the types that are
refused here are types that it knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cdc_views.source.catalog import TYPES_BY_NAME, USER_DEFINED, SourceColumn

PRINTED_BY_NAME: Final = (
    *("regclass", "regcollation", "regconfig", "regdictionary", "regnamespace", "regoper", "regoperator", "regproc"),
    *("regprocedure", "regrole", "regtype", "aclitem"),
)
REFUSED_REMEDY: Final = "give the column another type, list it in source.exclude_columns, or do not mirror the table"

REFUSED: Final[Mapping[str, str]] = {
    "varbit": "whose leading zeros Debezium drops",
    "bit": "without a fixed length, whose leading zeros Debezium drops",
    "int2vector": "for which Debezium writes an empty array",
    "oidvector": "for which Debezium writes an empty array",
    **dict.fromkeys(PRINTED_BY_NAME, "whose values print the name of an object, which can be renamed"),
    "refcursor": "which Debezium's snapshot treats as an open cursor",
    **dict.fromkeys(("geometry", "geography"), "whose events were never compared with Postgres"),
    **dict.fromkeys(("vector", "halfvec", "sparsevec"), "whose events were never compared with Postgres"),
    **dict.fromkeys(
        (f"{name}{USER_DEFINED}" for name in TYPES_BY_NAME), "which Debezium treats as the other type of this name"
    ),
}

# Element types of the arrays that Debezium writes. For other arrays it omits the column from its events, or fails.
ELEMENTS: Final = frozenset(
    {
        *("int2", "int4", "int8", "oid", "bool", "float4", "float8", "numeric", "text", "varchar", "bpchar", "char"),
        *("citext", "bytea", "date", "timestamp", "timestamptz", "timetz", "json", "jsonb", "uuid", "enum", "inet"),
        *("cidr", "macaddr", "macaddr8", "int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
        *("hstore", "ltree", "isbn"),
    }
)
_ELEMENTS_REFUSED: Final[Mapping[str, str]] = {"time": "which Debezium truncates to milliseconds, with 24:00 as 00:00"}

# Keys with which two rows look like one, or one row like two.
_KEYS_REFUSED: Final[Mapping[str, str]] = {
    "float4": "a float: 0 and -0 are one key in Postgres and two in Kafka",
    "float8": "a float: 0 and -0 are one key in Postgres and two in Kafka",
    "timetz": "a time with time zone, whose zone Debezium drops",
}

# The types that source.text_columns accepts.
TEXT_TYPES: Final = frozenset({"numeric", "float4", "float8", "date", "timestamp", "timestamptz"})

# Types for which Debezium writes a placeholder if a value that is stored out of line is unchanged. It also does this
# for types that it does not know. For all other types it fails.
_PLACEHOLDERS: Final = frozenset(
    {
        *("text", "varchar", "bpchar", "citext", "json", "jsonb", "xml", "hstore", "ltree", "tsvector", "numeric"),
        "bytea",
        *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    }
)
_PLACEHOLDER_ELEMENTS: Final = frozenset({"int4", "int8", "date", "text", "varchar", "bpchar", "json", "jsonb", "uuid"})

# Values that Debezium replaces by others without a trace in the event. Java's Date has no era.
_OLD_TIMES: Final = (
    "Debezium moves times before 1582-10-15 in arrays to other days",
    "'1582-10-15' <= ALL ({column})",
)
_INFINITE: Final = ("Debezium writes an infinite interval as zero", "isfinite({column})")
FIRST_INFINITE_INTERVAL: Final = 170000  # server version


def refusal(column: SourceColumn) -> str | None:
    """Return why a column cannot be mirrored; None if it can."""
    if column.as_text:
        if column.type_name in TEXT_TYPES:
            return None
        return f'has type "{column.type_name}", and source.text_columns takes {", ".join(sorted(TEXT_TYPES))}'
    if column.as_decimal is not None and "numeric" not in (column.type_name, column.element):
        return f'has type "{column.type_name}", and source.decimal_columns takes numeric'
    # bit has its length as a type modifier; "bit" in quotes has none.
    if column.type_name in REFUSED and not (column.type_name == "bit" and column.typmod > 0):
        return f'has type "{column.type_name}", {REFUSED[column.type_name]}'
    if column.element is not None and column.element not in ELEMENTS:
        reason = _ELEMENTS_REFUSED.get(column.element, "whose values Debezium loses")
        return f'is an array of "{column.element}", {reason}'
    return None


def key_refusal(column: SourceColumn) -> str | None:
    """Return why a column cannot be part of a key; None if it can."""
    if column.element is not None:
        return "is an array"
    if column.as_text:
        return "is in source.text_columns, and for some values the snapshot writes other keys than the stream"
    if column.as_decimal is not None:
        return "is in source.decimal_columns, and 1.0 and 1.00 are one key in Postgres and two in Kafka"
    if column.type_name == "bpchar" and column.typmod < 4:
        return "is a bpchar without a length: 'a' and 'a ' are one key in Postgres and two in Kafka"
    reason = _KEYS_REFUSED.get(column.type_name)
    return reason and f"is {reason}"


def has_placeholder(column: SourceColumn) -> bool:
    """Whether events mark an unchanged value that is stored out of line."""
    if column.element is not None:
        return column.element in _PLACEHOLDER_ELEMENTS and not column.domain
    return column.type_name in _PLACEHOLDERS


def guard(column: SourceColumn, server_version: int) -> tuple[str, str] | None:
    """Return what silently goes wrong with some values of this column, and the CHECK, with `{column}`, against them."""
    if column.element in ("date", "timestamp", "timestamptz"):
        return _OLD_TIMES
    if column.type_name == "interval" and server_version >= FIRST_INFINITE_INTERVAL:
        return _INFINITE
    return None
