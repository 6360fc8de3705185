"""The question that a command asks before it changes something that is hard to undo."""

from __future__ import annotations

import sys

import click

from cdc_views.errors import NotConfirmed


def has_terminal() -> bool:
    """Whether there is somebody to answer."""
    return sys.stdin.isatty()


def require_consent(question: str, *, yes: bool) -> None:
    """Ask at the terminal, unless `yes` is set.

    Raises NotConfirmed if there is no terminal to ask at, and click.Abort if the answer is no.
    """
    if yes:
        return
    if not has_terminal():
        raise NotConfirmed(
            f"not confirmed, since there is no terminal to ask at: {question}",
            hint="confirm with --yes; nothing was changed",
        )
    click.confirm(question, abort=True, err=True)
