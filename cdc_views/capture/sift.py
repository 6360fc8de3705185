"""The fold when some events are bad: what can be applied is applied, and the rest is parked, with a reason.

An event is bad if it is not what Debezium writes, or if no exact form of a mirror can hold its row. Whether a value is
bad matters only if it is the last one of its column: a value that a later event of the same epoch replaces never
reaches the mirror. Of a key with a bad event, the longest series of its changes that gives a good row is applied, and
the rest is parked: the first parked change is the bad one. With it wait
  - all later changes of the key;
  - the create of a change of key whose delete is parked, and with it the new key: its unchanged values are in a row
    that the mirror does not have.
Finding what is bad reads all records again. So it is only done if the fold has met something bad, or if a key of the
table was parked before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cdc_views.capture.envelope import Envelope, Identity, KeyChange, KeyValues
from cdc_views.capture.fold import Fold, Folded, Stored
from cdc_views.errors import EventError
from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.kafka.record import Order, Record
from cdc_views.source.catalog import SourceTable

FOLLOWS: Final = "waits for an earlier event of its key"
MOVED: Final = "its row moved away from a parked key"


@dataclass(frozen=True)
class Parked:
    """A record that is not applied. `error`, which has its offset, is None for a record that only waits."""

    record: Record
    error: EventError | None
    reason: str

    @property
    def log_offset(self) -> LogOffset:
        """Where the record is in the log."""
        return self.record.log_offset


@dataclass(frozen=True)
class Sifted:
    """The fold of what was applied, and the records that were not, in their order.

    `recovered` are keys of which a change was skipped earlier, but whose row no longer depends on it.
    """

    fold: Fold
    folded: Folded
    parked: list[Parked]
    recovered: set[Identity]


@dataclass(frozen=True)
class Known:
    """The quarantine's state: `parked` keys, `lost` keys of which a change was skipped, `skipped` records
    that must be.
    """

    parked: Collection[Identity] = frozenset()
    lost: Collection[Identity] = frozenset()
    skipped: Collection[LogOffset] = frozenset()


@dataclass(frozen=True)
class _Mark:
    """From this offset on a key is parked; `error` is that of the first record."""

    offset: int
    error: EventError | None
    reason: str


def sift(
    table: SourceTable, records: Sequence[Record], stored_of: Callable[[Fold], Stored], known: Known | None = None
) -> Sifted:
    """Fold what can be applied; `stored_of` returns the mirror's rows for the `lookups` of a fold.

    Records of one partition come in offset order, partitions in any order.
    """
    known = known or Known()
    marks: dict[Identity, _Mark] = {}
    while True:
        walk = _Walk(table, known, marks)
        for record in records:
            walk.add(record)
        if walk.mark_moved():
            continue
        stored = stored_of(walk.fold)
        try:
            return Sifted(walk.fold, walk.fold.finish(stored), walk.parked, walk.recovered)
        except EventError:
            failing = walk.fold.failing(stored)
            if not failing:
                raise
            for key, error in failing.items():
                walk.mark_failing(key, error)


def first_error(table: SourceTable, records: Sequence[Record]) -> EventError | None:
    """Return the error of the first record that cannot be applied, of a table whose events hold whole rows."""
    parked = sift(table, records, lambda fold: {}).parked
    return next((each.error for each in parked if each.error is not None), None)


@dataclass
class _Walk:
    """One pass over the records, with what earlier passes have found in `marks`."""

    table: SourceTable
    known: Known
    marks: dict[Identity, _Mark]
    parked: list[Parked] = field(default_factory=list)
    recovered: set[Identity] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.fold = Fold(self.table)
        self._envelope = Envelope(self.table)
        self._applied: dict[KeyValues, list[tuple[Record, KeyChange]]] = {}
        self._departed: set[tuple[KeyValues, Order | None]] = set()
        self._parked_keys = {key for _, key in self.known.parked if isinstance(key, tuple)}
        for _, key in self.known.lost:
            if isinstance(key, tuple):
                self.fold.lose(key)

    def add(self, record: Record) -> None:
        """Apply the record, or park it."""
        identity = self._envelope.identity(record)
        if record.log_offset in self.known.skipped:
            if isinstance(identity[1], tuple):
                self.fold.lose(identity[1])
        elif identity in self.known.parked:
            self._park(record, identity, None, FOLLOWS)
        elif (mark := self.marks.get(identity)) is not None and mark.offset <= record.offset:
            is_first = mark.offset == record.offset
            self._park(record, identity, mark.error if is_first else None, mark.reason if is_first else FOLLOWS)
        else:
            self._apply(record, identity)

    def mark_moved(self) -> bool:
        """Mark the new keys of rows whose old key is parked. Returns whether there was one."""
        found = False
        for changes in self._applied.values():
            for record, change in changes:
                if change.old_key in self._parked_keys and (change.old_key, change.order) not in self._departed:
                    self._mark(record, None, MOVED)
                    found = True
                    break
        return found

    def mark_failing(self, key: KeyValues, error: EventError) -> None:
        """Mark the first change of a key from which on no change gives a good row."""
        changes = self._applied[key]
        record, _ = changes[self._first_bad([change for _, change in changes])]
        self._mark(record, error.at(record.log_offset), error.problem)

    def _apply(self, record: Record, identity: Identity) -> None:
        try:
            change = self._envelope.read(record)
            self.fold.check_key(change.key)
            if change.old_key is not None and self.fold.is_partial(change):
                self.fold.check_key(change.old_key)
            was_lost = self.fold.is_lost(change.key)
            self.fold.add(record)
        except EventError as error:
            self._mark(record, error.at(record.log_offset), error.problem)
            self._park(record, identity, error.at(record.log_offset), error.problem)
            return
        if was_lost:
            self.recovered.add(identity)
        if change.op == "d" and change.new_key is not None:
            self._departed.add((change.key, change.order))
        self._applied.setdefault(change.key, []).append((record, change))

    def _park(self, record: Record, identity: Identity, error: EventError | None, reason: str) -> None:
        self.parked.append(Parked(record, error, reason))
        if isinstance(identity[1], tuple):
            self._parked_keys.add(identity[1])

    def _mark(self, record: Record, error: EventError | None, reason: str) -> None:
        identity = self._envelope.identity(record)
        earlier = self.marks.get(identity)
        if earlier is None or record.offset < earlier.offset:
            self.marks[identity] = _Mark(record.offset, error, reason)

    def _first_bad(self, changes: Sequence[KeyChange]) -> int:
        first: int | None = None
        bad: set[str] = set()
        for number, change in enumerate(changes):
            bad = self.fold.bad_columns(change, bad)
            if not bad:
                first = None
            elif first is None:
                first = number
        if first is not None:
            return first
        # Every value is good: what is missing is a value that the last changes all omit.
        first = len(changes) - 1
        while first > 0 and self.fold.is_partial(changes[first - 1]):
            first -= 1
        return first


def in_order(records: Iterable[Record]) -> list[Record]:
    """Return the records of several partitions, each in offset order."""
    return sorted(records, key=lambda record: record.log_offset)
