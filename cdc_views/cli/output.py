"""Prints rows: as a table for people, or with `--json` or `--csv` for programs; and lines about steps of work."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from cdc_views.serve.values.json_value import json_value

Row = Mapping[str, Any]

_NO_EDGE: Final = 1_000_000
_QUOTED: Final = re.compile(r'[,"\r\n]')
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # but tab and line feed


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--json` and `--csv`, which the command gets as `form`."""
    command = click.option("--json", "form", flag_value="json", default=None, help="Print one JSON object per line.")(
        command
    )
    return click.option("--csv", "form", flag_value="csv", help="Print comma-separated values with a header.")(command)


def print_rows(rows: Sequence[Row], columns: Sequence[str], form: str | None) -> None:
    """Print rows as a table, or as `form` says."""
    if form == "json":
        for row in rows:
            click.echo(json.dumps({column: json_value(row[column]) for column in columns}, ensure_ascii=False))
    elif form == "csv":
        for line in (columns, *([row[column] for column in columns] for row in rows)):
            sys.stdout.write(",".join(map(_field, line)) + "\n")
    else:
        # Values are not markup. A pipe has no width, so that nothing is cut off.
        width = None if sys.stdout.isatty() else _NO_EDGE
        Console(width=width, markup=False, emoji=False).print(table_of(rows, columns))


def tell(line: str) -> None:
    """Print a line about a step that is done. The work goes on if nobody can read it, as in `destroy | head -1`."""
    try:
        click.echo(line)
    except OSError:
        # The line stays in the buffer, and would fail again at exit.
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def table_of(rows: Sequence[Row], columns: Sequence[str]) -> Table:
    """Return a table for people, with control characters escaped: a value must not move the cursor.

    Its cells are not markup: the console must not take them for that.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(_escaped(column), overflow="fold")
    for row in rows:
        table.add_row(*(_escaped(_text(row[column])) for column in columns))
    return table


def _field(value: Any) -> str:
    """A value in CSV as of Postgres: nothing for NULL, and an empty text in quotes, which Python 3.11 cannot write."""
    if value is None:
        return ""
    text = _text(value)
    return '"{}"'.format(text.replace('"', '""')) if text == "" or _QUOTED.search(text) else text


def _escaped(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _text(value: Any) -> str:
    if value is None:
        return ""
    plain = json_value(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
