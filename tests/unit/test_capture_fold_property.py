"""Any history of a table, in any split into epochs and any order of partitions, folds to the same table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc_views.capture.fold import Fold
from cdc_views.log.kafka.record import Order, Record
from tests.samples import sample
from tests.unit.capture_records import PLACEHOLDER, Topic, row, table

PARTITIONS = 3
KEYS = 5
DEBEZIUMS = "__debezium_unavailable_value"

operation = st.tuples(
    st.sampled_from(["put", "update", "update unchanged", "delete", "move", "move unchanged"]),
    st.integers(0, KEYS - 1),
    st.integers(0, KEYS - 1),
)
transaction = st.tuples(st.lists(operation, min_size=1, max_size=6), st.booleans())
history = st.lists(transaction, max_size=12)


@dataclass
class Source:
    """A table as Postgres has it, which writes what Debezium would."""

    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    topic: Topic = field(default_factory=Topic)
    serial: int = 0
    events: int = 0

    def run(self, operations: list[tuple[str, int, int]], commit: int) -> list[Record]:
        """The records of one transaction, in the order in which Debezium writes them."""
        records: list[Record] = []
        for number, (kind, key, other) in enumerate(operations):
            self.serial += 1
            written = self._run(kind, key, other, Order(commit or None, commit * 100 + number))
            self.events += bool(written)
            records += written
        return records

    def _run(self, kind: str, key: int, other: int, order: Order) -> list[Record]:
        old = self.rows.get(key)
        if kind == "put" and old is None:
            # Now and then a real text equals the placeholder.
            body = DEBEZIUMS if self.serial % 7 == 0 else f"body {self.serial}"
            self.rows[key] = row(key, self.serial, body)
            return [self._record("c", key, self.rows[key], order)]
        if old is None or (kind.startswith("move") and (other == key or other in self.rows)):
            return []
        if kind == "delete":
            del self.rows[key]
            return [self._record("d", key, None, order), self._record(None, key, None, order)]
        unchanged = kind.endswith("unchanged")
        target = other if kind.startswith("move") else key
        new = row(target, self.serial, old["body"] if unchanged else f"body {self.serial}")
        event = new | {"body": PLACEHOLDER} if unchanged else new
        del self.rows[key]
        self.rows[target] = new
        if target == key:
            return [self._record("u", key, event, order)]
        return [
            self._record("d", key, None, order, newkey=target),
            self._record(None, key, None, order, newkey=target),
            self._record("c", target, event, order, oldkey=key),
        ]

    def _record(self, op: str | None, key: int, after: dict[str, Any] | None, order: Order, **headers: int) -> Record:
        return self.topic.write(op, key, after, partition=key % PARTITIONS, order=order, **headers)


def apply(mirror: dict[int, dict[str, Any]], records: list[Record], partitions: list[int]) -> int:
    """Fold one epoch into a mirror; the number of events."""
    fold = Fold(table())
    for partition in partitions:
        for record in records:
            if record.partition == partition:
                fold.add(record)
    folded = fold.finish({key: mirror[key[0]] for key in fold.lookups() if key[0] in mirror})
    for key in folded.deletes.column("id").to_pylist():
        mirror.pop(key, None)
    mirror.update({values["id"]: values for values in folded.upserts.to_pylist()})
    return folded.events


@settings(max_examples=sample(30, 300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history, st.permutations(range(PARTITIONS)))
def test_fold_of_any_history_equals_the_table_at_every_epoch(
    transactions: list[tuple[list[tuple[str, int, int]], bool]], partitions: list[int]
) -> None:
    source, mirror, events = Source(), dict[int, dict[str, Any]](), 0
    epoch: list[Record] = []
    for commit, (operations, ends_epoch) in enumerate(transactions):
        epoch += source.run(operations, commit)
        if ends_epoch:
            events += apply(mirror, epoch, partitions)
            assert mirror == source.rows
            epoch = []
    events += apply(mirror, epoch, partitions)
    assert mirror == source.rows
    assert events == source.events
