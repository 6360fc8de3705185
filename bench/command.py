"""What the programs share on the command line: options, and the last line of the output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from bench.machine import describe
from bench.systems import BASELINES
from cdc_views.errors import CdcViewsError
from cdc_views.stack.signals import interrupting

Command = TypeVar("Command", bound=Callable[..., Any])

INTERRUPTED: Final = 130


def stack_options(command: Command) -> Command:
    """Add `--state` and `--memory`, given as `state` and `memory`."""
    command = click.option(
        "--state", type=click.Path(path_type=Path), help="State folder of a stack to use; by default one of its own."
    )(command)
    return click.option("--memory", default="2g", show_default=True, help="Heap of each Spark driver.")(command)


def baseline_option(default: str) -> Callable[[Command], Command]:
    """Add `--baselines`, given as a list of names."""
    return click.option(
        "--baselines", default=default, show_default=True, callback=_names,
        help=f"Which of {','.join(BASELINES)} to measure beside, comma-separated; may be empty.",
    )  # fmt: skip


def _names(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    names = [name for name in value.split(",") if name]
    if unknown := set(names) - BASELINES.keys():
        raise click.BadParameter(f'unknown baseline "{min(unknown)}", known are {", ".join(BASELINES)}')
    return names


def tell(text: str) -> None:
    """A line on what is going on, on stderr."""
    click.echo(f"bench: {text}", err=True)


def run(name: str, options: Mapping[str, Any], measure: Callable[[], Mapping[str, Any]]) -> None:
    """Measure, and print the machine and then, as the last line, everything as one JSON object.

    Exits with 1 if something is not equal, and with the status of an error of ours.
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
