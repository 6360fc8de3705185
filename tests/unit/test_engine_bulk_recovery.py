"""A first epoch in bulk whose log turns out too late to have been compacted meanwhile: all of it is taken back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from cdc_views.engine.bulk import BulkReader
from cdc_views.engine.recovery import UNREADABLE
from cdc_views.log.cut import Cut
from cdc_views.log.record import Offsets, Record
from cdc_views.lsn import Lsn
from cdc_views.source.catalog import SourceTable
from cdc_views.store.commit import WrittenRows
from cdc_views.store.control import read_control
from cdc_views.store.data_files import write_rows
from cdc_views.store.schema import TableSpec
from cdc_views.store.state import Add
from cdc_views.testing import crash_at
from cdc_views.testing.memory_log import MemoryLog
from tests.ledger import EIGHT_DAYS_S, NAMES, Ledger, MirrorEngine, assert_right, published

pytestmark = pytest.mark.usefixtures("without_fsync")


class LongLog(MemoryLog):
    """A log that is read in bulk at first; `compacted_at` is the question whether it can be read again that says no."""

    compacted_at = 0

    def cut(self, after: Offsets, position: Lsn | None, caught_up_at: object = None) -> Cut:
        """Everything that was written; at first none of it for the driver."""
        found = super().cut(after, position, caught_up_at)
        return found if position else replace(found, bulk=frozenset(self._topics))

    def records(self, cut: Cut) -> Iterator[Record]:
        """The records of the cut, without those that are read in bulk."""
        return iter(()) if cut.bulk else super().records(cut)

    def require_repeatable(self, cut: Cut) -> None:
        """Raise LogGap if so much time has gone."""
        self.compacted_at -= 1
        if self.compacted_at == 0:
            self._clock.sleep(EIGHT_DAYS_S)
        super().require_repeatable(cut)


class ByTheDriver(BulkReader):
    """Reads in this process what Spark's tasks read: here all that the source has."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def rows(self, table: SourceTable, start: Offsets, end: Offsets) -> WrittenRows:
        """The first rows of a mirror."""
        state = self._ledger.states[str(self._ledger.log.end)][table.name.table]

        def write(spec: TableSpec, folder: Path) -> list[Add]:
            rows = pa.table({"id": [*state.keys()], "balance": [*state.values()]}, schema=spec.schema)
            return [write_rows(folder, rows, ["id"])]

        return WrittenRows(write)


def engine_of(root: Path, ledger: Ledger) -> MirrorEngine:
    engine = MirrorEngine(root, ledger)
    engine.bulk = ByTheDriver(ledger)
    engine.start()
    return engine


def test_recovery_that_finds_the_log_compacted_after_it_was_read_takes_all_of_it_back(tmp_path: Path) -> None:
    ledger = Ledger(log=LongLog)
    assert isinstance(ledger.log, LongLog)
    for _ in range(5):
        ledger.commit()
    with crash_at("epoch.after_intent"):
        engine_of(tmp_path, ledger).epoch()
    ledger.log.compacted_at = 2  # once before it is read again, once after
    engine = engine_of(tmp_path, ledger)
    assert ledger.log.compacted_at == 0
    abandoned = read_control(tmp_path)[-1]
    assert (abandoned.kind, abandoned.detail["reason"]) == ("abandon", UNREADABLE)
    engine.epochs(3, upkeep=False)
    assert_right(tmp_path, ledger, 3)
    engine = engine_of(tmp_path, ledger)
    engine.epochs(1, upkeep=False)
    assert_right(tmp_path, ledger, 4)
    assert len(published(tmp_path)) == 4
    assert all(engine.tables.version(f"public.{name}") for name in NAMES)
