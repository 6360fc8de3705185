"""The quarantine: events that are in no mirror, with their bytes, in the Delta table `_quarantine` of the warehouse.

An event is there in one of these states:
  - stopped: the engine stopped before it; no epoch has come past it;
  - bad, waiting: parked. It is in no mirror, nor is any later event of its key, which all wait here. The key's row in
    the mirror is the last good one;
  - discarded: the user has given it up. It stays until the key's row no longer depends on it: until then an unchanged
    value that Postgres leaves out of an event may be the one that was in it.
What is parked at an epoch is part of it: the table is in the manifest, and committed with the epoch before the mirrors
are, so that where a mirror is committed the quarantine is too. What the user discards, and what the engine stops at,
is committed between epochs, under an attempt of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from cdc_views.capture.envelope import NEW_KEY, OLD_KEY, Envelope, Identity
from cdc_views.capture.sift import Known, Parked, Sifted, in_order
from cdc_views.errors import BadEvent, CdcViewsError, UnknownEvent
from cdc_views.log.record import KeptRecord, Offsets, Place, RawRecord, Record, TopicPartition, parse_record, place_of
from cdc_views.source.catalog import SourceTable
from cdc_views.store.control.control_log import ControlLog
from cdc_views.store.delta_log.entries import NO_TABLE
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.warehouse import Changes, Stamp, Warehouse

if TYPE_CHECKING:
    from cdc_views.engine.epoch.tables import Tables

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
_WITHOUT_BYTES: Final = tuple(name for name in SPEC.schema.names if name not in ("value", "headers"))


@dataclass(frozen=True)
class Entry:
    """An event in quarantine, since `epoch`; `record` has no value and no headers where they were not read."""

    table: str
    record: KeptRecord
    reason: str
    state: State
    epoch: int

    @property
    def place(self) -> Place:
        """Where the event is in the log."""
        return self.record.place

    @classmethod
    def of(cls, table: str, record: RawRecord, reason: str, state: State, epoch: int) -> Entry:
        """An entry with the bytes of a record."""
        kept = KeptRecord(place_of(record), record.timestamp()[1], record.key(), record.value(), record.headers())
        return cls(table, kept, reason, state, epoch)


class Quarantine:
    """The entries at a version, the last one that was asked for in memory without their bytes."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._known: tuple[int, list[Entry]] | None = None

    def at(self, version: int) -> list[Entry]:
        """All entries, without values and headers."""
        if self._known is None or self._known[0] != version:
            rows = self._warehouse.rows(SPEC, version, _WITHOUT_BYTES)
            self._known = version, [entry_of(row) for row in rows.to_pylist()]
        return self._known[1]

    def whole(self, version: int) -> list[Entry]:
        """All entries with all their bytes."""
        return [entry_of(row) for row in self._warehouse.rows(SPEC, version).to_pylist()]


def entry_of(row: Mapping[str, Any]) -> Entry:
    """A row of the table, which may lack the bytes."""
    headers = row.get("headers")
    pairs = None if headers is None else [(header["name"], header["value"]) for header in headers]
    place = Place(row["topic"], row["partition"], row["offset"])
    record = KeptRecord(place, row["timestamp_ms"], row["key"], row.get("value"), pairs)
    return Entry(row["table"], record, row["reason"], row["state"], row["epoch"])


def declare(tables: Tables, *, is_needed: bool = False) -> None:
    """Let the quarantine be one of the tables if it is needed, if events are to be parked, or if it is there."""
    if NAME not in tables.specs and (is_needed or tables.parks or tables.warehouse.latest_version(NAME) != NO_TABLE):
        tables.add(SPEC)
        tables.quarantine = Quarantine(tables.warehouse)


def version_of(tables: Tables) -> int | None:
    """The version that the next epoch starts from; None where there is no quarantine."""
    return tables.version(NAME) if tables.quarantine is not None else None


@dataclass(frozen=True)
class Retry:
    """That parked events are to be applied again: those of the key of the event at `place`, or all (None)."""

    place: Place | None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Past:
    """What the quarantine has of one table when an epoch begins; `records` are to be applied before the cut's."""

    entries: Sequence[Entry] = ()
    identities: Mapping[Place, Identity] = field(default_factory=dict)
    known: Known = field(default_factory=Known)
    records: Sequence[Record] = ()
    retried: Collection[Identity] = frozenset()
    is_forgotten: bool = False

    @property
    def is_clear(self) -> bool:
        """Whether there is nothing."""
        return not self.entries


def past_of(source: SourceTable, entries: Sequence[Entry], start: Offsets, retry: Retry | None) -> Past:
    """What `entries`, all of this table, mean for an epoch whose cut begins at `start`."""
    if not entries:
        return Past()
    identities = _identities(source, entries)
    retried = _retried(source, entries, identities, retry)
    parked = {identities[each.place] for each in entries if each.state in PARKED} - retried
    discarded = [each for each in entries if each.state == "discarded"]
    lost = {identities[each.place] for each in discarded if _is_before(each.place, start)} - retried
    again = [each for each in entries if each.state != "stopped" and identities[each.place] in retried]
    known = Known(parked, lost, {each.place for each in discarded})
    return Past(entries, identities, known, in_order(parse_record(each.record) for each in again), retried)


def _identities(source: SourceTable, entries: Iterable[Entry]) -> dict[Place, Identity]:
    envelope = Envelope(source)
    # Without its value, which may not be there, it is a tombstone of the same key.
    keys = {each.place: replace(each.record, value_bytes=None, header_pairs=None) for each in entries}
    return {place: envelope.identity(parse_record(record)) for place, record in keys.items()}


def _retried(
    source: SourceTable, entries: Iterable[Entry], identities: Mapping[Place, Identity], retry: Retry | None
) -> set[Identity]:
    """The keys to be tried again, with those that a row has moved to or come from: they wait for each other."""
    if retry is None:
        return set()
    parked = [each for each in entries if each.state in PARKED or each.place == retry.place]
    found = {identities[each.place] for each in parked if retry.place in (None, each.place)}
    moves = [(identities[each.place], _other_keys(source, each)) for each in parked]
    grown = True
    while grown:
        keys = {key for _, key in found}
        more = {identity for identity, others in moves if identity in found or others & keys}
        reached = set().union(*(others for identity, others in moves if identity in found))
        more |= {identity for identity in identities.values() if identity[1] in reached}
        grown = not more <= found
        found |= more
    return found


def _other_keys(source: SourceTable, entry: Entry) -> set[Any]:
    """The keys that an event's row came from or went to."""
    if not entry.record.header_pairs:
        return set()
    envelope, record = Envelope(source), parse_record(replace(entry.record, value_bytes=None))
    found = set()
    for header in (OLD_KEY, NEW_KEY):
        try:
            found.add(envelope.header_key(record, header))
        except BadEvent:
            continue
    return found - {None}


def _is_before(place: Place, offsets: Offsets) -> bool:
    return place.offset < offsets.get(TopicPartition(place.topic, place.partition), 0)


@dataclass
class Step:
    """What an epoch does to the quarantine, told table by table. `refused` are errors of events new to it."""

    epoch: int
    put: dict[Place, Entry] = field(default_factory=dict)
    gone: set[Place] = field(default_factory=set)
    refused: list[tuple[CdcViewsError, Entry]] = field(default_factory=list)

    def add(self, source: SourceTable, past: Past, sifted: Sifted, end: Offsets) -> None:
        """Take in what has become of one table's events up to `end`."""
        known = {each.place: each for each in past.entries}
        kept = {each.place for each in sifted.parked}
        for parked in sifted.parked:
            self._park(str(source.name), parked, known.get(parked.place))
        self.gone |= {
            each.place for each in past.entries if each.place not in kept and _is_done(each, past, sifted, end)
        }

    def changes(self) -> Changes | None:
        """What is to be committed; None if nothing is."""
        if not self.put and not self.gone:
            return None
        return Changes(_keys(self.gone) if self.gone else None, rows_of(self.put.values()))

    def after(self, before: Iterable[Entry]) -> list[Entry]:
        """The entries when the epoch is committed."""
        left = {each.place: each for each in before if each.place not in self.gone}
        return list((left | self.put).values())

    def _park(self, table: str, parked: Parked, known: Entry | None) -> None:
        assert parked.record.raw is not None
        was_parked = known is not None and known.state in PARKED
        since = known.epoch if known is not None and was_parked else self.epoch
        reason = parked.reason.removeprefix(f"{parked.place}: ")
        entry = Entry.of(table, parked.record.raw, reason, "waiting" if parked.error is None else "bad", since)
        if known is None or (known.state, known.reason) != (entry.state, entry.reason):
            self.put[entry.place] = entry
        if parked.error is not None and not was_parked:
            self.refused.append((parked.error, entry))


def _is_done(entry: Entry, past: Past, sifted: Sifted, end: Offsets) -> bool:
    """Whether nothing depends on an entry any more that is not parked now."""
    if past.is_forgotten:
        return True
    identity = past.identities[entry.place]
    if entry.state == "discarded":
        is_of_no_row = not isinstance(identity[1], tuple) and _is_before(entry.place, end)
        return is_of_no_row or identity in sifted.whole
    return identity in past.retried if entry.state in PARKED else _is_before(entry.place, end)


def _keys(places: Iterable[Place]) -> pa.Table:
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


def commit_step(tables: Tables, step: Step, done: Mapping[str, int], stamp: Stamp) -> dict[str, int]:
    """Commit an epoch's changes, unless an earlier attempt has; the new version, if there is one."""
    if NAME in done:
        return {NAME: done[NAME]}
    changes = step.changes()
    if changes is None:
        return {}
    return {NAME: tables.warehouse.commit(SPEC, tables.version(NAME), changes, stamp)}


def keep(
    tables: Tables, control: ControlLog, entries: Sequence[Entry], detail: Mapping[str, Any] | None = None
) -> None:
    """Put entries between two epochs, under an attempt of its own that the control log has first."""
    declare(tables, is_needed=True)
    published = control.last_published
    record = control.append(
        kind="quarantine",
        epoch=published.epoch if published is not None else 0,
        attempt=control.new_attempt(),
        generation=tables.generation,
        detail={"events": [[*each.place, each.state] for each in entries], **(detail or {})},
    )
    stamp = Stamp(record.epoch, record.attempt, str(tables.position or "0/0"))
    changes = Changes(None, rows_of(entries))
    tables.stand_at({NAME: tables.warehouse.commit(SPEC, tables.version(NAME), changes, stamp)})


def forget_others(tables: Tables, control: ControlLog, topics: Collection[str]) -> None:
    """Drop the entries of other topics: of those of a generation that a reset has replaced."""
    if tables.quarantine is None:
        return
    places = [each.place for each in tables.quarantine.at(tables.version(NAME)) if each.place.topic not in topics]
    if places:
        record = control.append(
            kind="quarantine",
            epoch=control.last_epoch,
            attempt=control.new_attempt(),
            generation=tables.generation,
            detail={"forgotten": len(places)},
        )
        stamp = Stamp(record.epoch, record.attempt, str(tables.position or "0/0"))
        changes = Changes(_keys(places), rows_of([]))
        tables.stand_at({NAME: tables.warehouse.commit(SPEC, tables.version(NAME), changes, stamp)})


def keep_stopped(tables: Tables, control: ControlLog, entries: Sequence[Entry]) -> None:
    """Keep the events at which the engine stops, but for those that an earlier start has kept."""
    declare(tables, is_needed=True)
    assert tables.quarantine is not None
    known = {each.place for each in tables.quarantine.at(tables.version(NAME))}
    if new := [replace(each, state="stopped") for each in entries if each.place not in known]:
        keep(tables, control, new)


def discard(tables: Tables, control: ControlLog, place: Place, detail: Mapping[str, Any]) -> State:
    """Mark an event as given up; returns the state that it had. Raises UnknownEvent."""
    entry = find(tables, place)
    if entry.state != "discarded":
        mark = detail if entry.state == "stopped" else {}
        keep(tables, control, [replace(entry, state="discarded")], mark)
    return entry.state


def find(tables: Tables, place: Place) -> Entry:
    """The entry of an event, with its bytes. Raises UnknownEvent."""
    found = [] if tables.quarantine is None else tables.quarantine.whole(tables.version(NAME))
    for entry in found:
        if entry.place == place:
            return entry
    raise UnknownEvent(f"{place} is not in quarantine", hint='"cdc-views quarantine list" shows what is')


@dataclass(frozen=True)
class Counts:
    """How many keys of each table are parked, and how many of its events are discarded and still missed."""

    parked: Mapping[str, int]
    discarded: Mapping[str, int]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Counts:
        """Count these."""
        listed = list(entries)
        keys = {(each.table, each.place.partition, each.record.key_bytes) for each in listed if each.state in PARKED}
        discarded = Counter(each.table for each in listed if each.state == "discarded")
        return cls(Counter(table for table, _, _ in keys), discarded)

    def status(self, table: str) -> str:
        """The status of a mirror in the manifest: what is parked or discarded makes it unequal to Postgres."""
        return "parked" if self.parked.get(table) else "discarded" if self.discarded.get(table) else "live"

    def detail(self) -> dict[str, Any]:
        """What a published record says of it."""
        both = {"parked": dict(self.parked), "discarded": dict(self.discarded)}
        return {name: counts for name, counts in both.items() if counts}
