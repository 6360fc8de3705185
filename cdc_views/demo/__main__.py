"""`./scripts/demo`: run the whole system on this machine for about a minute, then check the result.

The last line of stdout says that every table and view equals Postgres. Only then is the exit status 0.
"""

from __future__ import annotations

import sys
import traceback
from contextlib import ExitStack

import click

from cdc_views.demo.programs import rate_option, seconds_option
from cdc_views.demo.show import Show
from cdc_views.demo.story import KILLS, Demo, DemoOptions
from cdc_views.errors import CdcViewsError
from cdc_views.host.locations import state_folder
from cdc_views.host.signals import interrupting

INTERRUPTED = 130


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--keep", is_flag=True, help="Leave everything running at the end.")
@click.option(
    "--kill-engine",
    "kills",
    type=click.IntRange(min=0),
    is_flag=False,
    flag_value=KILLS,
    default=0,
    metavar="[TIMES]",
    help=f"Kill the engine while it has an open intent, {KILLS} times if no number is given.",
)
@rate_option
@seconds_option
@click.option("--seed", default=1, show_default=True, help="Of data and workload.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(keep: bool, kills: int, rate: float, seconds: float, seed: int, debug: bool) -> None:
    """Start Postgres, Kafka and Connect, follow a real database for about a minute, and check the result."""
    options = DemoOptions(keep, kills, rate, seconds, seed)
    try:
        with interrupting(), ExitStack() as leftovers:
            Demo(state_folder(), options, Show(), leftovers).run()
    except CdcViewsError as error:
        if debug:
            traceback.print_exc()
        click.echo(f"{type(error).__name__}: {error}", err=True)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        click.echo("interrupted; everything that was started is stopped", err=True)
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
