"""Markers as they come out of the log.

B, the position of a cut, is the marker's s0: the end of the last commit before it. Everything
committed up to there stands before the marker in the stream, and under exactly-once a marker that
can be read says that all of it can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from cdc_views.captured import CapturedSet
from cdc_views.log.record import Record, bad_event
from cdc_views.lsn import Lsn

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MarkerWriter(Protocol):
    """Who writes markers into the source (cdc_views.source.marker.Marker)."""

    @property
    def writer(self) -> str:
        """Tell this writer's markers from others'."""

    def touch(self) -> int:
        """Write a marker and return its number, which only grows."""

    def captured(self) -> CapturedSet:
        """Describe the captured tables as they are now."""


@dataclass(frozen=True)
class ArrivedMarker:
    """A marker that was read: B (None in the first transaction after the slot was made), its own LSN, its time."""

    number: int
    position: Lsn | None
    lsn: Lsn
    committed_at: datetime


def read_marker(record: Record, writer: str) -> ArrivedMarker | None:
    """Return the marker of this writer that the record is, or None. Raises BadEvent."""
    try:
        return _marker(record, writer)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise bad_event(record, "is no row of the heartbeat table") from None


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
    """Read when the transaction of an event was committed, on the source's clock."""
    source = value["source"]
    microseconds = source.get("ts_us")
    return _EPOCH + timedelta(microseconds=source["ts_ms"] * 1000 if microseconds is None else microseconds)
