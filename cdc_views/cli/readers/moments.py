"""The options of commands that read one epoch: at which moment."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click

from cdc_views.serve.epochs.moment import DEFAULT_TIMEOUT_S, Moment
from cdc_views.serve.epochs.published import PublishedEpoch

WAIT_S: Final = 600.0


class Seconds(click.FloatRange):
    """A number of seconds, 0 or more."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse "nan", too, which no comparison finds too small or too large."""
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f'"{value}" is no number of seconds', param, ctx)
        return seconds


class ReadCommand(click.Command):
    """Takes `--wait` without a value, too: click would use the argument after it as the value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Replace `--wait`, and parse."""
        return super().parse_args(ctx, [f"--wait={WAIT_S}" if word == "--wait" else word for word in args])


def moment_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--at`, `--at-least`, `--max-age` and `--wait` to a ReadCommand, which gets them as a `moment`."""

    @wraps(command)
    def with_moment(
        *args: Any, at: str | None, at_least: str | None, max_age_s: float | None, wait_s: float | None, **others: Any
    ) -> Any:
        when = None if at is None else Moment.parse_at(at)
        moment = Moment(at=when, at_least=at_least, timeout_s=wait_s, max_age=max_age_s)
        return command(*args, moment=moment, **others)

    options = (
        click.option("--at", metavar="EPOCH|TIME|LSN", help="Read the last epoch up to there."),
        click.option(
            "--at-least",
            metavar="LSN",
            help=f"Wait until everything committed up to LSN can be read, for {DEFAULT_TIMEOUT_S:.0f} s or --wait.",
        ),
        click.option(
            "--max-age",
            "max_age_s",
            type=Seconds(),
            metavar="SECONDS",
            help="Fail if the source has gone on for more than SECONDS since.",
        ),
        click.option(
            "--wait",
            "wait_s",
            type=Seconds(),
            metavar="[=SECONDS]",
            help=f"Wait until there is an epoch to read, for at most SECONDS ({WAIT_S:.0f} if not given).",
        ),
    )
    for option in reversed(options):
        with_moment = option(with_moment)
    return with_moment


def show_epoch(epoch: PublishedEpoch) -> None:
    """Say on stderr which epoch was read, and what of it does not equal Postgres."""
    click.echo(f"epoch {epoch.number} at {epoch.position}, {epoch.age_s:.1f} s old", err=True)
    for name, status in epoch.unequal.items():
        click.echo(f'table "{name}" does not equal Postgres: it has {status} events', err=True)
