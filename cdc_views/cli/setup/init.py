"""`cdc-views init`."""

from __future__ import annotations

from pathlib import Path

import click

from cdc_views.cli.main import Project
from cdc_views.config import FILE_NAME
from cdc_views.errors import BadConfig

SETTINGS = """\
# All settings: docs/settings.md. Write a secret as a reference: ${env:NAME} or ${file:PATH}.
stack: native            # use the services of "cdc-views up"; for your own services write none, and their addresses:
source:
  # dsn: ${env:CDC_VIEWS_DSN}
  tables:
    - public.accounts
# log:
#   bootstrap_servers: broker:9092
#   connect_url: http://connect:8083
"""

VIEW = """\
CREATE MATERIALIZED VIEW balances (holder, accounts, total) AS
SELECT holder, count(*), sum(balance)
FROM accounts
GROUP BY holder;
"""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.pass_obj
def init(project: Project, folder: Path) -> None:
    """Create a project folder with settings and a first view.

    Example: cdc-views init shop
    """
    folder = project.folder / folder
    settings, view = folder / FILE_NAME, folder / "views" / "balances.sql"
    try:
        for file in (settings, view):
            if file.exists():
                raise BadConfig(f'"{file}" exists already', hint="choose another folder")
        view.parent.mkdir(parents=True, exist_ok=True)
        view.write_text(VIEW)
        settings.write_text(SETTINGS)
    except OSError as error:
        raise BadConfig(
            f'"{error.filename}" cannot be created: {error.strerror}', hint="choose another folder"
        ) from None
    click.echo(f"created {settings} and {view}")
