"""The progress of the demo, on stderr. Only results go to stdout."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console


class Show:
    """Numbered steps, each with its duration."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._step = 0

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """A step of the demo."""
        self._step += 1
        self._console.print(f"[bold]{self._step}. {title}[/bold]")
        began = time.monotonic()
        yield
        self._console.print(f"   [dim]{time.monotonic() - began:.1f} s[/dim]")

    def say(self, text: str) -> None:
        """A line within a step."""
        self._console.print(f"   {text}", markup=False)

    def result(self, text: str) -> None:
        """A line of the result."""
        click.echo(text)
