"""`cdc-views query`."""

from __future__ import annotations

from typing import Final

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.serve.published import PublishedEpoch
from cdc_views.serve.query import query as answer

WAIT_S: Final = 600.0


class _Query(click.Command):
    """Takes `--wait` without a value, too: click would use the SQL after it as the value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f"--wait={WAIT_S}" if word == "--wait" else word for word in args])


@click.command(cls=_Query)
@click.argument("sql")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    metavar="[=SECONDS]",
    default=0.0,
    help=f"Wait until the first epoch is published, for at most SECONDS ({WAIT_S:.0f} if not given).",
)
@output_options
@click.pass_obj
def query(project: Project, sql: str, wait_s: float, form: str | None) -> None:
    """Run a query (DuckDB SQL) on the published epoch; works while the engine is down.

    Example: cdc-views query "SELECT count(*) FROM public.orders"
    """
    epoch = PublishedEpoch.latest(project.warehouse(), wait_s)
    result = answer(epoch, sql)
    print_rows(result.to_pylist(), result.column_names, form)
    click.echo(f"epoch {epoch.record.epoch} at {epoch.position}, {epoch.age_s:.1f} s old", err=True)
    for name, status in epoch.unequal.items():
        click.echo(f'table "{name}" does not equal Postgres: it has {status} events', err=True)
