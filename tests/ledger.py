"""The engine's own epochs, recovery and upkeep over mirrors alone, so without a JVM, and what each epoch must hold.

The transactions are the same in every process: what `Ledger` number n has written is known from n.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final, cast
from uuid import uuid4

from pyspark.sql import SparkSession

from cdc_views.config import UpkeepSettings
from cdc_views.engine.epoch.recovery import recover, take_over
from cdc_views.engine.epoch.steps import EpochWriter
from cdc_views.engine.input.bulk import BulkReader
from cdc_views.engine.tables import Tables
from cdc_views.engine.upkeep.maintenance import Upkeep
from cdc_views.engine.views.maintain import ViewResult, ViewRunner
from cdc_views.store.control.control_log import ControlLog, ControlRecord, read_control
from cdc_views.store.control.records import PUBLISHING
from cdc_views.store.reading import read_table
from cdc_views.store.storage.disk import touching
from cdc_views.store.warehouse import Warehouse
from cdc_views.testing import Delete, HandClock, Insert, Update
from cdc_views.testing.changes import Change
from cdc_views.testing.memory.ddl import read_tables
from cdc_views.testing.memory.memory_log import MemoryLog
from cdc_views.testing.memory.memory_source import MemorySource

NAMES: Final = ("accounts", "savings")
# All that upkeep does is due after a few epochs, and whatever is not needed goes at once.
OFTEN: Final = UpkeepSettings(merged_files=3, checkpoint_versions=4, sweep_versions=4, keep_epochs=3, keep_hours=0,
                              keep_records=10, keep_tables_hours=0, share=1)  # fmt: skip
EIGHT_DAYS_S: Final = 8 * 24 * 3600  # longer than the log keeps every version
_KEYS: Final = 30
_SECONDS: Final = 30  # from one transaction to the next
_VALIDITY_S: Final = 7 * 24 * 3600

Rows = dict[str, dict[int, int]]


class NoViews(ViewRunner):
    """A project without views, whose engine asks Spark for nothing."""

    def __init__(self) -> None:
        super().__init__(cast(SparkSession, None), [])

    def maintain(self, *_: object) -> dict[str, ViewResult]:
        return {}


class Ledger:
    """A source and its log: transaction after transaction, each in both tables."""

    def __init__(self, transactions: int = 0, log: type[MemoryLog] = MemoryLog) -> None:
        declared = read_tables(f"CREATE TABLE {name} (id bigint PRIMARY KEY, balance bigint)" for name in NAMES)
        self.sources = [table.source for table in declared]
        self.clock = HandClock()
        self._source = MemorySource(declared, self.clock)
        self.log = log(self.sources, self.clock, partitions=2, validity_s=_VALIDITY_S)
        self._chance = random.Random(1)
        self._rows: Rows = {name: {} for name in NAMES}
        self.states = {str(self.log.end): self._copy()}
        for _ in range(transactions):
            self.commit()

    def commit(self) -> None:
        """Write the next transaction."""
        self.clock.advance(_SECONDS)
        changes = [change for name in NAMES for change in self._changes(name)]
        self.log.write(self._source.commit(changes))
        self.states[str(self.log.end)] = self._copy()

    def _changes(self, name: str) -> list[Change]:
        rows, changes = self._rows[name], list[Change]()
        for key in self._chance.sample(range(_KEYS), 3):
            balance = self._chance.randrange(1000)
            if key not in rows:
                changes.append(Insert(name, {"id": key, "balance": balance}))
            elif self._chance.random() < 0.3:
                changes.append(Delete(name, {"id": key}))
                del rows[key]
                continue
            else:
                changes.append(Update(name, {"id": key}, {"balance": balance}))
            rows[key] = balance
        return changes

    def _copy(self) -> Rows:
        return {name: dict(rows) for name, rows in self._rows.items()}


class MirrorEngine:
    """An engine on a warehouse, as `Engine` is one, but for what it holds: mirrors alone, no lock, no process."""

    def __init__(self, root: Path, ledger: Ledger, settings: UpkeepSettings = OFTEN) -> None:
        self.root, self.ledger = root, ledger
        self.writer = uuid4().hex
        self.bulk: BulkReader | None = None
        self.parks = False
        self._views = NoViews()
        self._settings = settings

    def start(self) -> None:
        """Take the warehouse over and recover."""
        ledger = self.ledger
        with touching(self.root):
            self.control = ControlLog.open(self.root, self.writer, ledger.clock)
            warehouse = Warehouse(self.root, cast(SparkSession, None))
            self.tables = Tables(warehouse, "g", ledger.sources)
            self.epochs_writer = EpochWriter(
                ledger.log, self.tables, self._views, self.control, parks=self.parks, bulk=self.bulk
            )
        with self.control.writing(), touching(self.root):
            take_over(self.control, self.tables, {})
            if self.tables.published is None:
                self.tables.skip(ledger.log.begin())
            recover(self.epochs_writer)
        self.maintenance = Upkeep(self.root, self.tables, self.control, self._settings)

    def epoch(self) -> None:
        """Bring the mirrors to the end of the log."""
        with self.control.writing(), touching(self.root):
            self.epochs_writer.run(0)

    def epochs(self, number: int, *, upkeep: bool = True) -> None:
        """As many transactions and epochs, with upkeep after each."""
        for _ in range(number):
            self.ledger.commit()
            self.epoch()
            if upkeep:
                self.maintenance.run()


def published(root: Path) -> list[ControlRecord]:
    """Every published record that the control log still has; their positions never go back."""
    records = read_control(root)
    found = [record for record in records if record.kind in PUBLISHING]
    positions = [record.position for record in found]
    assert positions == sorted(positions)
    assert [record.term for record in records] == sorted(record.term for record in records)
    return found


def assert_right(root: Path, ledger: Ledger, epochs: int) -> None:
    """The last epochs hold what the source held at their positions, read as any reader does."""
    for record in published(root)[-epochs:]:
        for name in NAMES:
            table = record.tables[f"public.{name}"]
            rows = read_table(root, table.path, table.version).to_pylist()
            assert len(rows) == len({row["id"] for row in rows}), f"{name} of epoch {record.epoch}"
            found = {row["id"]: row["balance"] for row in rows}
            assert found == ledger.states[str(record.position)][name], f"{name} of epoch {record.epoch}"
