"""`cdc-views up`."""

from __future__ import annotations

import click

from cdc_views.cli.output import tell
from cdc_views.host.locations import state_folder
from cdc_views.stack.local import LocalStack
from cdc_views.stack.services.ports import NAMES


@click.command()
@click.option(
    "--port", "ports", multiple=True, metavar="NAME=PORT", help=f"Use this port. NAME is one of {', '.join(NAMES)}."
)
@click.option("--fsync/--no-fsync", default=True, help="Whether the data of Postgres survive a crash of the machine.")
def up(ports: tuple[str, ...], fsync: bool) -> None:
    """Start Postgres, Kafka and Connect on this machine, without Docker.

    The first run downloads their files. Services that already run are left alone. Data, logs and ports are kept in
    $CDC_VIEWS_STATE.

    Example: cdc-views up --port postgres=15432
    """
    stack = LocalStack(state_folder(), dict(_port(text) for text in ports), durable=fsync)
    stack.up(tell)
    tell(f"logs and data: {stack.state}")


def _port(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if name not in NAMES or not number.isdecimal() or not 0 < int(number) < 65536:
        raise click.BadParameter(f'"{text}" is not NAME=PORT with a NAME of {", ".join(NAMES)}', param_hint="--port")
    return name, int(number)
