"""`cdc-views down`."""

from __future__ import annotations

import click

from cdc_views.locations import state_folder
from cdc_views.stack.local import LocalStack


@click.command()
@click.option("--purge", is_flag=True, help="Delete the data of the services, their logs and ports too.")
def down(purge: bool) -> None:
    """Stop Postgres, Kafka and Connect, whoever started them.

    Example: cdc-views down --purge
    """
    stack = LocalStack(state_folder())
    running = [service.name for service in stack.services if service.pid is not None]
    stack.down(purge=purge)
    click.echo(f"stopped: {', '.join(running)}" if running else "nothing was running")
    if purge:
        click.echo(f"deleted: the data in {stack.state}")
