"""What DDL and TRUNCATE did to the captured tables.

A cut ends before the first command that cannot be applied to a mirror; the next cut raises its error or stops the
table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from cdc_views.base.captured import CapturedSet, CapturedTable, DefinitionChange, definition_changes
from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.errors import RESET, CdcViewsError, SchemaChanged, TableTruncated
from cdc_views.log.cuts.cut import PartitionBuffer
from cdc_views.log.cuts.markers import committed_at
from cdc_views.log.kafka.record import Record, bad_event

HINT: Final = f"the mirror stays as it was before it; {RESET}"


@dataclass(frozen=True)
class Stop:
    """A change of `table` that cannot be applied: the state at `position` is the last one before it.

    `position` is None where it is not known since when rows may have changed without events. Then nothing after the
    last published epoch can be trusted, and `committed_at` means nothing. `error` says what was changed.
    """

    table: TableName
    position: Lsn | None
    committed_at: datetime | None
    error: CdcViewsError


@dataclass(frozen=True)
class DdlResult:
    """What the records of DDL and TRUNCATE below a position mean: the first stop, and the captured set after them.

    Tables in `stopping` have a stop there; `captured` has them as they were before it.
    """

    stop: Stop | None
    captured: CapturedSet
    stopping: frozenset[TableName]


class DdlCheck:
    """Compares the captured tables of one project with `known`, the captured set as it was before.

    `publication` is the project's. Tables that are not in `known` are compared with `found`, the captured set as it was
    in the source at some moment after the marker of the cut.
    """

    def __init__(
        self, publication: str, tables: Iterable[TableName], known: CapturedSet | None, found: CapturedSet
    ) -> None:
        self._publication = publication
        self._tables = frozenset(tables)
        self._known = known
        self._found = found
        # If event triggers were missing for a while, nobody knows what else was done and when.
        self._vouched = bool(found.event_triggers) and (known is None or known.event_triggers == found.event_triggers)

    def apply(self, ddl: Iterable[PartitionBuffer], truncates: Iterable[PartitionBuffer], position: Lsn) -> DdlResult:
        """Apply the records below `position`. Raises BadEvent."""
        work = _Work({str(table): self._baseline(table) for table in self._tables})
        rows = sorted(self._rows(ddl, position), key=_order)
        for record in rows:
            self._apply(record, work)
        stops = [
            *work.stops,
            *(_truncated(record) for record in self._rows(truncates, position) if not _is_read(record)),
        ]
        stop = min(stops, key=lambda stop: stop.position or 0, default=None)
        captured = CapturedSet(event_triggers=self._found.event_triggers, tables=work.tables)
        return DdlResult(stop, captured, frozenset(each.table for each in stops))

    def unexplained(self, result: DdlResult) -> Stop | None:
        """Return the stop of the first table that differs from what the recorded changes have left, or None.

        With None, `found` is the captured set from here on: harmless changes, such as a VACUUM FULL, may not have been
        recorded.
        """
        for table in sorted(self._tables - result.stopping):
            known, found = result.captured.of(table), self._found.of(table)
            if known is None:
                continue
            if found is None:
                return _unrecorded(table, "it is gone")
            differing = next(iter(definition_changes(known, found, vouched=self._vouched)), None)
            if differing is not None:
                return _unrecorded(table, str(differing))
        return None

    def _baseline(self, table: TableName) -> CapturedTable | None:
        return (self._known or self._found).of(table)

    def _rows(self, held: Iterable[PartitionBuffer], position: Lsn) -> Iterator[Record]:
        for each in held:
            for commit, record in each:
                if commit >= position:
                    break
                if record.value is None or record.value.get("op") == "d":
                    continue
                row = _row(record)
                if row["publication"] == self._publication and _table(row) in self._tables:
                    yield record

    def _apply(self, record: Record, work: _Work) -> None:
        row = _row(record)
        table, found = _table(row), _description(record)
        if _is_read(record):  # a record of the snapshot: it says what the table was when the snapshot began
            work.tables[str(table)] = found or work.tables[str(table)]
            return
        known = work.tables[str(table)]
        difference = _difference(known, found, row["command"], self._vouched)
        if table in work.stopped:
            return
        if difference is not None:
            work.stopped.add(table)
            is_dated = self._vouched and (not isinstance(difference, DefinitionChange) or difference.is_dated)
            work.stops.append(_stop(record, is_dated, str(difference)))
        elif found is not None:
            work.tables[str(table)] = found


@dataclass
class _Work:
    tables: dict[str, CapturedTable | None]
    stopped: set[TableName] = field(default_factory=set)
    stops: list[Stop] = field(default_factory=list)


def _difference(
    known: CapturedTable | None, found: CapturedTable | None, command: str, vouched: bool
) -> DefinitionChange | str | None:
    if found is None:
        return "its rows may have changed without events"
    if known is None:
        return "its former definition is not known"
    return next(iter(definition_changes(known, found, command=command, vouched=vouched)), None)


def _order(record: Record) -> tuple[int, int, int]:
    order = record.order
    commit = -1 if order is None or order.commit is None else order.commit
    lsn = -1 if order is None or order.lsn is None else order.lsn
    return commit, lsn, record.offset if not _is_read(record) else int(_row(record).get("id", 0))


def _is_read(record: Record) -> bool:
    return record.value is not None and record.value["op"] == "r"


def _row(record: Record) -> dict[str, Any]:
    """The row of a service table that a record holds. Raises BadEvent."""
    assert record.value is not None
    row, source = record.value.get("after"), record.value["source"]
    names = ("publication", "schema_name", "table_name")
    is_row = isinstance(row, dict) and all(isinstance(row.get(name), str) for name in names)
    if record.value.get("op") not in ("c", "u", "r") or not is_row or record.order is None or not _has_time(source):
        raise bad_event(record, "is not a row of a service table")
    assert isinstance(row, dict)
    return row


def _description(record: Record) -> CapturedTable | None:
    assert record.value is not None
    text = record.value["after"].get("description")
    if text is None:
        return None
    try:
        return CapturedTable.model_validate_json(text)
    except ValidationError:
        hint = f"how its table was changed is not in the log; {RESET}"
        raise bad_event(record, "has no description of a captured table", hint=hint) from None


def _has_time(source: Mapping[str, object]) -> bool:
    return type(source.get("ts_us", source.get("ts_ms"))) is int


def _table(row: Mapping[str, str]) -> TableName:
    return TableName(row["schema_name"], row["table_name"])


def _stop(record: Record, is_dated: bool, problem: str) -> Stop:
    position, place = _position(record)
    row = _row(record)
    error = _changed(_table(row), f'"{row.get("command")}"', f"{problem}, {place}")
    return Stop(_table(row), position if is_dated else None, _committed_at(record), error)


def _truncated(record: Record) -> Stop:
    position, place = _position(record)
    row = _row(record)
    error = TableTruncated(f'table "{_table(row)}" was emptied by "TRUNCATE {row.get("truncated")}" {place}', hint=HINT)
    return Stop(_table(row), position, _committed_at(record), error)


def changed_since(table: TableName, problem: str = "its columns, their types or its key differ") -> SchemaChanged:
    """Return the error of a table that is no longer what its mirror was made of."""
    return SchemaChanged(f'table "{table}" was changed since its mirror was created: {problem}', hint=HINT)


def _unrecorded(table: TableName, problem: str) -> Stop:
    return Stop(table, None, None, _changed(table, "an unrecorded command", problem))


def _changed(table: TableName, command: str, problem: str) -> SchemaChanged:
    return SchemaChanged(f'table "{table}" was changed by {command}: {problem}', hint=HINT)


def _position(record: Record) -> tuple[Lsn | None, str]:
    assert record.order is not None
    commit = record.order.commit
    return (None, "right after the snapshot") if commit is None else (Lsn(commit), f"after position {Lsn(commit)}")


def _committed_at(record: Record) -> datetime:
    assert record.value is not None
    return committed_at(record.value)
