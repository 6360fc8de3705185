"""Runs real transactions on the demo's database, from several connections, at a given rate of row changes.

    CDC_VIEWS_DEMO_DSN=D python -m cdc_views.demo.workload --rate 400 --seconds 60 --seed 1

The load is open: every transaction has a time that is set in advance, so a slow database does not slow down the load.
The last line of the output is one JSON object with what was committed.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import click
import psycopg
from psycopg import errors

from cdc_views.demo.programs import dsn_option, rate_option, seconds_option
from cdc_views.demo.traffic.ledger import Ledger, Transaction
from cdc_views.demo.traffic.transactions import KINDS, LEAST, WrongRowsError

CONNECTIONS: Final = 4
MOST_ATTEMPTS: Final = 100

# A run of this length must contain every wanted kind. A shorter or interrupted one may not.
SECONDS_FOR_ALL_KINDS: Final = 10

_RETRY: Final = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation, WrongRowsError)


@dataclass(frozen=True)
class Job:
    """A transaction that is due `due_s` after the start; `number` counts the transactions of its kind."""

    due_s: float
    kind: str
    number: int


def schedule(rate: float, seconds: float, seed: int) -> list[Job]:
    """The jobs with their times: the wanted kinds first, then a random mix, until rate times seconds is reached.

    If the rate is too low for the wanted kinds, they are spread over the first half of the time.
    """
    random = Random(seed)
    wanted = [name for name, kind in KINDS.items() if kind.wanted for _ in range(LEAST)]
    random.shuffle(wanted)
    step_s = min(1 / rate, seconds / 2 / sum(max(KINDS[name].row_changes, 1) for name in wanted))
    jobs, due_s, numbers = [], 0.0, dict.fromkeys(KINDS, 0)

    def add(name: str, step_s: float) -> None:
        nonlocal due_s
        jobs.append(Job(due_s, name, numbers[name]))
        numbers[name] += 1
        due_s += step_s * max(KINDS[name].row_changes, 0.1)

    for name in wanted:
        add(name, step_s)
    weights = [kind.weight for kind in KINDS.values()]
    while due_s < seconds:
        add(random.choices(list(KINDS), weights)[0], 1 / rate)
    return jobs


class Workload:
    """Runs each job when it is due, with one thread per connection."""

    def __init__(self, dsn: str, jobs: list[Job], seed: int) -> None:
        self.ledger = Ledger()
        self.stop = threading.Event()
        self._dsn = dsn
        self._seed = seed
        self._jobs: Iterator[Job] = iter(jobs)
        self._take = threading.Lock()
        self._failure: BaseException | None = None

    def run(self) -> float:
        """Run all jobs, or until `stop` is set. Returns the elapsed seconds."""
        self._started = time.monotonic()
        threads = [threading.Thread(target=self._work, name=f"workload-{n}") for n in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # without a timeout, no signal would be handled
        if self._failure is not None:
            raise self._failure
        return time.monotonic() - self._started

    def _work(self) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True, application_name="cdc_views_demo") as connection:
                while (job := self._next()) and not self.stop.wait(job.due_s + self._started - time.monotonic()):
                    self._do(connection, job)
        except BaseException as error:  # raised again by run, in the main thread
            self._failure = error
            self.stop.set()

    def _next(self) -> Job | None:
        with self._take:
            return next(self._jobs, None)

    def _do(self, connection: psycopg.Connection[Any], job: Job) -> None:
        random = Random(f"{self._seed} {job.kind} {job.number}")
        for _ in range(MOST_ATTEMPTS):
            try:
                return self._attempt(connection, job, random)
            except _RETRY:
                self.ledger.retry()
        return None  # a wanted kind that was never possible shows in its low number

    def _attempt(self, connection: psycopg.Connection[Any], job: Job, random: Random) -> None:
        kind = KINDS[job.kind]
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ if kind.repeatable_read else None
        with connection.transaction(force_rollback=kind.rolls_back):
            transaction = Transaction(connection)
            kind.run(transaction, random, job.number)
        # Only here has the commit certainly succeeded.
        if kind.rolls_back:
            self.ledger.rolled_back_on_purpose(job.kind)
        else:
            self.ledger.committed(job.kind, transaction.changes)


def missing_kinds(ledger: Ledger) -> list[str]:
    """The wanted kinds that were committed fewer than LEAST times."""
    return [name for name, kind in KINDS.items() if kind.wanted and ledger.by_kind[name] < LEAST]


@click.command()
@dsn_option
@rate_option
@seconds_option
@click.option("--seed", default=1, show_default=True, help="The same seed draws the same transactions.")
def main(dsn: str, rate: float, seconds: float, seed: int) -> None:
    """Commit random transactions on the demo's database.

    Example: CDC_VIEWS_DEMO_DSN="$DSN" python -m cdc_views.demo.workload --rate 400 --seconds 60
    """
    workload = Workload(dsn, schedule(rate, seconds, seed), seed)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: workload.stop.set())
    try:
        took_s = workload.run()
    except psycopg.Error as error:
        click.echo(f"workload: {str(error).strip()}", err=True)
        sys.exit(1)
    click.echo(json.dumps(workload.ledger.summary(took_s)))
    if workload.stop.is_set():
        sys.exit(130)
    if seconds >= SECONDS_FOR_ALL_KINDS and (missing := missing_kinds(workload.ledger)):
        click.echo(f"workload: fewer than {LEAST} each of: {', '.join(missing)}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
