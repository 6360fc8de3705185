"""DDL and TRUNCATE of captured tables: the cut ends before the first, and the one after it raises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from cdc_views.errors import CdcViewsError, SchemaChanged, TableTruncated
from cdc_views.log.cut import Held
from cdc_views.log.markers import committed_at
from cdc_views.log.record import Record, bad_event
from cdc_views.lsn import Lsn
from cdc_views.names import TableName

ErrorOf = Callable[[TableName, str, str], CdcViewsError]


@dataclass(frozen=True)
class Stop:
    """The state at `position` (None: unknown) is the last before it; `error` is what it means."""

    position: Lsn | None
    committed_at: datetime
    error: CdcViewsError


def first_stop(
    ddl: Iterable[Held], truncates: Iterable[Held], position: Lsn, fingerprints: Mapping[TableName, str | None]
) -> Stop | None:
    """Find the first stop below `position`; `fingerprints` has every mirrored table, with its known fingerprint.

    Raises BadEvent.
    """
    stops = [_stop(r, _schema_changed) for r in _rows(ddl, position, fingerprints) if _differs(r, fingerprints)]
    stops += [_stop(r, _truncated) for r in _rows(truncates, position, fingerprints)]
    return min(stops, key=lambda stop: stop.position or 0, default=None)


def _rows(held: Iterable[Held], position: Lsn, tables: Mapping[TableName, str | None]) -> Iterable[Record]:
    for each in held:
        for commit, record in each:
            if commit >= position:
                break
            _require_row(record)
            # Rows of before the snapshot ("r") speak of what it has seen already; updates are told by service_sql.
            if record.value is not None and record.value["op"] in ("c", "u") and _table(record) in tables:
                yield record


def _require_row(record: Record) -> None:
    if record.value is None or record.value.get("op") in ("d", "r"):
        return
    row, source = record.value.get("after"), record.value["source"]
    is_row = isinstance(row, dict) and all(isinstance(row.get(name), str) for name in ("schema_name", "table_name"))
    if record.value.get("op") not in ("c", "u") or not is_row or record.order is None or not _has_time(source):
        raise bad_event(record, "is no row of a service table")


def _has_time(source: Mapping[str, object]) -> bool:
    return type(source.get("ts_us", source.get("ts_ms"))) is int


def _table(record: Record) -> TableName:
    assert record.value is not None
    row = record.value["after"]
    return TableName(row["schema_name"], row["table_name"])


def _differs(record: Record, fingerprints: Mapping[TableName, str | None]) -> bool:
    assert record.value is not None
    fingerprint = record.value["after"].get("fingerprint")
    return fingerprint is None or fingerprint != fingerprints[_table(record)]


def _stop(record: Record, error_of: ErrorOf) -> Stop:
    assert record.value is not None
    assert record.order is not None
    commit = record.order.commit
    position = None if commit is None else Lsn(commit)
    place = f"after position {position}" if position is not None else "right after the snapshot"
    error = error_of(_table(record), record.value["after"].get("command", "TRUNCATE"), place)
    return Stop(position, committed_at(record.value), error)


def _schema_changed(table: TableName, command: str, place: str) -> CdcViewsError:
    return SchemaChanged(
        f'table "{table}" was changed by "{command}" {place}',
        hint="the epoch before it is the last one; start with an empty warehouse, a new slot and new topics",
    )


def _truncated(table: TableName, command: str, place: str) -> CdcViewsError:
    return TableTruncated(
        f'table "{table}" was emptied by "{command}" {place}',
        hint="the epoch before it is the last one; start with an empty warehouse, a new slot and new topics",
    )
