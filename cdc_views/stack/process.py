"""A process that outlives us, found again by its pid file.

The pid file holds the pid and when that process was started, so that another process that got the
same pid is never taken for ours.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cdc_views.errors import ServiceFailed
from cdc_views.stack import signals
from cdc_views.waiting import wait_while

_PROC: Final = Path("/proc")

# Children of this process, kept so that they are reaped when they end.
_children: dict[int, subprocess.Popen[bytes]] = {}


class PidFile:
    """Where a process is registered."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> int | None:
        """The pid, if that process is alive and the one that was registered."""
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
    """Start a process in a session of its own, with its output at the end of `log_file`, and register it.

    A signal to us is held back until it is registered, so none is ever lost from sight. `user` is what
    Popen takes: user, group, extra_groups.
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
    """Of a process that `spawn` of this Python started; None while it runs."""
    return _children[pid].poll()


def start_mark(pid: int) -> str | None:
    """When a process was started, as a text that no later process of the same pid has; None if it is gone."""
    mark = _ask_proc(pid) if _PROC.exists() else _ask_ps(pid)
    if mark is None and (child := _children.get(pid)):
        child.poll()  # reaps it
    return mark


def family(pid: int) -> list[int]:
    """The pid and all descendants of it."""
    parents = _parents()
    found = [pid]
    for parent in found:  # grows meanwhile
        found.extend(child for child, its_parent in parents.items() if its_parent == parent)
    return found


def send(pids: Sequence[int], signum: signal.Signals) -> None:
    """Signal each that is still there."""
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
    """The end of a log."""
    try:
        with file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 200 * count))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])
    except FileNotFoundError:
        return ""


def _ask_proc(pid: int) -> str | None:
    fields = _stat(pid)
    # The first thread may be a zombie while others still hold files and ports.
    if fields is None or (fields[0] in "ZX" and int(fields[17]) <= 1):
        return None
    # Ticks since the boot; after another boot the same ticks are another process.
    return f"{fields[19]}@{(_PROC / 'sys/kernel/random/boot_id').read_text().strip()}"


def _stat(pid: int) -> list[str] | None:
    """What /proc says from the state on (the third field)."""
    try:
        # The second field is the name in parentheses and may hold anything.
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _parents() -> dict[int, int]:
    if not _PROC.exists():
        rows = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True).stdout.splitlines()
        return {int(pid): int(parent) for pid, parent in (row.split() for row in rows)}
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    return {pid: int(fields[1]) for pid in pids if (fields := _stat(pid)) is not None}


def _ask_ps(pid: int) -> str | None:
    shown = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True).stdout
    state, _, started = shown.strip().partition(" ")
    return started.strip() if state and not state.startswith("Z") else None
