"""`cdc-views down`."""

from __future__ import annotations

import click

from cdc_views.demo.programs import engine
from cdc_views.host.locations import demo_folder, state_folder
from cdc_views.stack.local import LocalStack


@click.command()
@click.option("--purge", is_flag=True, help="Also delete the services' data, logs and ports.")
@click.pass_context
def down(ctx: click.Context, purge: bool) -> None:
    """Stop the Postgres, Kafka and Connect that "cdc-views up" or the demo started.

    Also stops the engine that the demo has left running. The exit status is 1 if --purge could not delete something.

    Example: cdc-views down --purge
    """
    stack, runner = LocalStack(state_folder()), engine(demo_folder())
    programs = [("engine of the demo", runner.pid), *((service.name, service.pid) for service in stack.services)]
    running = [name for name, pid in programs if pid is not None]
    runner.stop()  # first, since without the services it would try again until its patience ends
    is_there = stack.state.exists()
    left = stack.down(purge=purge)
    click.echo(f"stopped: {', '.join(running)}" if running else "nothing was running")
    for what in left:
        click.echo(f"not deleted: {what}", err=True)
    if purge and not left:
        click.echo(f"deleted: the data in {stack.state}" if is_there else f"nothing to delete: no folder {stack.state}")
    ctx.exit(1 if left else 0)
