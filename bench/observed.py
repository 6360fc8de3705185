"""An observed load: what was committed when, what a reader saw when, and the CPU that was used."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import machine
from bench.figures import Sample, backlog_slope, latency_figures
from bench.load import PROBE_CHANGES, Probe, read_began, read_probes, read_summary
from bench.reader import Sighting, first_with, read_sightings
from bench.rig import Rig
from bench.systems import System
from cdc_views.demo.programs import Program
from cdc_views.errors import NotRunning
from cdc_views.host.waiting import wait_until

READY_LIMIT_S: Final = 3600.0
DRAIN_LIMIT_S: Final = 600.0
_START_LIMIT_S: Final = 60.0


@dataclass(frozen=True)
class Seen:
    """A probe of the measured window, and the first sighting that has it in every table."""

    probe: Probe
    sighting: Sighting

    @property
    def sample(self) -> Sample:
        """Latency from the scheduled commit to the end of the reader's read."""
        return Sample(self.probe.due_at, self.sighting.at - self.probe.due_at)


@dataclass(frozen=True)
class Observation:
    """A window of load: its probes with their sightings, all sightings in it, cores used by name, the load's summary.

    `window` is its beginning and end, in seconds since 1970.
    """

    seen: Sequence[Seen]
    sightings: Sequence[Sighting]
    cores: Mapping[str, float]
    load: Mapping[str, Any]
    window: tuple[float, float]

    @property
    def samples(self) -> list[Sample]:
        """The latency of each probe, with its scheduled time."""
        return [seen.sample for seen in self.seen]

    @property
    def load_changes_per_s(self) -> int:
        """Row changes per second that were really committed, warm-up included."""
        return round(float(self.load["changes"] / self.load["seconds"]))

    def figures(self, prefix: str, word: str) -> dict[str, Any]:
        """The figures of every system; `word` says what its latencies measure."""
        return {
            **latency_figures(f"{prefix}{word}_", self.samples),
            f"{prefix}backlog_slope": backlog_slope(self.samples),
            **{f"{prefix}{name}_cores": round(cores, 3) for name, cores in self.cores.items()},
            f"{prefix}states_seen": len(self.sightings),
            f"{prefix}states_torn": sum(sighting.is_torn for sighting in self.sightings),
            f"{prefix}load_changes_per_s": self.load_changes_per_s,
            f"{prefix}load_late_p99_s": self.load["late_p99_s"],
        }


class Observer:
    """The reader of one system, and its loads, one after the other."""

    def __init__(self, rig: Rig, system: System, reader: Program, sightings: Path, first_number: int) -> None:
        self._rig = rig
        self._system = system
        self._reader = reader
        self._sightings = sightings
        self.next_number = first_number
        self._loads = 0

    def wait_ready(self) -> None:
        """Wait until the system shows a probe, and so everything committed earlier. Raises NotRunning."""
        self._load(rate=2 * PROBE_CHANGES, seconds=3, size=5, limit_s=READY_LIMIT_S)

    def observe(self, rate: float, warm_up_s: float, seconds: float, size: int = 5) -> Observation:
        """Run the load for `warm_up_s` and `seconds`. Observe the latter window until all its probes were seen."""
        out, load = self._begin(rate, warm_up_s + seconds, size)
        began_at = _began(out)
        time.sleep(max(0.0, began_at + warm_up_s - time.time()))
        with _cores(self._groups(load)) as cores:
            time.sleep(max(0.0, began_at + warm_up_s + seconds - time.time()))
        window = (began_at + warm_up_s, began_at + warm_up_s + seconds)
        summary, probes = self._end(out, load, DRAIN_LIMIT_S)
        sightings = read_sightings(self._sightings)
        seen = [Seen(probe, _first(sightings, probe)) for probe in probes if window[0] <= probe.due_at < window[1]]
        inside = [sighting for sighting in sightings if window[0] <= sighting.at < window[1]]
        return Observation(seen, inside, cores, summary, window)

    def _load(self, rate: float, seconds: float, size: int, limit_s: float) -> None:
        out, load = self._begin(rate, seconds, size)
        self._end(out, load, limit_s)

    def _begin(self, rate: float, seconds: float, size: int) -> tuple[Path, Program]:
        self._loads += 1
        out = self._sightings.with_name(f"load-{self._system.name}-{self._loads}.jsonl")
        options = {"rate": rate, "seconds": seconds, "size": size, "first-number": self.next_number,
                   "seed": self.next_number, "out": out}  # fmt: skip
        arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        load = self._rig.program(f"load-{self._system.name}", self._rig.folder, "bench.load", *arguments)
        load.start()
        return out, load

    def _end(self, out: Path, load: Program, limit_s: float) -> tuple[dict[str, Any], list[Probe]]:
        """Wait until the load has ended and its last probe is seen. Raises NotRunning."""
        if not wait_until(lambda: load.pid is None, DRAIN_LIMIT_S):
            raise NotRunning(f"the load did not end within {DRAIN_LIMIT_S:.0f} s")
        summary, probes = read_summary(out), read_probes(out)
        if summary is None:
            raise NotRunning(f"the load has failed:\n{load.log_file.read_text()[-2000:]}")
        self.next_number = probes[-1].number + 1 if probes else self.next_number
        self._wait_seen(self.next_number - 1, limit_s)
        return summary, probes

    def _wait_seen(self, number: int, limit_s: float) -> None:
        def is_seen() -> bool:
            self._system.require_running()
            self._reader.require_running()
            last = _last_line(self._sightings)
            return last is not None and min(last["numbers"].values()) >= number

        if not wait_until(is_seen, limit_s):
            raise NotRunning(
                f"{self._system.name} did not show probe {number} within {limit_s:.0f} s",
                hint=f'see "{self._system.program.log_file}"',
            )

    def _groups(self, load: Program) -> dict[str, list[int | None]]:
        return {
            "system": [self._system.program.pid],
            "capture": self._rig.capture_pids(),
            "load": [load.pid],
            "reader": [self._reader.pid],
        }


@contextmanager
def observer(rig: Rig, system: System, first_number: int) -> Iterator[Observer]:
    """Run a reader beside a running system; stop it afterwards."""
    sightings = rig.folder / f"seen-{system.name}.jsonl"
    arguments = [*system.reader_options(), "--out", str(sightings)]
    reader = rig.program(f"reader-{system.name}", rig.folder, "bench.reader", *arguments)
    reader.start()
    try:
        yield Observer(rig, system, reader, sightings, first_number)
    finally:
        reader.stop()


@contextmanager
def _cores(groups: Mapping[str, list[int | None]]) -> Iterator[dict[str, float]]:
    """Fill in the cores that each group of processes used in the block, and all other processes ("foreign")."""
    used: dict[str, float] = {}
    before = {name: machine.cpu_s(pids) for name, pids in groups.items()}
    busy, began = machine.busy_s(), time.monotonic()
    yield used
    seconds = time.monotonic() - began
    used |= {name: machine.spent_s(before[name], machine.cpu_s(pids)) / seconds for name, pids in groups.items()}
    used["foreign"] = max(0.0, (machine.busy_s() - busy) / seconds - sum(used.values()))


def _began(out: Path) -> float:
    found: list[float] = []

    def has_begun() -> bool:
        began = read_began(out)
        found.extend([] if began is None else [began])
        return bool(found)

    if not wait_until(has_begun, _START_LIMIT_S):
        raise NotRunning(f"the load did not begin within {_START_LIMIT_S:.0f} s")
    return found[0]


def _first(sightings: list[Sighting], probe: Probe) -> Sighting:
    found = first_with(sightings, probe.number)
    assert found is not None, "the last probe was seen, so all were"
    return found


def _last_line(file: Path, size: int = 4096) -> dict[str, Any] | None:
    """The last complete line of a growing file."""
    if not file.exists():
        return None
    with file.open("rb") as lines:
        lines.seek(max(0, lines.seek(0, 2) - size))
        whole = lines.read().split(b"\n")[:-1]
    return json.loads(whole[-1]) if whole else None
