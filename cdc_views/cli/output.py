"""Rows for people and for programs: a table on a terminal, `--json`, or `--csv`."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import click
from rich.console import Console
from rich.table import Table

Row = Mapping[str, Any]


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--json` and `--csv`, given to the command as `form`."""
    command = click.option("--json", "form", flag_value="json", default=None, help="One JSON object a line.")(command)
    return click.option("--csv", "form", flag_value="csv", help="Comma-separated values with a header.")(command)


def print_rows(rows: Sequence[Row], columns: Sequence[str], form: str | None) -> None:
    """Print rows in the wanted form."""
    if form == "json":
        for row in rows:
            click.echo(json.dumps({column: _json(row[column]) for column in columns}, ensure_ascii=False))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_text(row[column]) for column in columns] for row in rows)
    else:
        table = Table(*columns, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            table.add_row(*(_text(row[column]) for column in columns))
        Console(soft_wrap=not sys.stdout.isatty()).print(table)


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str | int | float | Decimal):
        return str(value)
    if isinstance(value, datetime | date | bytes):
        return str(_json(value))
    return json.dumps(_json(value), ensure_ascii=False)
