"""A source and its log, written down in a test: for what the engine does with cuts, not for what Kafka does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cdc_views.errors import LogGap
from cdc_views.log.cut import Cut
from cdc_views.log.record import Offsets, Order, Record, TopicPartition
from cdc_views.lsn import Lsn
from cdc_views.names import TableName
from cdc_views.source.catalog import Column, SourceTable

NAMES = (TableName("public", "accounts"), TableName("public", "savings"))


def bank_table(name: TableName) -> SourceTable:
    """`(id bigint PRIMARY KEY, balance bigint)`."""
    columns = tuple(
        Column(column, number, "int8", -1, None, True, False) for number, column in enumerate(("id", "balance"), 1)
    )
    return SourceTable(name, 1, columns, ("id",), False, "default")


@dataclass
class ScriptedLog:
    """One partition a table; `write` is a transaction, and a cut holds all transactions written before it."""

    records_by_topic: dict[str, list[Record]] = field(default_factory=lambda: {str(name): [] for name in NAMES})
    states: dict[str, dict[str, dict[int, int]]] = field(default_factory=dict)
    end: int = 100
    is_repeatable: bool = True
    _state: dict[str, dict[int, int]] = field(default_factory=lambda: {str(name): {} for name in NAMES})

    def write(self, *changes: tuple[str, int, int | None]) -> None:
        """Commit `(table, id, balance)` rows; balance None deletes."""
        for number, (table, key, balance) in enumerate(changes):
            topic = f"public.{table}"
            operation = "d" if balance is None else "u" if key in self._state[topic] else "c"
            after = None if balance is None else {"id": key, "balance": balance}
            self._append(
                topic, key, {"op": operation, "after": after, "before": None}, Order(self.end, self.end + number)
            )
            if balance is None:
                self._append(topic, key, None, None)
                self._state[topic].pop(key)
            else:
                self._state[topic][key] = balance
        self.end += 100

    def cut(self, after: Offsets, position: Lsn | None, caught_up_at: datetime | None) -> Cut:
        """Everything written so far."""
        ends = {TopicPartition(topic, 0): len(records) for topic, records in self.records_by_topic.items()}
        starts = {partition: after.get(partition, 0) for partition in ends}
        self.states[str(Lsn(self.end))] = {topic: dict(rows) for topic, rows in self._state.items()}
        return Cut(Lsn(self.end), Lsn(self.end), datetime.now(UTC), starts, ends)

    def records(self, cut: Cut) -> Iterator[Record]:
        """The cut's records."""
        for partition, end in cut.end.items():
            yield from self.records_by_topic[partition.topic][cut.start[partition] : end]

    def has_changes(self, cut: Cut) -> bool:
        """Whether there is any."""
        return any(True for _ in self.records(cut))

    def require_repeatable(self, cut: Cut) -> None:
        """Raises LogGap if the test says so."""
        if not self.is_repeatable:
            raise LogGap("the test says so")

    def table_of(self, topic: str) -> TableName:
        """Topics are named as their tables."""
        return TableName.parse(topic)

    def _append(self, topic: str, key: int, value: dict[str, Any] | None, order: Order | None) -> None:
        records = self.records_by_topic[topic]
        records.append(Record(topic, 0, len(records), 0, {"id": key}, value, {}, order))


def expected_total(state: dict[str, dict[int, int]]) -> list[tuple[int, int]]:
    """What the view `bank_total` must hold."""
    balances = [balance for rows in state.values() for balance in rows.values()]
    return [(sum(balances), len(balances))]


def rows_of(state: dict[str, dict[int, int]], names: Sequence[str]) -> dict[str, set[tuple[int, int]]]:
    """What the mirrors must hold."""
    return {name: set(state[name].items()) for name in names}
