"""The programs that the demo runs as processes, the engine and the workload, and their options."""

from __future__ import annotations

import json
import math
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from cdc_views.errors import NotRunning
from cdc_views.host.waiting import wait_until
from cdc_views.stack.services import process

STOP_LIMIT_S: Final = 20.0

DSN_VARIABLE: Final = "CDC_VIEWS_DEMO_DSN"

dsn_option = click.option(
    "--dsn", required=True, envvar=DSN_VARIABLE, show_envvar=True, help="Connection string of the database."
)


def _finite(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter(f'"{value}" is not a finite number')
    return value


def _number_option(name: str, default: float, text: str) -> Callable[[Any], Any]:
    numbers = click.FloatRange(min=0.1)
    return click.option(name, default=default, show_default=True, type=numbers, callback=_finite, help=text)


rate_option = _number_option("--rate", 400.0, "Row changes per second of the workload.")
seconds_option = _number_option("--seconds", 60.0, "How long the workload runs.")


class Program:
    """A process in its own session, with its output in a file. Its pid file identifies it later."""

    def __init__(
        self, name: str, folder: Path, arguments: list[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log_file = folder / f"{name}.log"
        self._folder = folder
        self._pid_file = process.PidFile(folder / f"{name}.pid")
        self._arguments = arguments
        self._environment = environment or {}

    @property
    def pid(self) -> int | None:
        """The pid of the running process; None if there is none."""
        return self._pid_file.read()

    def start(self) -> None:
        """Start it; its output is appended to its log."""
        command = [sys.executable, *self._arguments]
        process.spawn(command, self._pid_file, self.log_file, cwd=self._folder, environment=self._environment)

    def require_running(self) -> None:
        """Raise NotRunning with the end of its log if it has ended."""
        if self.pid is None:
            raise NotRunning(
                f"{self.name} has ended:\n{process.last_lines(self.log_file)}", hint=f'its log is "{self.log_file}"'
            )

    def stop(self) -> None:
        """Ask it to end, and kill it after a limit. Its children, such as a JVM, end with it or are killed."""
        pid = self.pid
        if pid is None:
            return
        everyone = process.family(pid)
        process.send([pid], signal.SIGTERM)
        wait_until(lambda: not any(process.start_mark(one) for one in everyone), STOP_LIMIT_S)
        self.kill()
        process.send([one for one in everyone if process.start_mark(one)], signal.SIGKILL)

    def kill(self) -> None:
        """SIGKILL it and its children, and wait until they have ended."""
        process.kill(self._pid_file)


def engine(project: Path, environment: Mapping[str, str] | None = None) -> Program:
    """`cdc-views run` for a project."""
    return Program("engine", project, ["-m", "cdc_views.cli.main", "-C", str(project), "run"], environment)


def workload(project: Path, dsn: str, rate: float, seconds: float, seed: int) -> Program:
    """The demo's transactions for some seconds. The DSN is in the environment, since everybody can read arguments."""
    options = ["--rate", str(rate), "--seconds", str(seconds), "--seed", str(seed)]
    return Program("workload", project, ["-m", "cdc_views.demo.workload", *options], {DSN_VARIABLE: dsn})


def committed(workload: Program) -> dict[str, Any]:
    """What the workload has committed: its last line."""
    last = workload.log_file.read_text().strip().rpartition("\n")[2]
    try:
        result = json.loads(last)
    except json.JSONDecodeError:
        raise NotRunning(f"the workload ended without a result:\n{process.last_lines(workload.log_file)}") from None
    assert isinstance(result, dict)
    return result
