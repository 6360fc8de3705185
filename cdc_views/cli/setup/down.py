"""`cdc-views down`."""

from __future__ import annotations

import click

from cdc_views.demo.programs import engine
from cdc_views.host.locations import demo_folder, state_folder
from cdc_views.stack.local import LocalStack


@click.command()
@click.option("--purge", is_flag=True, help="Also delete the services' data, logs and ports.")
def down(purge: bool) -> None:
    """Stop the Postgres, Kafka and Connect that "cdc-views up" or the demo started.

    Also stops the engine that the demo has left running.

    Example: cdc-views down --purge
    """
    stack, runner = LocalStack(state_folder()), engine(demo_folder())
    programs = [("engine of the demo", runner.pid), *((service.name, service.pid) for service in stack.services)]
    running = [name for name, pid in programs if pid is not None]
    runner.stop()  # first, since without the services it would try again until its patience ends
    stack.down(purge=purge)
    click.echo(f"stopped: {', '.join(running)}" if running else "nothing was running")
    if purge:
        click.echo(f"deleted: the data in {stack.state}")
