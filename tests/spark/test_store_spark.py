"""The session: its settings, and how its JVM ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from cdc_views.config import EngineSettings
from cdc_views.engine.service.lock import WarehouseLock
from cdc_views.engine.spark.driver import background_driver
from cdc_views.engine.spark.session import session_for
from cdc_views.errors import DiskFull, WarehouseLocked
from cdc_views.store.commits.through_spark import translated
from tests.lent_spark import lending
from tests.waiting import wait_for

ENGINE = """
import sys
from pathlib import Path
from cdc_views.config import EngineSettings
from cdc_views.engine.service.lock import WarehouseLock
from cdc_views.engine.spark.session import start_session
lock = WarehouseLock(Path(sys.argv[1]), 0)
lock.acquire()
spark = start_session(EngineSettings(driver_memory="512m"), [Path(jar) for jar in sys.argv[2:]])
lock.hold_in_jvm(spark)
spark.range(10).count()
print(spark._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
sys.stdin.readline()
"""


def exists(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def engine(tmp_path: Path, delta_jars: list[Path]) -> Iterator[subprocess.Popen[str]]:
    """Another engine that holds both locks of the warehouse; its first line is the pid of its JVM."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENGINE, str(tmp_path), *map(str, delta_jars)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield process
    process.kill()
    process.communicate()


def jvm_of(engine: subprocess.Popen[str]) -> int:
    assert engine.stdout is not None
    return int(engine.stdout.readline())


def test_start_session_is_utc_and_ansi(spark: SparkSession) -> None:
    row = spark.sql("SELECT current_timezone() AS zone, CAST(TIMESTAMP '2026-01-01' AS STRING) AS text").first()
    assert row is not None
    assert (row["zone"], row["text"], spark.conf.get("spark.sql.ansi.enabled")) == (
        "UTC",
        "2026-01-01 00:00:00",
        "true",
    )


def test_session_that_is_lent_is_given_to_whoever_starts_one_and_goes_on(spark: SparkSession) -> None:
    lent = spark.newSession()
    with lending(lent):
        with session_for(EngineSettings(), []) as given:
            assert given is lent
        with background_driver(EngineSettings(), [], lambda session: None) as driver:
            assert driver.session() is lent
    assert lent.range(3).count() == 3


def test_start_session_leaves_the_interrupt_handler(spark: SparkSession) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_jvm_ignores_interrupts_of_the_terminal(spark: SparkSession) -> None:
    java: Any = spark._jvm
    os.kill(java.java.lang.ProcessHandle.current().pid(), signal.SIGINT)
    assert spark.range(3).count() == 3


def test_engine_ends_quietly_and_leaves_no_files(engine: subprocess.Popen[str], tmp_path: Path) -> None:
    jvm_of(engine)
    _, errors = engine.communicate("\n", timeout=60)
    assert (engine.returncode, errors) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock"]


def test_killed_python_takes_its_jvm_along_and_frees_the_warehouse(
    engine: subprocess.Popen[str], tmp_path: Path
) -> None:
    jvm = jvm_of(engine)
    engine.kill()
    wait_for(lambda: not exists(jvm), 60)
    # The first thread of a dying process is gone before the last one gives its files back.
    WarehouseLock(tmp_path, 30).acquire()


@pytest.mark.nightly
def test_acquire_while_only_the_jvm_lives_names_the_jvm(engine: subprocess.Popen[str], tmp_path: Path) -> None:
    jvm = jvm_of(engine)
    os.kill(jvm, signal.SIGSTOP)
    engine.kill()
    try:
        with pytest.raises(WarehouseLocked, match=f"locked by process {jvm}"):
            WarehouseLock(tmp_path, 0.5).acquire()
    finally:
        os.kill(jvm, signal.SIGKILL)
    WarehouseLock(tmp_path, 30).acquire()


def test_full_disk_deep_in_the_causes_of_a_java_error_is_disk_full(spark: SparkSession, tmp_path: Path) -> None:
    java: Any = spark._jvm
    future = java.java.util.concurrent.CompletableFuture()
    cause = java.java.io.IOException("No space left on device")
    future.completeExceptionally(java.java.lang.RuntimeException("task failed", cause))
    with pytest.raises(DiskFull, match="no space left"), translated(tmp_path):
        future.get()


def test_start_session_without_a_working_jvm_tells_its_output(delta_jars: list[Path]) -> None:
    program = (
        "from cdc_views.config import EngineSettings\nfrom cdc_views.engine.spark.session import start_session\n"
        "from cdc_views.errors import ServiceFailed\n"
        "try: start_session(EngineSettings(driver_memory='1k'), [])\n"
        "except ServiceFailed as error: print(error.message)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "the JVM of Spark did not start" in result.stdout
    assert "heap" in result.stdout


KILLED_STARTS = """
import os, signal, sys, threading
from pathlib import Path
from cdc_views.config import EngineSettings
from cdc_views.errors import DriverLost
from cdc_views.stack.services.process import family
from cdc_views.engine.spark.driver import Driver

def kill(nth, delay_s, known, is_over):
    # The first new process is Spark's launcher, the second the JVM of the driver.
    while not is_over.wait(0.01):
        known |= (new := set(family(os.getpid())) - known)
        nth -= len(new)
        if nth <= 0:
            is_over.wait(delay_s)
            os.kill(new.pop(), signal.SIGKILL)
            return

def attempt():
    try:
        with driver.naming_lost():
            print(driver.session().range(3).count(), flush=True)
    except DriverLost as error:
        print(error.message, flush=True)

driver = Driver(EngineSettings(driver_memory="512m"), [Path(jar) for jar in sys.argv[1:]], lambda session: None)
attempt()
os.kill(driver.session()._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
for nth, delay_s in [(1, 0), (2, 0), (2, 1)]:
    is_over, known = threading.Event(), set(family(os.getpid()))
    killer = threading.Thread(target=kill, args=(nth, delay_s, known, is_over))
    killer.start()
    attempt()
    is_over.set()
    killer.join()
attempt()
driver.close()
"""


@pytest.mark.nightly
def test_jvm_that_is_killed_at_any_moment_of_its_start_is_lost_and_another_one_starts(delta_jars: list[Path]) -> None:
    command = [sys.executable, "-c", KILLED_STARTS, *map(str, delta_jars)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert (result.returncode, result.stderr) == (0, "")
    killed = "the JVM of Spark was ended by SIGKILL while it was starting"
    assert result.stdout.splitlines() == ["3", killed, killed, killed, "3"]
