"""Markers as they come out of the log.

B, the position of a cut, is the marker's s0: the end of the last commit before it. Everything committed up to there
comes before the marker in the stream. Under exactly-once, a marker that can be read proves that all of it can be.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from cdc_views.base.captured import CapturedSet
from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.base.rendering import FRACTION, TIMES
from cdc_views.errors import RESET, PrintedOtherwise
from cdc_views.log.kafka.record import Record, bad_event

_POOLER: Final = "a pooler between Kafka Connect and Postgres must pass on the options of connections"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MarkerWriter(Protocol):
    """Writes markers into the source (cdc_views.source.service.marker.Marker)."""

    @property
    def writer(self) -> str:
        """The name that tells this writer's markers from those of others."""

    def touch(self) -> int:
        """Write a marker and return its number, which only grows."""

    def captured(self) -> CapturedSet:
        """Describe the captured tables as they are now."""


@dataclass(frozen=True)
class ArrivedMarker:
    """A marker that was read: B (None in the first transaction after the slot was created), its own LSN, its time."""

    number: int
    position: Lsn | None
    lsn: Lsn
    committed_at: datetime


def read_marker(record: Record, writer: str) -> ArrivedMarker | None:
    """Return the marker of this writer that the record holds, or None. Raises BadEvent."""
    try:
        return _marker(record, writer)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise bad_event(record, "is not a row of the heartbeat table") from None


def require_pinned(record: Record, zoned: Collection[TableName]) -> None:
    """Check how the connector's session printed the probes in a heartbeat; snapshot rows are from another session.

    `zoned` lists the tables with values that are printed in the session's time zone. Raises PrintedOtherwise, BadEvent.
    """
    if record.value is None or record.value.get("op") not in ("c", "u"):
        return
    try:
        row = record.value["after"]
        times, fraction = b64decode(row["times"], validate=True).decode(), float(row["fraction"])
    except (KeyError, TypeError, ValueError):
        raise bad_event(record, "is not a row of the heartbeat table") from None
    if fraction != FRACTION:
        raise PrintedOtherwise(
            f"the connector's session prints the number {FRACTION} as {fraction}", hint=f"{_POOLER}; then {RESET}"
        )
    if times != TIMES and zoned:
        raise PrintedOtherwise(
            f"the connector's session prints times as '{times}', wanted '{TIMES}', and values of table "
            f'"{min(zoned)}" are printed like these',
            hint=f"run Kafka Connect's Java with -Duser.timezone=UTC; {_POOLER}; then {RESET}",
        )


def _marker(record: Record, writer: str) -> ArrivedMarker | None:
    if record.value is None or record.order is None or record.value["op"] == "r":
        return None
    row: dict[str, Any] | None = record.value["after"]
    if row is None or row["writer"] != writer:
        return None
    if record.order.lsn is None:
        raise bad_event(record, "a marker without an LSN")
    commit = record.order.commit
    return ArrivedMarker(
        number=int(row["number"]),
        position=None if commit is None else Lsn(commit),
        lsn=Lsn(record.order.lsn),
        committed_at=committed_at(record.value),
    )


def committed_at(value: dict[str, Any]) -> datetime:
    """Return when the transaction of an event was committed, by the source's clock."""
    source = value["source"]
    microseconds = source.get("ts_us")
    return _EPOCH + timedelta(microseconds=source["ts_ms"] * 1000 if microseconds is None else microseconds)
