"""The property of the cut: at every position the mirrors' state is what the WAL says it was.

Random transactions move money between two tables, with deletes and re-inserts, changes of key,
rollbacks, and transactions that stay open for a while; Connect is killed; the topics are really
compacted meanwhile. What a second slot decodes is the judge, and shares no code with us. So it is with
exactly-once, where a marker is enough, and where what the worker has stored is asked as well; and with a worker that
delivers at least once.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import psycopg
import pytest

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.base.rendering import FOR_SQL_OF_USERS, options
from cdc_views.capture.fold import Fold
from cdc_views.errors import LogGap
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.cuts.ranges import read_range
from cdc_views.log.kafka.at_least_once import Redeliveries
from cdc_views.log.kafka.record import Record, TopicPartition
from cdc_views.log.log import Log
from cdc_views.source.catalog import SourceTable
from cdc_views.stack.local import LocalStack
from cdc_views.stack.services.connect import Connect
from cdc_views.testing.postgres.wal import State, WalSlot, WalTransaction, states_at
from tests.fix_kafka import Capture, CaptureOf
from tests.fix_postgres import Database
from tests.fix_services import log_settings_for
from tests.waiting import wait_for

TABLES = ("public.accounts", "public.savings")
KEYS = dict.fromkeys(TABLES, ("id",))
PEOPLE = 60
MOVED = 1000  # a changed key is the old one plus this, or minus it again
TOTAL = 2 * PEOPLE * 1000
CUTS = int(os.environ.get("CDC_VIEWS_CUTS", "20"))  # `just nightly`: 60
KILLS = 2
OF_OTHER_BARRIER = 6  # one of so many cuts
BEFORE_A_KILL = 60  # transfers since the last cut, so that there is something to deliver again
WRITERS = 4
FAST_COMPACTION = {
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "6000",
    "delete.retention.ms": "60000",  # on a busy machine ten seconds may pass between two cuts
}

Mirror = dict[tuple[str | None, ...], dict[str, str | None]]


class Bank:
    """Writers that move money between the two tables; the total never changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(seed,)) for seed in range(WRITERS)]
        self._errors: list[Exception] = []
        self.done: dict[str, int] = defaultdict(int)

    def create(self) -> None:
        """Make the empty tables."""
        self._database.execute(*(f"CREATE TABLE {t} (id int PRIMARY KEY, balance bigint NOT NULL)" for t in TABLES))

    def open_accounts(self) -> None:
        """Give everybody 1000 in each table."""
        self._database.execute(*(f"INSERT INTO {t} SELECT g, 1000 FROM generate_series(1, {PEOPLE}) g" for t in TABLES))

    def __enter__(self) -> Bank:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self._errors, self._errors

    def _write(self, seed: int) -> None:
        dice = random.Random(seed)
        try:
            with psycopg.connect(self._database.dsn, options=options(FOR_SQL_OF_USERS)) as connection:
                while not self._stop.wait(dice.uniform(0.005, 0.03)):
                    self._transaction(connection, dice)
        except Exception as error:
            self._errors.append(error)

    def _transaction(self, connection: psycopg.Connection[tuple[int]], dice: random.Random) -> None:
        people = sorted({dice.randint(1, PEOPLE) for _ in range(dice.randint(1, 4))})
        try:
            kinds = [kind for person in people for kind in self._transfer(connection, dice, person)]
            if dice.random() < 0.05:
                connection.rollback()
                kinds = ["rollback"]
            else:
                connection.commit()
            for kind in kinds:
                self.done[kind] += 1
        except (psycopg.errors.DeadlockDetected, LookupError):
            connection.rollback()

    def _transfer(self, connection: psycopg.Connection[tuple[int]], dice: random.Random, person: int) -> Iterator[str]:
        amount = dice.choice([-1, 1]) * dice.randint(1, 50)
        for table, sign in zip(TABLES, (-1, 1), strict=True):
            where = f"id IN ({person}, {person + MOVED})"
            changed = connection.execute(
                f"UPDATE {table} SET balance = balance + %s WHERE {where} RETURNING id", (sign * amount,)
            ).fetchone()
            if changed is None:  # deleted and inserted again by another transaction while we waited for its lock
                raise LookupError(person)
            yield "transfer"
            if dice.random() < 0.04:
                self._delete_and_insert(connection, table, changed[0])
                yield "re-insert"
            elif dice.random() < 0.04:
                other = changed[0] + (MOVED if changed[0] <= PEOPLE else -MOVED)
                connection.execute(f"UPDATE {table} SET id = %s WHERE id = %s", (other, changed[0]))
                yield "key change"
        if dice.random() < 0.05 and not self._stop.wait(dice.choice([0.02, 0.02, 0.3])):
            yield "left open"

    @staticmethod
    def _delete_and_insert(connection: psycopg.Connection[tuple[int]], table: str, row: int) -> None:
        deleted = connection.execute(f"DELETE FROM {table} WHERE id = %s RETURNING balance", (row,)).fetchone()
        assert deleted is not None
        connection.execute(f"INSERT INTO {table} VALUES (%s, %s)", (row, deleted[0]))


@dataclass
class Mirrors:
    """What the product makes of the cuts: its Log and its Fold."""

    tables: dict[TableName, SourceTable]
    table_of: Callable[[str], TableName]
    rows: dict[str, Mirror] = field(default_factory=lambda: {table: {} for table in TABLES})

    def apply(self, records: Iterable[Record]) -> None:
        """Bring the mirrors to the end of one cut."""
        folds = {name: Fold(table) for name, table in self.tables.items()}
        for record in records:
            folds[self.table_of(record.topic)].add(record)
        for name, fold in folds.items():
            assert not fold.lookups()
            folded = fold.finish({})
            for row in folded.deletes.to_pylist():
                self.rows[str(name)].pop((str(row["id"]),), None)
            for row in folded.upserts.to_pylist():
                self.rows[str(name)][str(row["id"]),] = {column: str(value) for column, value in row.items()}

    def copy(self) -> State:
        """The rows as they are now."""
        return {table: dict(rows) for table, rows in self.rows.items()}


def total(state: State) -> int:
    """All the money there is."""
    return sum(int(row["balance"] or 0) for rows in state.values() for row in rows.values())


@dataclass
class Run:
    """What happened: the cuts, their records, and the state after each."""

    cuts: list[Cut] = field(default_factory=list)
    records: list[list[Record]] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    read_again: int = 0
    kills: int = 0


def unequal(cuts: Iterable[Cut], states: Iterable[State], history: Iterable[WalTransaction]) -> list[Lsn]:
    """The positions at which the state is not what the WAL says."""
    ours = {cut.position: state for cut, state in zip(cuts, states, strict=True)}
    return [position for position, state in states_at(ours, history, KEYS) if state != ours[position]]


class Killer(threading.Thread):
    """Kills a worker of Connect and starts it again."""

    def __init__(self, worker: Connect) -> None:
        super().__init__()
        self._worker = worker
        self._victim = worker.pid
        self.start()

    def killed(self) -> bool:
        """Wait until the process is gone."""
        return wait_for(lambda: self._worker.pid != self._victim, 10)

    def run(self) -> None:
        """SIGKILL, then start."""
        self._worker.kill()
        self._worker.start()


class Counting(Redeliveries):
    """How many records came again."""

    found = 0

    def is_redelivery(self, record: Record) -> bool:
        """As it is."""
        is_again = super().is_redelivery(record)
        Counting.found += is_again
        return is_again


class Follower:
    """The Logs that take cuts, one after the other of the same history, the mirrors made of them, and what happened."""

    def __init__(self, capture: Capture, log: Log, other: Log | None) -> None:
        """`other`, which has the other barrier, takes one of OF_OTHER_BARRIER cuts."""
        self.run = Run()
        self._capture = capture
        self._log = log
        self._other = other
        self._mirrors = Mirrors(capture.tables(), log.table_of)

    def cut(self) -> None:
        """Take the next cut; one of ten is read again."""
        run, number, began = self.run, len(self.run.cuts), time.monotonic()
        log = self._other if self._other is not None and number % OF_OTHER_BARRIER == 0 else self._log
        before = run.cuts[-1] if run.cuts else None
        if before is None:
            cut = log.cut(log.begin(), None)
        else:
            cut = log.cut(before.end, before.position, before.committed_at)
        run.seconds.append(time.monotonic() - began)
        records = list(log.records(cut))
        self._mirrors.apply(records)
        run.cuts.append(cut)
        run.records.append(records)
        run.states.append(self._mirrors.copy())
        if number % 10 == 5:
            run.read_again += reads_the_same_again(self._capture, cut, records)


def follow(worker: Connect, bank: Bank, follower: Follower) -> None:
    """Take CUTS cuts, killing the worker KILLS times on the way."""
    killers: list[Killer] = []
    for number in range(CUTS):
        if number in [CUTS * (kill + 1) // (KILLS + 1) for kill in range(KILLS)]:
            for killer in killers:
                killer.join()
            done = bank.done["transfer"]
            wait_for(lambda since=done: bank.done["transfer"] > since + BEFORE_A_KILL, 30)
            killers.append(Killer(worker))
            follower.run.kills += killers[-1].killed()
        follower.cut()
    for killer in killers:
        killer.join()


def reads_the_same_again(capture: Capture, cut: Cut, records: list[Record]) -> bool:
    """Whether a Log that knows nothing of the cut reads the same records; False if it is too late to say."""
    with closing(capture.detached_log()) as fresh:
        try:
            again = list(fresh.records(cut))
        except LogGap:
            return False
    assert again == records
    return True


def offsets_of(records: Iterable[Record]) -> set[tuple[str, int, int]]:
    """Where records are in the log."""
    return {(record.topic, record.partition, record.offset) for record in records}


def still_in_the_log(capture: Capture, cuts: list[Cut]) -> set[tuple[str, int, int]]:
    """What compaction has left of everything that the cuts have read."""
    everything = Cut(cuts[-1].position, cuts[-1].complete_to, cuts[-1].committed_at, cuts[0].start, cuts[-1].end)
    left = read_range(capture.settings.log, everything, 30)
    return offsets_of(record for records in left.values() for record in records)


@dataclass
class Followed:
    """One run of the bank, what followed it, and the judge."""

    captured: Capture
    bank: Bank
    judge: WalSlot
    run: Run


@pytest.fixture
def followed(
    worker: Connect, stack: LocalStack, database: Database, capture: CaptureOf, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Followed]:
    """The bank, followed by our Log and by the judge's slot; with exactly-once both barriers take turns."""
    monkeypatch.setattr(Counting, "found", 0)
    monkeypatch.setattr("cdc_views.log.cuts.buffer.Redeliveries", Counting)
    is_exactly_once = worker is stack.connect
    bank = Bank(database)
    bank.create()
    lag_ms = int(FAST_COMPACTION["min.compaction.lag.ms"])
    captured = capture(*TABLES, min_compaction_lag_ms=lag_ms, **log_settings_for(worker))
    with closing(database.connect()) as connection:
        judge = WalSlot.create(connection, f"{database.name}_judge")
        bank.open_accounts()
        captured.start(FAST_COMPACTION)
        other = captured.log(offsets_topic=worker.offsets_topic) if is_exactly_once else None
        follower = Follower(captured, captured.log(), other)
        with bank:
            follow(worker, bank, follower)
        yield Followed(captured, bank, judge, follower.run)


@pytest.mark.proves(
    wrong="Connect workers without exactly-once support are killed",
    seen=(
        "`PreflightFailed`, unless `log.offsets_topic` is set. With it every epoch is exact: it waits for the "
        "worker's `offset.flush.interval.ms`, and records that are delivered again are skipped"
    ),
    do="set `log.offsets_topic` to the workers' `offset.storage.topic`, and let them flush every 200 to 1000 ms",
)
@pytest.mark.parametrize(
    "worker", ["exactly once", pytest.param("at least once", marks=pytest.mark.nightly)], indirect=True
)
def test_every_cut_equals_the_wal_while_connect_is_killed_and_topics_are_compacted(followed: Followed) -> None:
    captured, bank, run = followed.captured, followed.bank, followed.run
    history = followed.judge.transactions()

    assert unequal(run.cuts, run.states, history) == []
    assert [total(state) for state in run.states] == [TOTAL] * CUTS

    # It was the run that it says it was.
    positions = [cut.position for cut in run.cuts]
    assert positions == sorted(set(positions))
    assert run.kills == KILLS
    assert min(bank.done[kind] for kind in ("re-insert", "key change", "rollback", "left open")) >= 5, bank.done
    assert run.read_again >= 2
    assert Counting.found == 0 if captured.settings.log.exactly_once else Counting.found > 0
    consumed = offsets_of(record for records in run.records for record in records)
    wait_for(lambda: len(consumed - still_in_the_log(captured, run.cuts)) > len(consumed) / 10, 30)

    # And the check fails when one event is missing: the last of a partition, so that none makes up for it.
    missing, update = next(
        (number, update)
        for number, records in enumerate(run.records)
        if number > CUTS // 2
        for update in _last_updates(records)
    )
    run.records[missing].remove(update)
    again, states = Mirrors(captured.tables(), captured.table_of), []
    for records in run.records:
        again.apply(records)
        states.append(again.copy())
    assert run.cuts[missing].position in unequal(run.cuts, states, history)


def _last_updates(records: list[Record]) -> list[Record]:
    last = {TopicPartition(record.topic, record.partition): record for record in records}
    return [record for record in last.values() if record.value and record.value["op"] == "u"]
