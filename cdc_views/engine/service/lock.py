"""The lock that allows one engine per warehouse and machine. The operating system holds it while the engine lives.

There are two locks, because an engine is two processes: a flock by Python, and a FileLock by the driver's JVM, which
can outlive a killed Python while a MERGE is running. A lock ends with its process, however that ends. The content of
the files is for people only.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdc_views.engine.service.holder import ENGINE, LOCK_FOLDER, RUN, holder
from cdc_views.engine.spark.gateway import GONE
from cdc_views.errors import WarehouseLocked
from cdc_views.host.os_lock import try_lock
from cdc_views.host.waiting import wait_until
from cdc_views.store.storage import touching

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class WarehouseLock:
    """Call `acquire` before anything is read, and `hold_in_jvm` before Spark gets work."""

    def __init__(self, root: Path, timeout_s: float) -> None:
        self._root = root
        self._engine_file = root / LOCK_FOLDER / ENGINE
        self._driver_file = root / LOCK_FOLDER / "driver"
        self._timeout_s = timeout_s
        self._descriptor: int | None = None
        self._channel: Any = None

    def acquire(self) -> None:
        """Take Python's lock, and wait until no JVM of an earlier engine holds the other one.

        Raises WarehouseLocked after the timeout, WarehouseUnusable.
        """
        with touching(self._root):
            self._acquire(time.monotonic() + self._timeout_s)

    def _acquire(self, deadline: float) -> None:
        self._engine_file.parent.mkdir(parents=True, exist_ok=True)
        # Python opens files close-on-exec, so neither the JVM nor another child inherits the lock.
        descriptor = os.open(self._engine_file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._wait(deadline, self._engine_file, lambda: try_lock(descriptor))
            _write_pid(descriptor, os.getpid())
            self._wait(deadline, self._driver_file, lambda: _free(self._driver_file))
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def hold_in_jvm(self, spark: SparkSession) -> None:
        """Take the second lock in the session's JVM. Raises WarehouseLocked."""
        java: Any = spark._jvm
        pid = int(java.java.lang.ProcessHandle.current().pid())
        channel = java.java.io.RandomAccessFile(str(self._driver_file), "rw").getChannel()
        if channel.tryLock() is None:
            holder = _holder(self._driver_file)
            channel.close()
            raise self._locked(holder)
        self._driver_file.write_text(f"{pid}\n")
        self._channel = channel

    def release(self) -> None:
        """Release both locks. The end of the processes releases them too."""
        channel, self._channel = self._channel, None
        descriptor, self._descriptor = self._descriptor, None
        if channel is not None:
            with suppress(*GONE):  # it has ended with its JVM
                channel.close()
        if descriptor is not None:
            os.close(descriptor)

    def _wait(self, deadline: float, file: Path, is_free: Callable[[], bool]) -> None:
        if not wait_until(is_free, deadline - time.monotonic()):
            raise self._locked(_holder(file))

    def _locked(self, holder: str) -> WarehouseLocked:
        return _locked(self._root, holder)


@contextmanager
def only_run(root: Path, timeout_s: float) -> Iterator[None]:
    """Hold the lock of the one `run` that may be at work on a warehouse, which has an engine only after its capture.

    Raises WarehouseLocked after the timeout, WarehouseUnusable.
    """
    with _only(root, RUN, timeout_s, lambda pid: _locked(root, pid)):
        yield


@contextmanager
def only_reset(root: Path) -> Iterator[None]:
    """Hold the lock of the one reset that may be at work on a warehouse. Raises WarehouseLocked, WarehouseUnusable."""

    def refused(pid: str) -> WarehouseLocked:
        return WarehouseLocked(f'warehouse "{root}" is being reset by process {pid}', hint="wait until it has ended")

    with _only(root, "reset", 0, refused):
        yield


@contextmanager
def _only(root: Path, name: str, timeout_s: float, refused: Callable[[str], WarehouseLocked]) -> Iterator[None]:
    """Hold a lock of Python's alone. Raises what `refused` makes of the holder's pid after the timeout."""
    file = root / LOCK_FOLDER / name
    with touching(root):
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not wait_until(lambda: try_lock(descriptor), timeout_s):
            raise refused(_holder(file))
        _write_pid(descriptor, os.getpid())
        yield
    finally:
        os.close(descriptor)


def require_no_engine(root: Path) -> None:
    """Raise WarehouseLocked while an engine holds the warehouse, or a `run` that has no engine yet."""
    for name in (RUN, ENGINE):
        if (pid := holder(root, name)) is not None:
            raise _locked(root, str(pid or "unknown"))


def _locked(root: Path, holder: str) -> WarehouseLocked:
    return WarehouseLocked(
        f'warehouse "{root}" is locked by process {holder}',
        hint="an engine runs on it; stop that one first, or wait until it has ended",
    )


def _free(file: Path) -> bool:
    # Java's FileLock is a POSIX record lock, which lockf sees. It is released at once.
    with file.open("a+b") as probe:
        try:
            fcntl.lockf(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        fcntl.lockf(probe, fcntl.LOCK_UN)
    return True


def _write_pid(descriptor: int, pid: int) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{pid}\n".encode(), 0)


def _holder(file: Path) -> str:
    return file.read_text().strip() or "unknown"
