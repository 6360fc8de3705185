"""The entries of the quarantine, as objects and as rows of its Delta table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa

from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.kafka.record import KeptRecord, RawRecord, log_offset_of
from cdc_views.store.delta_log import TableSpec

NAME: Final = "_quarantine"

State = Literal["stopped", "bad", "waiting", "discarded"]
PARKED: Final[frozenset[State]] = frozenset({"bad", "waiting"})

_HEADER = pa.struct([("name", pa.string()), ("value", pa.binary())])
SPEC: Final = TableSpec(
    NAME,
    NAME,
    pa.schema(
        [
            ("table", pa.string()),
            ("topic", pa.string()),
            ("partition", pa.int64()),
            ("offset", pa.int64()),
            ("timestamp_ms", pa.int64()),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("headers", pa.list_(_HEADER)),
            ("reason", pa.string()),
            ("state", pa.string()),
            ("epoch", pa.int64()),
        ]
    ),
    ("topic", "partition", "offset"),
)
WITHOUT_BYTES: Final = tuple(name for name in SPEC.schema.names if name not in ("value", "headers"))


@dataclass(frozen=True)
class Entry:
    """An event in quarantine since `epoch`. `record` has no value and no headers if they were not read."""

    table: str
    record: KeptRecord
    reason: str
    state: State
    epoch: int

    @property
    def place(self) -> LogOffset:
        """Where the event is in the log."""
        return self.record.log_offset

    @classmethod
    def of(cls, table: str, record: RawRecord, reason: str, state: State, epoch: int) -> Entry:
        """An entry with the bytes of a record."""
        kept = KeptRecord(log_offset_of(record), record.timestamp()[1], record.key(), record.value(), record.headers())
        return cls(table, kept, reason, state, epoch)


def entry_of(row: Mapping[str, Any]) -> Entry:
    """Parse a row of the table, which may lack the value and headers."""
    headers = row.get("headers")
    pairs = None if headers is None else [(header["name"], header["value"]) for header in headers]
    place = LogOffset(row["topic"], row["partition"], row["offset"])
    record = KeptRecord(place, row["timestamp_ms"], row["key"], row.get("value"), pairs)
    return Entry(row["table"], record, row["reason"], row["state"], row["epoch"])


def keys_of(places: Iterable[LogOffset]) -> pa.Table:
    """The keys of entries in the table."""
    key = pa.schema([SPEC.schema.field(name) for name in SPEC.key])
    return pa.Table.from_pylist([place._asdict() for place in sorted(places)], schema=key)


def rows_of(entries: Iterable[Entry]) -> pa.Table:
    """Entries as rows of the table."""
    rows = []
    for each in entries:
        record, pairs = each.record, each.record.header_pairs
        headers = None if pairs is None else [{"name": name, "value": value} for name, value in pairs]
        rows.append(
            {"table": each.table, **each.place._asdict(), "timestamp_ms": record.at_ms, "key": record.key_bytes,
             "value": record.value_bytes, "headers": headers, "reason": each.reason, "state": each.state,
             "epoch": each.epoch}
        )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=SPEC.schema)
