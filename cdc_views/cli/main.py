"""The group of commands, and what all commands share: the project, errors, signals and exit statuses."""

from __future__ import annotations

import importlib
import io
import os
import sys
import traceback
from pathlib import Path
from typing import Any, Final

import click

from cdc_views import __version__
from cdc_views.cli.log_lines import show_lines
from cdc_views.config import HttpSettings, Settings, load_http, load_settings, load_warehouse
from cdc_views.errors import CdcViewsError
from cdc_views.errors.unexpected import described
from cdc_views.host.locations import project_folder
from cdc_views.host.signals import interrupting, signal_name

# Modules are imported when their command runs: pyspark alone takes most of a second.
COMMANDS: Final = {
    "init": "setup",
    "up": "setup",
    "down": "setup",
    "sql": "setup",
    "check": "setup",
    "run": "operate",
    "status": "readers",
    "epochs": "readers",
    "query": "readers",
    "get": "readers",
    "timeline": "readers",
    "search": "readers",
    "changes": "readers",
    "explain": "readers",
    "serve": "readers",
    "rebuild": "operate",
    "rollback": "operate",
    "quarantine": "operate",
    "reset": "operate",
    "destroy": "setup",
}
"""Each command, in the order in which a newcomer meets them, and the folder of its module."""

INTERRUPTED: Final = 130


class Commands(click.Group):
    """Loads each command from the module of its name, and prints errors in the style of Postgres."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all commands, in the order in which a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command of `cdc_views.cli.<folder>.<name>`."""
        if name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(f"cdc_views.cli.{COMMANDS[name]}.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. An error of ours ends it with the error's message, hint and exit status.

        SIGTERM and SIGHUP interrupt a command as Ctrl-C does.
        """
        try:
            with interrupting():
                return super().invoke(ctx)
        except CdcViewsError as error:
            self._fail(ctx, error)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise  # click handles these
        except Exception as error:
            if isinstance(error, OSError):
                self._fail_at_file(ctx, error)
            if ctx.params["debug"]:
                traceback.print_exc()
            click.echo(f"unexpected error: {described(error)}", err=True)
            click.echo("hint: a bug in cdc_views; run the command with --debug and report the traceback", err=True)
            ctx.exit(CdcViewsError.exit_status)
        except KeyboardInterrupt as interrupt:
            click.echo(f"interrupted by {signal_name(interrupt)}; exit status {INTERRUPTED}", err=True)
            ctx.exit(INTERRUPTED)

    def _fail_at_file(self, ctx: click.Context, error: OSError) -> None:
        """End the command if the operating system refuses a file where no command expects it.

        A file of the warehouse is WarehouseUnusable. Any other is named as it is: output, the state folder, a program.
        """
        # Imported here because it is slow to import, unlike everything else that each command needs.
        unusable_by = importlib.import_module("cdc_views.store.storage").unusable_by
        warehouse, named = _warehouse(ctx.obj), error.filename or str(error)  # Arrow has the file in its message
        if (unusable := unusable_by(error, warehouse or Path())) is None:
            return
        if warehouse is not None and str(warehouse) in os.fsdecode(named):
            self._fail(ctx, unusable)
        if error.strerror is None:
            return
        if ctx.params["debug"]:
            traceback.print_exc()
        where = f'"{os.fsdecode(error.filename)}": ' if error.filename else ""
        click.echo(f"{type(error).__name__}: {where}{error.strerror}", err=True)
        ctx.exit(CdcViewsError.exit_status)

    @staticmethod
    def _fail(ctx: click.Context, error: CdcViewsError) -> None:
        if ctx.params["debug"]:
            traceback.print_exc()
        click.echo(f"{type(error).__name__}: {error}", err=True)
        ctx.exit(error.exit_status)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "-C",
    "--project",
    type=click.Path(path_type=Path),
    default=Path(),
    callback=lambda context, parameter, value: project_folder(value),
    help='Folder of the project; "demo" is the project of ./scripts/demo.',
)
@click.option("--set", "overrides", multiple=True, metavar="NAME=VALUE", help="Override a setting: source.slot=mine.")
@click.option("--debug", is_flag=True, envvar="CDC_VIEWS_DEBUG", help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="cdc-views")
@click.pass_context
def main(ctx: click.Context, project: Path, overrides: tuple[str, ...], debug: bool) -> None:
    """Keep Delta tables equal to a SELECT over Postgres, at a known commit.

    Example: cdc-views init shop && cd shop && cdc-views up && cdc-views run
    """
    _prepare_streams()
    show_lines()
    values = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals:
            raise click.BadParameter(f'"{override}" is not NAME=VALUE', param_hint="--set")
        values[name] = value
    ctx.obj = Project(project, values)


def _prepare_streams() -> None:
    """Open the standard streams that are closed, and write what the encoding of stdout lacks as an escape."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # It gets the number of the closed one, which a file of the warehouse would get else.
            stream = open(os.devnull, mode)  # noqa: SIM115 (for as long as the process runs)
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


class Project:
    """The folder that a command works on, and the settings that its flags override."""

    def __init__(self, folder: Path, overrides: dict[str, str]) -> None:
        self.folder = folder
        self.overrides = overrides

    def settings(self) -> Settings:
        """Read and validate the settings. Raises BadConfig, NotRunning."""
        return load_settings(self.folder, self.overrides)

    def warehouse(self) -> Path:
        """Return the warehouse. A reader needs no other setting. Raises BadConfig."""
        return load_warehouse(self.folder, self.overrides)

    def http(self) -> HttpSettings:
        """Return the settings of `cdc-views serve`. Raises BadConfig."""
        return load_http(self.folder, self.overrides)


def _warehouse(project: Project | None) -> Path | None:
    try:
        return None if project is None else project.warehouse()
    except (CdcViewsError, OSError):
        return None


if __name__ == "__main__":
    sys.exit(main())
