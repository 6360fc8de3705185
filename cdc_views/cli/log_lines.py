"""How lines of the logger `cdc_views` look on stderr: of `run` with time and level, of other commands as they are."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import orjson


class _Stderr(logging.Handler):
    """Writes to what `sys.stderr` is now: a progress bar puts itself in its place."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")
        sys.stderr.flush()


class _JsonLine(logging.Formatter):
    """One JSON object a line: `time`, `level`, `message`, and the `fields` of the record."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        line = {"time": time, "level": record.levelname, "message": record.getMessage()}
        return orjson.dumps(line | getattr(record, "fields", {})).decode()


def show_lines(formatter: logging.Formatter | None = None) -> None:
    """Show what is logged, in place of how it was shown before."""
    handler, logger = _Stderr(), logging.getLogger("cdc_views")
    handler.setFormatter(formatter)
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)


def show_dated_lines() -> None:
    """Show what is logged with its time and level: as JSON where stderr is not a terminal."""
    is_terminal = sys.stderr.isatty()
    show_lines(logging.Formatter("%(asctime)s %(levelname)s %(message)s") if is_terminal else _JsonLine())
