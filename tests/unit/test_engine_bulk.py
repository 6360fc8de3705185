"""Epochs whose cut is too long for the driver, in part: what tasks read of it, in this process, and what is left."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, cast
from unittest.mock import MagicMock

import orjson
import pytest
from pyspark.sql import SparkSession

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.capture.types import arrow_schema
from cdc_views.engine.epoch.recovery import UNREADABLE
from cdc_views.engine.input import bulk_files
from cdc_views.engine.input.bulk import BulkReader
from cdc_views.engine.input.bulk_files import FilesOfRange, Range
from cdc_views.engine.intent import Retry
from cdc_views.errors import BadEvent, DriverLost, FaultNotReached
from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.kafka.record import RawRecord, Record, TopicPartition
from cdc_views.store.commits import Written
from cdc_views.store.control.control_log import read_control
from cdc_views.store.delta_log.schema import TableSpec, key_schema
from cdc_views.store.reading import read_table
from cdc_views.store.storage.disk import touching
from cdc_views.testing import crash_at
from cdc_views.testing.memory.ddl import read_tables
from cdc_views.testing.memory.memory_log import MemoryLog
from tests.ledger import EIGHT_DAYS_S, NAMES, Ledger, MirrorEngine, assert_right, published
from tests.samples import SEEDS, sample
from tests.unit.log_records import log_settings

pytestmark = pytest.mark.usefixtures("without_fsync")

POINTS = ("bulk.after_files", "mirrors.after_first_commit", "epoch.after_mirrors")


class LongLog(MemoryLog):
    """A log of which all is read in bulk at first, and later some.

    `compacted_at` is the question whether it can be read again that says no.
    """

    compacted_at = 0
    chance = Random(0)

    def bulk(self, position: Lsn | None) -> frozenset[TableName]:
        """All tables of the first cut, and some of a later one."""
        return frozenset(table for table in self._topics if not position or self.chance.random() < 0.5)

    def records(self, cut: Cut) -> Iterator[Record]:
        """The records of the cut, without those that are read in bulk."""
        return (record for record in super().records(cut) if self.table_of(record.topic) not in cut.bulk)

    def require_repeatable(self, cut: Cut) -> None:
        """Raise LogGap if so much time has gone."""
        self.compacted_at -= 1
        if self.compacted_at == 0:
            self._clock.sleep(EIGHT_DAYS_S)
        super().require_repeatable(cut)


class InThisProcess(BulkReader):
    """Does what Spark's tasks do."""

    def _run(self, task: FilesOfRange, ranges: Sequence[Range]) -> list[Written]:
        task.progress.mkdir(exist_ok=True)
        return [task(each) for each in ranges]


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    ledger = Ledger(log=LongLog)

    def read_piece(log: object, partition: TopicPartition, start: int, end: int) -> Iterator[list[RawRecord]]:
        records = ledger.log.raw(partition)[start:end]
        yield records[:3]
        yield records[3:]

    monkeypatch.setattr(bulk_files, "read_piece", read_piece)
    return ledger


def engine_of(root: Path, ledger: Ledger, *, parks: bool = False) -> MirrorEngine:
    engine = MirrorEngine(root, ledger)
    engine.parks = parks
    log = log_settings()
    engine.bulk = InThisProcess(cast(SparkSession, None), log, lambda progress: None, piece_offsets=7)
    engine.start()
    return engine


def long_log(ledger: Ledger) -> LongLog:
    assert isinstance(ledger.log, LongLog)
    return ledger.log


@pytest.mark.parametrize("seed", range(SEEDS))
def test_cuts_that_are_long_in_part_give_the_same_as_others(tmp_path: Path, ledger: Ledger, seed: int) -> None:
    chance = long_log(ledger).chance = Random(seed)
    engine = engine_of(tmp_path, ledger)
    for _ in range(sample(15, 25)):
        for _ in range(chance.choice([1, 1, 4])):
            ledger.commit()
        if chance.random() < 0.2:
            # None of a cut may be long.
            with suppress(FaultNotReached), crash_at(chance.choice(POINTS)):
                engine.epoch()
            engine = engine_of(tmp_path, ledger)
        else:
            engine.epoch()
            engine.maintenance.run()
        assert_right(tmp_path, ledger, 1)
    taken = [record.detail.get("ways", {}).get("commit", {}) for record in published(tmp_path)]
    assert {way for of_epoch in taken for way in of_epoch.values()} == {"bulk", "direct"}


def test_recovery_that_finds_the_log_compacted_after_reading_it_takes_all_back(tmp_path: Path, ledger: Ledger) -> None:
    for _ in range(5):
        ledger.commit()
    with crash_at("epoch.after_intent"):
        engine_of(tmp_path, ledger).epoch()
    long_log(ledger).compacted_at = 2  # once before it is read again, once after
    engine = engine_of(tmp_path, ledger)
    assert long_log(ledger).compacted_at == 0
    abandoned = read_control(tmp_path)[-1]
    assert (abandoned.kind, abandoned.detail["reason"]) == ("abandon", UNREADABLE)
    engine.epochs(3, upkeep=False)
    assert_right(tmp_path, ledger, 3)
    engine = engine_of(tmp_path, ledger)
    engine.epochs(1, upkeep=False)
    assert_right(tmp_path, ledger, 4)
    assert len(published(tmp_path)) == 4
    assert all(engine.tables.version(f"public.{name}") for name in NAMES)


def test_retry_that_meets_a_bad_event_of_a_long_table_is_done_all_the_same(tmp_path: Path, ledger: Ledger) -> None:
    engine, log = engine_of(tmp_path, ledger, parks=True), long_log(ledger)
    engine.epochs(1, upkeep=False)
    bad = put(ledger, "accounts", 99, "no number")
    engine.epoch()
    put(ledger, "accounts", 99, 5)
    engine.epoch()
    log.chance = Always()
    in_long_table = put(ledger, "savings", 98, "no number")
    with engine.control.writing(), touching(tmp_path):
        record = engine.epochs_writer.run_retry(Retry(bad))
    table = record.tables["public.accounts"]
    rows = read_table(tmp_path, table.path, table.version).to_pylist()
    assert {"id": 99, "balance": 5} in rows
    assert record.detail["parked"] == {"public.savings": 1}
    assert read_control(tmp_path)[-3].detail["reason"] == f"met {in_long_table}, which is parked"


class Always(Random):
    """Whatever may happen does."""

    def random(self) -> float:
        """Less than any probability."""
        return 0.0


def put(ledger: Ledger, table: str, number: int, balance: Any) -> LogOffset:
    """An event of another source of the table: a new row."""
    commit = int(ledger.log.end)
    source = {"sequence": f'["{commit}","{commit + 1}"]', "ts_ms": 0, "ts_us": 0}
    row = {"id": number, "balance": balance}
    event = orjson.dumps({"op": "c", "before": None, "after": row, "source": source})
    return ledger.log.put(TableName("public", table), orjson.dumps({"id": number}), event)


def test_results_of_which_some_are_missing_are_those_of_a_jvm_that_has_ended(tmp_path: Path) -> None:
    [table] = read_tables("CREATE TABLE t (id bigint PRIMARY KEY)")
    spec = TableSpec("t", "t", arrow_schema(table.source), ("id",))
    spark = MagicMock()
    spark.sparkContext.parallelize().map().collect.return_value = [Written([], key_schema(spec).empty_table())]
    reader = BulkReader(spark, log_settings(), lambda progress: None)
    start, end = ({TopicPartition("t", number): offset for number in (0, 1)} for offset in (0, 9))
    with pytest.raises(DriverLost, match="1 of 2 parts came back"):
        reader.rows(table.source, start, end).write(spec, tmp_path)


def test_error_of_a_task_is_raised_as_it_was_with_its_offset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [table] = read_tables("CREATE TABLE t (id bigint PRIMARY KEY)")
    spec = TableSpec("t", "t", arrow_schema(table.source), ("id",))
    partition, at = TopicPartition("t", 0), LogOffset("t", 0, 7)

    class Failing(FilesOfRange):
        def __call__(self, wanted: Range) -> Written:
            raise BadEvent("is bad", log_offset=at)

    spark = MagicMock()
    spark.sparkContext.parallelize = lambda ranges, slots: MagicMock(map=lambda task: Collected(map(task, ranges)))
    monkeypatch.setattr("cdc_views.engine.input.bulk.FilesOfRange", Failing)
    reader = BulkReader(spark, log_settings(), lambda progress: None)
    with pytest.raises(BadEvent) as error:
        reader.rows(table.source, {partition: 0}, {partition: 9}).write(spec, tmp_path)
    assert (error.value.log_offset, error.value.problem) == (at, "is bad")


class Collected(list[Any]):
    """The results of tasks, pickled as Spark does."""

    def collect(self) -> list[Any]:
        """All of them."""
        return list(pickle.loads(pickle.dumps(list(self))))
