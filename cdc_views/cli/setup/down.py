"""`cdc-views down`."""

from __future__ import annotations

import click

from cdc_views.host.locations import state_folder
from cdc_views.stack.local import LocalStack


@click.command()
@click.option("--purge", is_flag=True, help="Also delete the services' data, logs and ports.")
def down(purge: bool) -> None:
    """Stop the Postgres, Kafka and Connect that "cdc-views up" or the demo started.

    Example: cdc-views down --purge
    """
    stack = LocalStack(state_folder())
    running = [service.name for service in stack.services if service.pid is not None]
    stack.down(purge=purge)
    click.echo(f"stopped: {', '.join(running)}" if running else "nothing was running")
    if purge:
        click.echo(f"deleted: the data in {stack.state}")
