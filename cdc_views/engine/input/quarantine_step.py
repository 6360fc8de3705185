"""What the quarantine means for an epoch, and what the epoch does to the quarantine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cdc_views.capture.envelope import NEW_KEY, OLD_KEY, Envelope, Identity
from cdc_views.capture.sift import Known, Parked, Sifted, in_order
from cdc_views.engine.input.quarantine_entries import PARKED, Entry, keys_of, rows_of
from cdc_views.engine.intent import Retry
from cdc_views.errors import BadEvent, CdcViewsError
from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.kafka.record import Offsets, Record, TopicPartition, parse_record
from cdc_views.source.catalog import SourceTable
from cdc_views.store.warehouse import Changes


@dataclass(frozen=True)
class Past:
    """What the quarantine has of one table when an epoch begins. `records` are applied before those of the cut."""

    entries: Sequence[Entry] = ()
    identities: Mapping[LogOffset, Identity] = field(default_factory=dict)
    known: Known = field(default_factory=Known)
    records: Sequence[Record] = ()
    retried: Collection[Identity] = frozenset()
    is_forgotten: bool = False

    @property
    def is_clear(self) -> bool:
        """Whether the quarantine has nothing of the table."""
        return not self.entries


def past_of(source: SourceTable, entries: Sequence[Entry], start: Offsets, retry: Retry | None) -> Past:
    """What `entries`, all of this table, mean for an epoch whose cut starts at `start`."""
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


def _identities(source: SourceTable, entries: Iterable[Entry]) -> dict[LogOffset, Identity]:
    envelope = Envelope(source)
    # Without its value, which may not be there, it is a tombstone of the same key.
    keys = {each.place: replace(each.record, value_bytes=None, header_pairs=None) for each in entries}
    return {place: envelope.identity(parse_record(record)) for place, record in keys.items()}


def _retried(
    source: SourceTable, entries: Iterable[Entry], identities: Mapping[LogOffset, Identity], retry: Retry | None
) -> set[Identity]:
    """The keys to retry, with those that a row was moved to or came from: they wait for each other."""
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


def _is_before(place: LogOffset, offsets: Offsets) -> bool:
    return place.offset < offsets.get(TopicPartition(place.topic, place.partition), 0)


@dataclass
class QuarantineStep:
    """What an epoch does to the quarantine, added table by table. `refused` has the errors of events new to it."""

    epoch: int
    put: dict[LogOffset, Entry] = field(default_factory=dict)
    gone: set[LogOffset] = field(default_factory=set)
    refused: list[tuple[CdcViewsError, Entry]] = field(default_factory=list)

    def add(self, source: SourceTable, past: Past, sifted: Sifted, end: Offsets) -> None:
        """Add the outcome of the events of one table up to `end`."""
        known = {each.place: each for each in past.entries}
        kept = {each.log_offset for each in sifted.parked}
        for parked in sifted.parked:
            self._park(str(source.name), parked, known.get(parked.log_offset))
        self.gone |= {
            each.place for each in past.entries if each.place not in kept and _is_done(each, past, sifted, end)
        }

    def changes(self) -> Changes | None:
        """What to commit; None if there is nothing."""
        if not self.put and not self.gone:
            return None
        return Changes(keys_of(self.gone) if self.gone else None, rows_of(self.put.values()))

    def after(self, before: Iterable[Entry]) -> list[Entry]:
        """The entries after the epoch."""
        left = {each.place: each for each in before if each.place not in self.gone}
        return list((left | self.put).values())

    def _park(self, table: str, parked: Parked, known: Entry | None) -> None:
        assert parked.record.raw is not None
        was_parked = known is not None and known.state in PARKED
        since = known.epoch if known is not None and was_parked else self.epoch
        entry = Entry.of(table, parked.record.raw, parked.reason, "waiting" if parked.error is None else "bad", since)
        if known is None or (known.state, known.reason) != (entry.state, entry.reason):
            self.put[entry.place] = entry
        if parked.error is not None and not was_parked:
            self.refused.append((parked.error, entry))


def _is_done(entry: Entry, past: Past, sifted: Sifted, end: Offsets) -> bool:
    """Whether nothing depends any more on an entry that is not parked now."""
    if past.is_forgotten:
        return True
    identity = past.identities[entry.place]
    if entry.state == "discarded":
        is_of_no_row = not isinstance(identity[1], tuple) and _is_before(entry.place, end)
        return is_of_no_row or identity in sifted.recovered
    return identity in past.retried if entry.state in PARKED else _is_before(entry.place, end)


@dataclass(frozen=True)
class QuarantineCounts:
    """How many keys of each table are parked, and how many of its events are discarded and not yet superseded."""

    parked: Mapping[str, int]
    discarded: Mapping[str, int]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> QuarantineCounts:
        """Count entries."""
        listed = list(entries)
        keys = {(each.table, each.place.partition, each.record.key_bytes) for each in listed if each.state in PARKED}
        discarded = Counter(each.table for each in listed if each.state == "discarded")
        return cls(Counter(table for table, _, _ in keys), discarded)

    def status(self, table: str) -> str:
        """The status of a mirror in the manifest: parked and discarded events make it unequal to Postgres."""
        return "parked" if self.parked.get(table) else "discarded" if self.discarded.get(table) else "live"
