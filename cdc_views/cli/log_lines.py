"""The format of what the logger `cdc_views` writes to stderr: `run` adds time and level, other commands do not."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime

import orjson

from cdc_views.errors.unexpected import described


class _Stderr(logging.Handler):
    """Writes to the current `sys.stderr`, which a progress bar replaces while it is shown.

    A line that cannot be written is lost: its error would pass for one of the block that logs, as DiskFull of a table.
    """

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()


class _JsonLine(logging.Formatter):
    """Formats a record as a JSON object on one line: `time`, `level`, `message`, `cause`, and the record's `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat()
        line = {
            "time": time,
            "level": record.levelname,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["cause"] = described(record.exc_info[1])
        try:
            return orjson.dumps(line).decode()
        except TypeError:  # a path that is not UTF-8
            return json.dumps(line, default=str)


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
