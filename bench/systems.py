"""The measured systems: cdc_views and the two baselines, each a separate process on the same topics."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

from bench.equality import StoredTable, demo_differences, differences, published_mirrors
from bench.rig import Rig
from cdc_views.demo.programs import Program
from cdc_views.errors import CheckFailed, NothingPublished, NotRunning
from cdc_views.host.waiting import wait_until
from cdc_views.stack.services import process
from cdc_views.store.control import PUBLISHING, ControlRecord, PublishedDetail, read_control
from cdc_views.store.delta_log import newest_version
from cdc_views.testing.postgres.compare import Difference, describe

END_LIMIT_S: Final = 3600.0
_EQUAL_LIMIT_S: Final = 120.0


class System(ABC):
    """One way to mirror the topics. The names of its figures start with `prefix`."""

    name: ClassVar[str]
    prefix: ClassVar[str]

    def __init__(self, rig: Rig, label: str = "") -> None:
        """A `label` makes it another run, with empty tables."""
        self._rig = rig
        self._project = rig.project(f"{self.name}{label}")

    @property
    def word(self) -> str:
        """What its latencies measure: mirrors, or whole epochs with views."""
        return "mirror"

    @abstractmethod
    def _program(self, until_end: bool) -> Program:
        """The process."""

    @abstractmethod
    def reader_options(self) -> list[str]:
        """The options that tell the reader where its tables are."""

    @abstractmethod
    def reading_s(self) -> float:
        """Seconds of reading and writing, without the start, of a process that has ended by itself."""

    @abstractmethod
    def _stored(self) -> dict[str, StoredTable]:
        """The tables as readers currently see them."""

    @contextmanager
    def running(self, *, until_end: bool = False) -> Iterator[None]:
        """Start it, and stop it after the block. With `until_end` it ends by itself at the end of the topics."""
        self.program = self._program(until_end)
        self.program.start()
        try:
            yield
        finally:
            self.program.stop()

    def wait_end(self) -> None:
        """Wait for a process that ends by itself. Raises NotRunning if it fails."""
        pid = self.program.pid
        if not wait_until(lambda: self.program.pid is None, END_LIMIT_S):
            raise NotRunning(f"{self.name} did not end within {END_LIMIT_S:.0f} s")
        if pid is not None and process.exit_status(pid) != 0:
            raise self._failed("has failed")

    def is_equal(self) -> bool:
        """Whether its tables become equal to Postgres. Postgres is idle, but the system may still be busy."""
        return wait_until(self._is_equal_now, _EQUAL_LIMIT_S)

    def require_running(self) -> None:
        """Raise NotRunning with the end of its log if it has ended."""
        if self.program.pid is None:
            raise self._failed("has ended")

    def _is_equal_now(self) -> bool:
        try:
            self._last_differences = self._differences()
        except NothingPublished:
            return False
        return not self._last_differences

    def describe_differences(self) -> CheckFailed:
        """The error that names the differences found last."""
        return CheckFailed(f"{self.name}: {describe(self._last_differences)}")

    def _differences(self) -> list[Difference]:
        """The rows in which its tables differ from Postgres now. Raises NothingPublished."""
        return differences(self._rig.dsn, self._stored())

    def _failed(self, what: str) -> NotRunning:
        return NotRunning(f"{self.name} {what}:\n{process.last_lines(self.program.log_file)}")


class CdcViews(System):
    """The engine, as `cdc-views run` starts it."""

    name = "cdc_views"
    prefix = ""

    def __init__(self, rig: Rig, label: str = "", profile: Path | None = None) -> None:
        super().__init__(rig, label)
        self._profile = profile

    @property
    def word(self) -> str:
        """See System."""
        return "epoch" if self._rig.with_views else "mirror"

    @property
    def warehouse(self) -> Path:
        """Its Delta tables and the control log."""
        return self._project / "warehouse"

    def published(self) -> list[ControlRecord]:
        """The epochs so far, oldest first."""
        return [record for record in read_control(self.warehouse) if record.kind in PUBLISHING]

    def reader_options(self) -> list[str]:
        """See System."""
        return ["--warehouse", str(self.warehouse)]

    def reading_s(self) -> float:
        """See System."""
        spent = [PublishedDetail.read(record).stage_ms for record in self.published()]
        return sum(sum(stages.values()) for stages in spent) / 1000

    def _program(self, until_end: bool) -> Program:
        module = ["cdc_views.cli.main"] if self._profile is None else ["bench.profiled", str(self._profile.absolute())]
        options = ["--until-caught-up"] if until_end else []
        return self._rig.program(self.name, self._project, *module, "-C", str(self._project), "run", *options)

    def _stored(self) -> dict[str, StoredTable]:
        return published_mirrors(self.warehouse)

    def _differences(self) -> list[Difference]:
        if self._rig.with_views:
            return demo_differences(self._rig.dsn, self.warehouse)
        return super()._differences()


class _Baseline(System):
    module: ClassVar[str]

    @property
    def _folder(self) -> Path:
        return self._project / "tables"

    def reader_options(self) -> list[str]:
        """See System."""
        return ["--tables", str(self._folder)]

    def reading_s(self) -> float:
        """See System."""
        return float(json.loads(self.program.log_file.read_text().strip().rpartition("\n")[2])["reading_s"])

    def _program(self, until_end: bool) -> Program:
        options = ["--until-end"] if until_end else []
        where = ["--project", str(self._project), "--out", str(self._folder)]
        return self._rig.program(self.name, self._project, self.module, *where, *options)

    def _stored(self) -> dict[str, StoredTable]:
        names = [f"public.{table}" for table in self._rig.contents.tables]
        versions = {name: newest_version(self._folder / name) for name in names}
        return {name: StoredTable(self._folder, name, version) for name, version in versions.items()}


class Textbook(_Baseline):
    """Structured Streaming, foreachBatch, a MERGE per table."""

    name = "textbook"
    prefix = "baseline_"
    module = "bench.textbook"


class DeltaRs(_Baseline):
    """The delta-rs loop."""

    name = "deltars"
    prefix = "deltars_"
    module = "bench.deltars"


BASELINES: Final[dict[str, type[System]]] = {"textbook": Textbook, "deltars": DeltaRs}


def systems(rig: Rig, baselines: Iterable[str], profile: Path | None = None) -> Iterator[System]:
    """cdc_views (profiled if wanted), then the named baselines; each is created when its turn comes."""
    yield CdcViews(rig, profile=profile)
    for name in baselines:
        yield BASELINES[name](rig)
