"""A process that outlives us and is found again by its pid file.

The pid file holds the pid and the start time of the process, so another process with the same pid is never mistaken for
ours.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from cdc_views.errors import ServiceFailed
from cdc_views.host import signals
from cdc_views.host.waiting import wait_while

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

# Children of this process, kept so that they can be reaped when they end.
_children: dict[int, subprocess.Popen[bytes]] = {}


class PidFile:
    """Where a process is registered."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> int | None:
        """Return the pid if the registered process is alive."""
        try:
            pid, _, started = self.path.read_text().strip().partition(" ")
            number = int(pid)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        return number if started and start_mark(number) == started else None

    def write(self, pid: int) -> None:
        """Register a process that was just started."""
        temporary = self.path.with_suffix(".new")
        temporary.write_text(f"{pid} {start_mark(pid)}\n")
        temporary.replace(self.path)

    def remove(self) -> None:
        """Forget it."""
        self.path.unlink(missing_ok=True)


def spawn(
    command: Sequence[str], pid_file: PidFile, log_file: Path, *, cwd: Path, environment: Mapping[str, str], **user: Any
) -> int:
    """Start a process in its own session, append its output to `log_file`, and register it.

    Signals to us are deferred until it is registered, so no process is lost track of. `user` are arguments of Popen:
    user, group, extra_groups.
    """
    with log_file.open("ab") as log, signals.deferred():
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=cwd,
            env={**os.environ, **environment}, start_new_session=True, **user,
        )  # fmt: skip
        _children[child.pid] = child
        pid_file.write(child.pid)
    return child.pid


def exit_status(pid: int) -> int | None:
    """Return the exit status of a process that this Python started with `spawn`; None while it runs."""
    return _children[pid].poll()


def start_mark(pid: int) -> str | None:
    """Return a text that identifies this process among all that ever have its pid; None if the process is gone."""
    with contextlib.suppress(psutil.NoSuchProcess):
        found = psutil.Process(pid)
        # The first thread may be a zombie while others still hold files and ports.
        if found.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD) or found.num_threads() > 1:
            # A correction of the clock moves both times, so the ticks between them stay. After another boot, the same
            # ticks belong to another process.
            ticks = round((found.create_time() - psutil.boot_time()) * os.sysconf("SC_CLK_TCK"))
            return f"{ticks}@{_BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ''}"
    if child := _children.get(pid):
        child.poll()  # reaps it
    return None


def family(pid: int) -> list[int]:
    """Return the pid and those of all its descendants."""
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return [pid]


def send(pids: Sequence[int], signum: signal.Signals) -> None:
    """Signal each process that still exists."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)


def kill(pid_file: PidFile, limit_s: float = 30) -> None:
    """SIGKILL a registered process and its descendants, wait until they are gone, and forget it."""
    if (pid := pid_file.read()) is not None:
        everyone = family(pid)
        send(everyone, signal.SIGKILL)
        if wait_while(lambda: any(start_mark(one) for one in everyone), limit_s, 0.01):
            raise ServiceFailed(f'process {pid} of "{pid_file.path.stem}" does not end even by SIGKILL')
    pid_file.remove()


def last_lines(file: Path, count: int = 20) -> str:
    """Return the last lines of a log."""
    try:
        with file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 200 * count))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])
    except FileNotFoundError:
        return ""
