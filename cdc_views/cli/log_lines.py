"""The format of what the logger `cdc_views` writes to stderr: `run` adds time and level, other commands do not."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import orjson


class _Stderr(logging.Handler):
    """Writes to the current `sys.stderr`, which a progress bar replaces while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")
        sys.stderr.flush()


class _JsonLine(logging.Formatter):
    """Formats a record as a JSON object on one line: `time`, `level`, `message`, and the record's `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        line = {"time": time, "level": record.levelname, "message": record.getMessage()}
        return orjson.dumps(line | getattr(record, "fields", {})).decode()


def show_lines(formatter: logging.Formatter | None = None) -> None:
    """Print log records to stderr with this formatter; by default, only their messages."""
    handler, logger = _Stderr(), logging.getLogger("cdc_views")
    handler.setFormatter(formatter)
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)


def show_dated_lines() -> None:
    """Print log records with time and level: as text on a terminal, else as JSON."""
    is_terminal = sys.stderr.isatty()
    show_lines(logging.Formatter("%(asctime)s %(levelname)s %(message)s") if is_terminal else _JsonLine())
