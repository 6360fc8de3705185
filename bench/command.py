"""Command line parts that all benchmarks share: options, and the last line of the output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from bench.machine import describe
from bench.systems import BASELINES
from cdc_views.errors import CdcViewsError
from cdc_views.host.signals import interrupting

Command = TypeVar("Command", bound=Callable[..., Any])

INTERRUPTED: Final = 130


def stack_options(command: Command) -> Command:
    """Add `--state` and `--memory`; the command receives `state` and `memory`."""
    command = click.option(
        "--state", type=click.Path(path_type=Path), help="State folder of a stack to use. Default: start a new one."
    )(command)
    return click.option("--memory", default="2g", show_default=True, help="Heap of each Spark driver.")(command)


def views_option(command: Command) -> Command:
    """Add `--views`; the command receives `views`, "none" or "demo"."""
    return click.option(
        "--views", type=click.Choice(["none", "demo"]), default="none", show_default=True,
        help="With five views of the demo, the data are the demo's, too.",
    )(command)  # fmt: skip


def baseline_option(default: str, known: Collection[str] = tuple(BASELINES)) -> Callable[[Command], Command]:
    """Add `--baselines`; the command receives a list of names, all of them in `known`."""

    def names(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
        chosen = [name for name in value.split(",") if name]
        if unknown := set(chosen) - set(known):
            raise click.BadParameter(f'unknown baseline "{min(unknown)}", known are {", ".join(known)}')
        return chosen

    return click.option(
        "--baselines", default=default, show_default=True, callback=names,
        help=f"Which of {','.join(known)} to measure as well, comma-separated; may be empty.",
    )  # fmt: skip


def tell(text: str) -> None:
    """Print a line about the progress to stderr."""
    click.echo(f"bench: {text}", err=True)


def run(name: str, options: Mapping[str, Any], measure: Callable[[], Mapping[str, Any]]) -> None:
    """Measure, print the machine, and print everything as one JSON object in the last line.

    Exits with 1 if a table is not equal, and with the status of the error if one of ours is raised.
    """
    machine = describe()
    try:
        with interrupting():
            figures = measure()
    except CdcViewsError as error:
        click.echo(f"{type(error).__name__}: {error}", err=True)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    for fact, value in machine.items():
        click.echo(f"{fact}: {value}")
    click.echo(json.dumps({"bench": name, "options": options, **figures, "machine": machine}))
    if not all(value for figure, value in figures.items() if figure.endswith("equal")):
        sys.exit(1)
