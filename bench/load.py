"""The open load: transactions at times drawn in advance, whether or not anything keeps up with them.

    python -m bench.load --rate 1000 --seconds 60 --out FILE

This is a separate process. The times are those of a Poisson process. If the connection is still busy with the previous
transaction, the next one is late, and its latency counts from its scheduled time. Some transactions are probes: they
write their number into one row of each table. One connection writes all probes, so the numbers only grow. A reader
looks for them. FILE gets lines of JSON: {"began": ...}, then {"probe", "due", "committed"} for each probe, and a
summary at the end. Times are seconds since 1970.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import IO, Any, Final

import click
import psycopg
from psycopg import errors

from bench.figures import quantile

DSN_VARIABLE: Final = "CDC_VIEWS_BENCH_DSN"
PROBE_CHANGES: Final = 5
PROBES_PER_S: Final = 20.0

_CONNECTIONS: Final = 4
_LEAD_S: Final = 0.5  # from the start of the process to the first transaction, so that none is late from the start
_LINGER_S: Final = 1.0
_RETRY: Final = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation)


@dataclass(frozen=True)
class Due:
    """A transaction: its number, and its scheduled time in seconds after the beginning."""

    number: int
    due_s: float


def poisson(rate: float, seconds: float, seed: int, first: int = 1) -> Iterator[Due]:
    """Transactions at `rate` per second; none if the rate is 0."""
    random, due_s, number = Random(seed), 0.0, first
    while rate > 0:
        due_s += random.expovariate(rate)
        if due_s >= seconds:
            return
        yield Due(number, due_s)
        number += 1


class Load:
    """Commits each transaction at its time, and records when the probes were committed."""

    def __init__(self, dsn: str, size: int, out: IO[str]) -> None:
        """`size` is the number of rows that an ordinary transaction changes."""
        self._dsn = dsn
        self._size = size
        self._out = out
        self._lock = threading.Lock()
        self._changes = 0
        self._late_s: list[float] = []
        self._failure: BaseException | None = None

    def run(self, changes: Iterator[Due], probes: Iterator[Due]) -> dict[str, Any]:
        """Run all transactions. Returns the summary."""
        began_at = time.time() + _LEAD_S
        self._tell({"began": began_at})
        workers = [
            *(threading.Thread(target=self._work, args=(began_at, changes, False)) for _ in range(_CONNECTIONS)),
            threading.Thread(target=self._work, args=(began_at, probes, True)),
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if self._failure is not None:
            raise self._failure
        return {
            "transactions": len(self._late_s),
            "changes": self._changes,
            "seconds": round(time.time() - began_at, 3),
            "late_p99_s": round(quantile(self._late_s or [0.0], 0.99), 4),
        }

    def _work(self, began_at: float, due: Iterator[Due], is_probe: bool) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True, application_name="cdc_views_bench") as connection:
                while (job := self._next(due)) is not None and self._failure is None:
                    time.sleep(max(0.0, began_at + job.due_s - time.time()))
                    changes = self._commit(connection, job.number, is_probe)
                    self._committed(began_at + job.due_s, job.number if is_probe else None, changes)
        except BaseException as error:  # raised again by run, in the main thread
            self._failure = error

    def _next(self, due: Iterator[Due]) -> Due | None:
        with self._lock:
            return next(due, None)

    def _commit(self, connection: psycopg.Connection[Any], number: int, is_probe: bool) -> int:
        while True:
            try:
                if is_probe:
                    row = connection.execute("SELECT bench.probe(%s)", (number,)).fetchone()
                else:
                    row = connection.execute("SELECT bench.change(%s, %s)", (number, self._size)).fetchone()
            except _RETRY:
                continue
            assert row is not None
            return int(row[0])

    def _committed(self, due_at: float, probe: int | None, changes: int) -> None:
        now = time.time()
        with self._lock:
            self._changes += changes
            self._late_s.append(now - due_at)
        if probe is not None:
            self._tell({"probe": probe, "due": due_at, "committed": now})

    def _tell(self, line: dict[str, Any]) -> None:
        with self._lock:
            self._out.write(json.dumps(line) + "\n")
            self._out.flush()


@dataclass(frozen=True)
class Probe:
    """A probe that was committed; times in seconds since 1970."""

    number: int
    due_at: float
    committed_at: float


def read_began(out: Path) -> float | None:
    """When the load of this file began, or None if it has not begun."""
    lines = _lines(out)
    return float(lines[0]["began"]) if lines else None


def read_probes(out: Path) -> list[Probe]:
    """The probes in the file of a load, in order."""
    found = [line for line in _lines(out) if "probe" in line]
    return [Probe(line["probe"], line["due"], line["committed"]) for line in found]


def read_summary(out: Path) -> dict[str, Any] | None:
    """The summary of a load that has ended, otherwise None."""
    lines = _lines(out)
    return lines[-1] if lines and "changes" in lines[-1] else None


def _lines(out: Path) -> Sequence[dict[str, Any]]:
    if not out.exists():
        return []
    whole = out.read_text().split("\n")[:-1]  # the last piece is empty, or is being written
    return [json.loads(line) for line in whole]


@click.command()
@click.option("--rate", required=True, type=click.FloatRange(min=0.1), help="Row changes per second, probes included.")
@click.option("--seconds", required=True, type=click.FloatRange(min=0.1), help="Length of the load.")
@click.option("--size", default=5, show_default=True, help="Rows that an ordinary transaction changes.")
@click.option("--first-number", default=1, show_default=True, help="Number of the first probe; the numbers only grow.")
@click.option("--seed", default=1, show_default=True, help="Seed for the times and the changes.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="File for the committed transactions.")
def main(rate: float, seconds: float, size: int, first_number: int, seed: int, out: Path) -> None:
    """Commit transactions at times drawn in advance. The DSN is in CDC_VIEWS_BENCH_DSN."""
    # At a low rate one transaction in two is a probe.
    probes_per_s = min(PROBES_PER_S, rate / 2 / PROBE_CHANGES)
    changes_per_s = (rate - probes_per_s * PROBE_CHANGES) / size
    with out.open("w") as file:
        load = Load(os.environ[DSN_VARIABLE], size, file)
        # Each seed draws other rows.
        changes = poisson(changes_per_s, seconds, seed, first=seed * 10**9)
        summary = load.run(changes, poisson(probes_per_s, seconds, -seed, first=first_number))
        # The CPU of this process is measured at the end of the window, so it must still run then.
        time.sleep(max(0.0, seconds + _LINGER_S - summary["seconds"]))
        file.write(json.dumps(summary) + "\n")


if __name__ == "__main__":
    main()
