"""`cdc-views serve`."""

from __future__ import annotations

import logging
from typing import Final

import click

from cdc_views.cli.log_lines import show_dated_lines
from cdc_views.cli.main import Project

_LOGGER: Final = logging.getLogger(__name__)


@click.command()
@click.option("--host", help="Listen at this address; any but loopback needs http.tokens.")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen at this port; 0 is any free one.")
@click.pass_obj
def serve(project: Project, host: str | None, port: int | None) -> None:
    """Serve a page, rows, queries and changes over HTTP, without an engine.

    Open its address in a browser. GET /docs describes the interface, and GET /openapi.json has it for programs.

    Example: cdc-views serve --port 8080
    """
    from cdc_views.serve.http.server import HttpServer  # here, since --help imports all commands, and FastAPI is slow

    show_dated_lines()
    given = {"host": host, "port": port}
    settings = project.http().model_copy(update={name: value for name, value in given.items() if value is not None})
    server = HttpServer(project.warehouse(), settings, project.settings)
    _LOGGER.info("serving at %s", server.url)
    server.run()
