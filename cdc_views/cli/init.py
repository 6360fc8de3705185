"""`cdc-views init`."""

from __future__ import annotations

from pathlib import Path

import click

from cdc_views.config import FILE_NAME
from cdc_views.errors import BadConfig

SETTINGS = """\
# Every setting: docs/settings.md. A secret is a reference: ${env:NAME} or ${file:PATH}.
stack: native            # addresses come from "cdc-views up"; for your own services say none and give them:
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
def init(folder: Path) -> None:
    """Make a project folder: settings and a first view.

    Example: cdc-views init shop
    """
    if (folder / FILE_NAME).exists():
        raise BadConfig(f'"{folder / FILE_NAME}" is there already', hint="choose another folder")
    (folder / "views").mkdir(parents=True, exist_ok=True)
    (folder / FILE_NAME).write_text(SETTINGS)
    (folder / "views" / "balances.sql").write_text(VIEW)
    click.echo(f"made {folder / FILE_NAME} and {folder / 'views' / 'balances.sql'}")
