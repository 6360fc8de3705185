"""One Kafka record of a table's topic to one change of one key.

Only `op` and `after` are read. `before` is never used: on a compacted topic it describes a state that
we may never have seen. Values stay Debezium's JSON here; the fold decodes those that remain.

A change of key comes as a delete of the old key (header `__debezium.newkey`), its tombstone (which
carries that header too) and a create of the new one (header `__debezium.oldkey`), in partitions that
may differ, all of the same order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from cdc_views.capture.unchanged import PLACEHOLDER
from cdc_views.errors import BadEvent
from cdc_views.log.record import Order, Record
from cdc_views.source.catalog import SourceTable

OLD_KEY: Final = "__debezium.oldkey"
NEW_KEY: Final = "__debezium.newkey"

# Values of the key columns, in the key's order: as JSON has them (raw), or decoded.
Key = tuple[Any, ...]


class Change(NamedTuple):
    """One change of one key.

    `op` is c (create), u (update), d (delete), r (snapshot read) or t (tombstone); `after` the raw
    values of every column, None for d and t. `old_key` is set on the create of a change of key,
    `new_key` on its delete.
    """

    op: str
    key: Key
    after: dict[str, Any] | None
    order: Order | None
    old_key: Key | None
    new_key: Key | None


class Envelope:
    """Reads the records of one table. `read` raises BadEvent naming topic, partition and offset."""

    def __init__(self, table: SourceTable) -> None:
        self._key = table.key
        self._columns = {column.name for column in table.columns}

    def read(self, record: Record) -> Change:
        """The change that a record carries."""
        key, headers = self._key_of(record, record.key), record.headers
        value = record.value
        if value is None:
            return Change("t", key, None, record.order, None, None)
        op, after = value.get("op"), value.get("after")
        if op == "d":
            new_key = self._header_key(record, NEW_KEY) if headers else None
            return Change("d", key, None, record.order, None, new_key)
        if op not in ("c", "u", "r"):
            raise bad_event(record, f"operation {_name(op)}, wanted one of c, u, d, r")
        if not isinstance(after, dict):
            raise bad_event(record, f'operation "{op}" without the row after it')
        if after.keys() != self._columns:
            raise bad_event(record, self._wrong_columns(after), hint="the table's columns may have changed")
        old_key = self._header_key(record, OLD_KEY) if headers else None
        return Change(op, key, after, record.order, old_key, None)

    def _key_of(self, record: Record, key: Mapping[str, Any] | None) -> Key:
        try:
            found = tuple([key[column] for column in self._key])  # type: ignore[index]
        except (KeyError, TypeError):
            raise bad_event(record, "a key without the columns of the table's key", hint=_KEY_HINT) from None
        if None in found or len(key) != len(found):  # type: ignore[arg-type]
            raise bad_event(record, "a key that is NULL or has other columns than the table's", hint=_KEY_HINT)
        if PLACEHOLDER in found:
            # Changes of different rows would be taken for one row's.
            raise bad_event(record, "a key stored out of line, of which only the placeholder is there", hint=_FULL_HINT)
        return found

    def _header_key(self, record: Record, header: str) -> Key | None:
        text = record.headers.get(header)
        if text is None:
            return None
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


_FULL_HINT: Final = "set REPLICA IDENTITY FULL on the table, then rebuild it from a snapshot"
_KEY_HINT: Final = "the table's key may have changed, or the topic belongs to another table"


def bad_event(record: Record, problem: str, *, hint: str | None = None) -> BadEvent:
    """The error for a record that is not what Debezium writes."""
    where = f'topic "{record.topic}" partition {record.partition} offset {record.offset}'
    return BadEvent(f"{where}: {problem}", hint=hint)


def _name(op: Any) -> str:
    return f'"{op}"' if isinstance(op, str) and len(op) == 1 else "missing or not a letter"


def _lenient_json(text: bytes) -> Any:
    # Connect's SimpleHeaderConverter writes line breaks in texts as they are, which JSON forbids.
    try:
        return json.loads(text, strict=False)
    except ValueError:
        return None
