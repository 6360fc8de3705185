"""What Postgres, Kafka and Connect have in common: starting, health checks, stopping.

Starting and stopping are generators that yield while they wait. So one thread can start several services at the same
time, and it is the thread that signals interrupt.
"""

from __future__ import annotations

import abc
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from cdc_views.errors import PortInUse, ServiceFailed, ServiceKilled
from cdc_views.host.exit_status import signal_of
from cdc_views.stack.folders import make_private
from cdc_views.stack.services import process

HOST: Final = "127.0.0.1"
START_LIMIT_S: Final = 120.0
STOP_LIMIT_S: Final = 30.0
_POLL_S = 0.05

Steps = Iterator[None]


class Service(abc.ABC):
    """One process of the stack. Its data, log and pid file are in the state folder. Clients connect to `port`."""

    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, state: Path, port: int) -> None:
        self.state = state
        self.port = port
        self.folder = state / self.name
        self.log_file = state / "logs" / f"{self.name}.log"
        self._pid_file = process.PidFile(state / f"{self.name}.pid")

    @property
    def pid(self) -> int | None:
        """The pid of the running process, whoever started it; None if none runs."""
        return self._pid_file.read()

    @abc.abstractmethod
    def is_healthy(self) -> bool:
        """Whether it answers."""

    @abc.abstractmethod
    def _prepare(self) -> Steps:
        """Prepare what the process needs."""

    @abc.abstractmethod
    def _command(self) -> Sequence[str]:
        """Return the command of the process."""

    def _ports(self) -> Sequence[int]:
        return [self.port]

    def _environment(self) -> Mapping[str, str]:
        return {}

    def _user(self) -> dict[str, Any]:
        return {}

    def start(self) -> None:
        """Start it and wait until it is healthy. Raises PortInUse, ServiceKilled and ServiceFailed."""
        run(self.starting())

    def stop(self) -> None:
        """Stop it, or kill it after a limit."""
        run(self.stopping())

    def starting(self) -> Steps:
        """The steps of `start`."""
        started = None
        if self.pid is None:
            make_private(self.log_file.parent)
            self.refuse_taken_ports()
            yield from self._prepare()
            started = process.spawn(
                self._command(), self._pid_file, self.log_file,
                cwd=self.state, environment=self._environment(), **self._user(),
            )  # fmt: skip
        yield from self._wait_healthy(started)

    def stopping(self) -> Steps:
        """The steps of `stop`."""
        pid = self.pid
        if pid is not None:
            everyone = process.family(pid)
            process.send([pid], self.stop_signal)
            process.send(everyone, signal.SIGCONT)  # it may be suspended
            deadline = time.monotonic() + STOP_LIMIT_S
            while self.pid == pid and time.monotonic() < deadline:
                yield
        self.kill()

    def kill(self) -> None:
        """SIGKILL it and all its descendants, and wait until they are gone."""
        process.kill(self._pid_file)

    def pause(self) -> None:
        """SIGSTOP it and its descendants."""
        self._send_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo `pause`."""
        self._send_all(signal.SIGCONT)

    def _send_all(self, signum: signal.Signals) -> None:
        if (pid := self.pid) is not None:
            process.send(process.family(pid), signum)

    def _wait_healthy(self, started: int | None) -> Steps:
        """Wait until it is healthy. `started` is its pid if it was started here."""
        deadline = time.monotonic() + START_LIMIT_S
        while not self.is_healthy():
            if self.pid is None:
                self._require_not_killed(started, "starting")
                raise self._failed("ended while it was starting")
            if time.monotonic() > deadline:
                raise self._failed(f"did not become healthy within {START_LIMIT_S:.0f} s")
            yield

    def _require_not_killed(self, pid: int | None, doing: str) -> None:
        """Raise ServiceKilled if a process that was started here was ended by a signal."""
        status = process.exit_status(pid) if pid is not None else None
        if status is not None and (signal_name := signal_of(status)) is not None:
            raise ServiceKilled(
                f"{self.name} was ended by {signal_name} while it was {doing}",
                hint="who killed it, or was the machine short of memory? Start it again",
            )

    def _failed(self, what: str, log: Path | None = None) -> ServiceFailed:
        log = log or self.log_file
        end = process.last_lines(log)
        return ServiceFailed(f"{self.name} {what}; its log ends:\n{end}", hint=f'the log is "{log}"')

    def refuse_taken_ports(self) -> None:
        """Raise PortInUse if another process listens on a port of this service."""
        for port in self._ports():
            if not is_free(port):
                raise PortInUse(
                    f"port {port} for {self.name} belongs to another process",
                    hint='stop that process, or give this stack other ports: "cdc-views up --help"',
                )

    def _run(
        self,
        what: str,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        is_done: Callable[[str], bool] | None = None,
    ) -> Steps:
        """Run a command until it ends, or until `is_done` of its output is true: then stop it.

        Raises ServiceKilled and ServiceFailed.
        """
        log = self.log_file.with_name(f"{self.name}-{what}.log")
        pid_file = process.PidFile(self.state / f"{self.name}-{what}.pid")
        log.unlink(missing_ok=True)
        pid = process.spawn(command, pid_file, log, cwd=self.state, environment=environment or {}, **self._user())
        try:
            deadline = time.monotonic() + START_LIMIT_S
            is_ending = False
            while process.exit_status(pid) is None and time.monotonic() < deadline:
                if is_done is not None and not is_ending and is_done(log.read_text()):
                    is_ending = True
                    process.send([pid], signal.SIGTERM)
                yield
            status = process.exit_status(pid)
        finally:
            process.kill(pid_file)
        if status is None and not is_ending:
            raise self._failed(f"{what} did not end within {START_LIMIT_S:.0f} s", log)
        if status != 0 and not is_ending:
            self._require_not_killed(pid, f"running {what}")
            raise self._failed(f"{what} failed", log)


def run(*parallel: Steps) -> None:
    """Run the steps of several services concurrently."""
    going = list(parallel)
    try:
        while going:
            for steps in list(going):
                try:
                    next(steps)
                except StopIteration:
                    going.remove(steps)
            if going:
                time.sleep(_POLL_S)
    finally:
        for steps in going:
            if hasattr(steps, "close"):
                steps.close()


def is_free(port: int) -> bool:
    """Whether nobody listens on a port of this machine."""
    with socket.socket() as probe:
        # Ignore connections that have ended but are still in TIME_WAIT.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
