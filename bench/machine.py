"""What the figures were measured on: the machine, the versions, and the CPU that other processes used."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import psutil

from cdc_views.stack.java import java_command
from cdc_views.stack.services import process

_PACKAGES: Final = ("pyspark", "delta-spark", "deltalake", "pyarrow", "duckdb")


def describe() -> dict[str, Any]:
    """The machine and the versions, as JSON."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "java": _java_version(),
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
        "load_average_before": round(os.getloadavg()[0], 2),
    }


def busy_s() -> float:
    """Seconds of CPU that this machine has spent on anything, all cores together, since it was started."""
    spent = psutil.cpu_times()
    return spent.user + spent.nice + spent.system + spent.irq + spent.softirq + spent.steal


def cpu_s(pids: Iterable[int | None]) -> dict[int, float]:
    """CPU seconds of each of these processes and their descendants, including children that they waited for."""
    families = {member for pid in pids if pid is not None for member in process.family(pid)}
    return {pid: _spent_s(pid) for pid in families}


def spent_s(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """CPU seconds between two results of `cpu_s`.

    The time of a process that has ended since is not subtracted: nobody waits for Spark's Python workers, so no other
    process has that time in its account.
    """
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())


def _spent_s(pid: int) -> float:
    try:
        spent = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return spent.user + spent.system + spent.children_user + spent.children_system


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _java_version() -> str:
    lines = subprocess.run([java_command(), "-version"], capture_output=True, text=True).stderr.splitlines()
    return next((line for line in lines if " version " in line), "unknown")
