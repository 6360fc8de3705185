"""A process that reads systems over and over again, in turns, and measures each operation.

    python -m bench.serve.reading --systems postgres,tantivy --seconds 30 ... --out FILE

It rests as long as it has read, so that it takes at most half a core. FILE gets a line of JSON when everything is
prepared, and one with the results at the end.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final

import click

from bench.load import DSN_VARIABLE
from bench.serve.data import Sizes
from bench.serve.searched import SYSTEMS, NotAvailable, Operation, Searched

# Of one turn. The slow operations come in every tenth turn.
_TIMES: Final = {"search": 1, "timeline": 2, "cache": 5}
_SELDOM: Final = 10
_SCANS: Final = 3
_LEAST_REST_S: Final = 0.002


@dataclass
class Readings:
    """What was measured of a system, in milliseconds by operation.

    `first_ms` is the very first one of the process, which `ms` does not have; nor has it those of the warm-up.
    `facts` are figures of its preparation. `missing` says why it could not be measured.
    """

    ms: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    first_ms: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    missing: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The entry of the results."""
        return {"ms": self.ms, "first_ms": self.first_ms, "facts": self.facts, "missing": self.missing}


def read_results(out: Path) -> dict[str, Any] | None:
    """The results by system of a process that has ended, otherwise None."""
    lines = [json.loads(line) for line in out.read_text().split("\n")[:-1]] if out.exists() else []
    return dict(lines[-1]["results"]) if lines and "results" in lines[-1] else None


def is_prepared(out: Path) -> bool:
    """Whether the process of this file has begun to read."""
    return out.exists() and "\n" in out.read_text()


def read(systems: Mapping[str, Searched], found: Mapping[str, Readings], warm_up_s: float, seconds: float) -> None:
    """Read in turns until the time is over; what is read in the warm-up does not count."""
    random = Random(1)
    for window_s, counts in ((warm_up_s, False), (seconds, True)):
        ends = time.monotonic() + window_s
        for turn in count():  # the first turn of each window has the slow operations
            if time.monotonic() >= ends:
                break
            for name, system in systems.items():
                _read_turn(system, found[name], turn, random, counts=counts)


def _read_turn(system: Searched, found: Readings, turn: int, random: Random, *, counts: bool) -> None:
    for operation, run in system.operations.items():
        for _ in range(_times(operation, turn)):
            took_s = _took_s(run, random)
            found.first_ms.setdefault(operation, round(took_s * 1000, 3))
            if counts:
                found.ms[operation].append(round(took_s * 1000, 3))
            time.sleep(max(_LEAST_REST_S, took_s))


def _times(operation: str, turn: int) -> int:
    return _TIMES.get(operation, int(turn % _SELDOM == 0))


def _scan(system: Searched) -> dict[str, Any]:
    """The rows per second of the fastest of some scans."""
    best = 0.0
    for _ in range(_SCANS):
        began = time.monotonic()
        rows = system.scan_rows()
        if rows is None:
            return {}
        best = max(best, rows / (time.monotonic() - began))
    return {"scan_rows_per_s": round(best)}


def _took_s(run: Operation, random: Random) -> float:
    began = time.perf_counter()
    run(random)
    return time.perf_counter() - began


@click.command()
@click.option("--systems", required=True, help="Names, comma-separated.")
@click.option("--warehouse", required=True, type=click.Path(path_type=Path), help="Warehouse of cdc_views.")
@click.option("--documents", required=True, type=int, help="Documents in the source.")
@click.option("--followers", required=True, type=int, help="Followers in the source.")
@click.option("--warm-up", required=True, type=float, help="Seconds before those that count.")
@click.option("--seconds", required=True, type=float, help="Seconds that count.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="File for the results.")
def main(systems: str, warehouse: Path, documents: int, followers: int, warm_up: float, seconds: float,
         out: Path) -> None:  # fmt: skip
    """Read systems in turns. The DSN is in CDC_VIEWS_BENCH_DSN."""
    dsn, sizes = os.environ[DSN_VARIABLE], Sizes(documents, followers)
    names = systems.split(",")
    chosen = {name: SYSTEMS[name](dsn, warehouse, out.with_suffix(f".{name}"), sizes) for name in names}
    found = {name: Readings() for name in names}
    with out.open("w") as file:
        for name, system in list(chosen.items()):
            try:
                found[name].facts |= system.prepare()
            except NotAvailable as error:
                found[name].missing = str(error)
                del chosen[name]
        file.write('{"prepared": true}\n')
        file.flush()
        read(chosen, found, warm_up, seconds)
        for name, system in chosen.items():
            found[name].facts |= _scan(system)
            found[name].facts["process_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        file.write(json.dumps({"results": {name: each.as_json() for name, each in found.items()}}) + "\n")


if __name__ == "__main__":
    main()
