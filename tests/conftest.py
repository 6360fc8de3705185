"""What all tests share, and the rule that a test that did not run is a failure in CI."""

from __future__ import annotations

import atexit
import gc
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings as hypothesis_settings

from tests.seed import SEED

pytest_plugins = ["tests.sharing"]

# A loaded machine is no failure of what is tested.
hypothesis_settings.register_profile("without deadline", deadline=None)
hypothesis_settings.load_profile("without deadline")

SKIPS = Path(__file__).parent / "SKIPS.md"
# Not for unit tests, which do not need them: their import takes a second.
FIXTURES: Final = [
    "tests.fix_services",
    "tests.fix_postgres",
    "tests.fix_kafka",
    "tests.fix_project",
    "tests.fix_spark",
    "tests.fix_conformance",
    "tests.fix_disk",
    "tests.fix_wheel",
]
UNIT: Final = Path(__file__).parent / "unit"
MEMORY: Final = Path("/dev/shm")
# For unit tests, and for all; tests/fix_disk.py fills a disk in memory that is smaller.
ENOUGH_OF_UNIT_BYTES: Final = 1 << 30
ENOUGH_BYTES: Final = 8 << 30

# Nearly all that the import of the tests makes is kept, so searches for garbage find nothing.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    """Import the fixtures that the chosen tests need, and choose where temporary folders are."""
    chosen = [Path(config.invocation_params.dir, arg.split("::")[0]) for arg in config.args]
    is_unit = all(path.resolve().is_relative_to(UNIT) for path in chosen)
    if not is_unit:
        for name in FIXTURES:
            config.pluginmanager.import_plugin(name)
    keep_files_in_memory(is_unit)
    # An engine would wait behind the tests of other lanes; one in this process would leave its niceness to it.
    os.environ.setdefault("CDC_VIEWS_ENGINE__NICENESS", "0")
    heed_interrupts()


def heed_interrupts() -> None:
    """Heed SIGINT, which a shell lets its background jobs ignore, and these the processes that they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def keep_files_in_memory(is_unit: bool) -> None:
    """Keep the temporary folders of a run in memory: the tests, the services and Spark write thousands of small files.

    A file and its fsync cost seven times as much processor on ext4.
    """
    enough_bytes = ENOUGH_OF_UNIT_BYTES if is_unit else ENOUGH_BYTES
    if "TMPDIR" in os.environ or not MEMORY.is_mount() or shutil.disk_usage(MEMORY).free < enough_bytes:
        return
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)  # also of the commands that tests start
    os.environ.setdefault("SPARK_LOCAL_DIRS", str(MEMORY))


def pytest_collection_finish() -> None:
    """Leave what was imported out of all later searches for garbage, and search less often."""
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)
    gc.enable()
    # DuckDB complains at exit about objects that were never searched. The searches of pytest before need not find them.
    atexit.register(gc.unfreeze)


def allowed_skips() -> set[str]:
    """Test ids that may be skipped in CI: the first column of the table in SKIPS.md."""
    return set(re.findall(r"^\| `([^`]+)`", SKIPS.read_text(), re.MULTILINE))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI a skipped test fails the run, but for those that SKIPS.md lists with a reason."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None:
        unlisted = [
            report.nodeid for report in reporter.stats.get("skipped", []) if report.nodeid not in allowed_skips()
        ]
        if unlisted and exitstatus == 0:
            reporter.write_line(f"skipped without being listed in {SKIPS.name}: {', '.join(unlisted)}", red=True)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say with which seed the tests with random data have run, and why tests were skipped, once for each reason."""
    terminalreporter.write_line(f"the same random data: CDC_VIEWS_SEED={SEED}")
    skipped = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    for reason in dict.fromkeys(skipped):
        told = reason.removeprefix("Skipped: ")
        terminalreporter.write_line(f"{skipped.count(reason)} tests skipped: {told}", yellow=True)


@pytest.fixture
def without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of many commits that are about something else than a loss of power."""
    monkeypatch.setattr("cdc_views.store.storage.durable._is_on", False)


@pytest.fixture
def state_folder(enterable_folder: Path, request: pytest.FixtureRequest) -> Path:
    """A folder for a stack of the test's own."""
    folder = enterable_folder / re.sub(r"\W+", "-", request.node.name)[:60]
    folder.mkdir()
    return folder
