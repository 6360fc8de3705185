"""The shell of `cdc-views sql`: reads SQL from a terminal, and runs it when its last semicolon is there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import click

from cdc_views.errors import BadQuery
from cdc_views.host.signals import signal_name

QUIT: Final = frozenset({r"\q", "quit", "exit"})
"""Lines that end the shell, as in psql."""

# A comment or blanks, what is quoted, where a quotation begins and does not end, a word, any other character.
_PIECE: Final = re.compile(
    r"""
      (?P<blank> --[^\n]* | /\*.*?\*/ | \s+ )
    | [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$
    | (?P<begun> /\* | [eE]?' | " | \$(?:[A-Za-z_]\w*)?\$ )
    | \w[\w$]* | .
    """,
    re.DOTALL | re.VERBOSE,
)


def is_whole(text: str) -> bool:
    """Whether a text of SQL ends with a semicolon that is in no quotation and no comment."""
    last = ""
    for found in _PIECE.finditer(text):
        if found["begun"]:
            return False
        if not found["blank"]:
            last = found[0]
    return last == ";"


def shell(prompt: Callable[[bool], str], execute: Callable[[str], None], read: Callable[[str], str]) -> None:
    """Read lines and execute statements, until the input ends or a line of QUIT.

    `prompt` is given whether a statement has begun. An error of a statement is printed, and the shell goes on. Ctrl-C
    drops what was typed, or cancels the statement that runs.
    """
    written = ""
    while True:
        try:
            line = read(prompt(bool(written)))
            if not written and line.strip() in QUIT:
                return
            written += f"{line}\n" if written or line.strip() else ""
            if is_whole(written):
                statements, written = written, ""
                execute(statements)
        except EOFError:
            click.echo(err=True)
            return
        except BadQuery as error:
            click.echo(f"{type(error).__name__}: {error}", err=True)
        except KeyboardInterrupt as interrupt:
            if signal_name(interrupt) != "SIGINT":
                raise
            written = ""
            click.echo(err=True)
