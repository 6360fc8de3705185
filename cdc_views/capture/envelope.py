"""One Kafka record of a table's topic to one change of one key.

Only `op` and `after` are read. `before` is never used: on a compacted topic it describes a state that the engine may
never have seen. Values stay Debezium's JSON here; the fold decodes those that remain.

A change of key comes as a delete of the old key (header `__debezium.newkey`), its tombstone (which carries that header
too) and a create of the new key (header `__debezium.oldkey`). They may be in different partitions, and all have the
same order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from cdc_views.capture.types import column_types
from cdc_views.capture.unchanged import forms
from cdc_views.errors import BadEvent
from cdc_views.log.kafka.record import Order, Record, bad_event, require_event
from cdc_views.source.catalog import SourceTable

OLD_KEY: Final = "__debezium.oldkey"
NEW_KEY: Final = "__debezium.newkey"

# Values of the key columns, in the key's order: as JSON has them (raw), or decoded.
KeyValues = tuple[Any, ...]
# The partition of a record, and its key; or the bytes of the key if they are not a key of the table.
Identity = tuple[int, KeyValues | bytes | None]


class KeyChange(NamedTuple):
    """One change of one key.

    `op` is c (create), u (update), d (delete), r (snapshot read) or t (tombstone). `after` has the raw values of every
    column, None for d and t. `old_key` is set on the create of a change of key, `new_key` on its delete.
    """

    op: str
    key: KeyValues
    after: dict[str, Any] | None
    order: Order | None
    old_key: KeyValues | None
    new_key: KeyValues | None


class Envelope:
    """Reads the records of one table. `read` raises BadEvent with the offset of the record."""

    def __init__(self, table: SourceTable) -> None:
        types = column_types(table)
        self._key = table.key
        self._key_types = tuple(types[name].json for name in table.key)
        self._columns = {column.name for column in table.columns}
        self._placeholders = forms(table).plain

    def read(self, record: Record) -> KeyChange:
        """Return the change that a record carries."""
        require_event(record)
        key, headers = self._own_key(record), record.headers
        value = record.value
        if value is None:
            return KeyChange("t", key, None, record.order, None, None)
        op, after = value.get("op"), value.get("after")
        if op == "d":
            new_key = self.header_key(record, NEW_KEY) if headers else None
            return KeyChange("d", key, None, record.order, None, new_key)
        if op not in ("c", "u", "r"):
            raise bad_event(record, f"operation {_name(op)}, wanted one of c, u, d, r")
        if not isinstance(after, dict):
            raise bad_event(record, f'operation "{op}" without the row after it')
        if after.keys() != self._columns:
            raise bad_event(record, self._wrong_columns(after), hint="the table's columns may have changed")
        if tuple([after[column] for column in self._key]) != key:
            raise bad_event(record, "the row after it has another key than the record", hint=_KEY_HINT)
        old_key = self.header_key(record, OLD_KEY) if headers else None
        return KeyChange(op, key, after, record.order, old_key, None)

    def identity(self, record: Record) -> Identity:
        """Return what all changes of a record's key have in common, even if the record is bad."""
        try:
            return record.partition, self._own_key(record)
        except BadEvent:
            return record.partition, None if record.raw is None else record.raw.key()

    def _key_of(self, record: Record, key: Mapping[str, Any] | None) -> KeyValues:
        try:
            found = tuple([key[column] for column in self._key])  # type: ignore[index]
        except (KeyError, TypeError):
            raise bad_event(record, "a key without the columns of the table's key", hint=_KEY_HINT) from None
        if None in found or len(key) != len(found):  # type: ignore[arg-type]
            raise bad_event(record, "a key that is NULL or has other columns than the table's", hint=_KEY_HINT)
        for placeholder in self._placeholders:
            if placeholder in found:  # changes of different rows would be treated as changes of one row
                raise bad_event(
                    record, "a key stored out of line, present only as the placeholder", hint=NEEDS_WHOLE_ROWS
                )
        return found

    def _own_key(self, record: Record) -> KeyValues:
        key = self._key_of(record, record.key)
        for value, types in zip(key, self._key_types, strict=True):
            # For Python, true and 1.0 equal the key 1.
            if type(value) not in types:
                raise bad_event(record, "a key of another type than the table's", hint=_KEY_HINT)
        return key

    def header_key(self, record: Record, header: str) -> KeyValues | None:
        """Return the key in a header of a change of key; None without the header. Raises BadEvent."""
        if header not in record.headers:
            return None
        text = record.headers[header] or b""
        try:
            key = orjson.loads(text)
        except orjson.JSONDecodeError:
            key = _lenient_json(text)
        if isinstance(key, dict) and key.keys() == {"schema", "payload"} and "payload" not in self._key:
            key = key["payload"]
        if not isinstance(key, dict):
            raise bad_event(record, f'a header "{header}" that is not a key')
        return self._key_of(record, key)

    def _wrong_columns(self, after: Mapping[str, Any]) -> str:
        missing = sorted(self._columns - after.keys())
        unknown = sorted(after.keys() - self._columns)
        parts = [f'{what} column "{names[0]}"' for what, names in (("no", missing), ("unknown", unknown)) if names]
        return " and ".join(parts)


# REPLICA IDENTITY FULL must not be set while columns of the table are excluded: then its updates fail.
NEEDS_WHOLE_ROWS: Final = (
    "rebuild the table from a snapshot; with source.toast full, and without excluded columns, updates have whole rows"
)
_KEY_HINT: Final = "the table's key may have changed, or the topic belongs to another table"


def _name(op: Any) -> str:
    return f'"{op}"' if isinstance(op, str) and len(op) == 1 else "missing or not a letter"


def _lenient_json(text: bytes) -> Any:
    # Connect's SimpleHeaderConverter does not escape line breaks in strings, which JSON forbids.
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
