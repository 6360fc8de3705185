"""What the package logs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

LEVELS = ("INFO", "WARNING", "ERROR")


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def messages(stderr: str) -> list[str]:
    """Those of `run`, whose other lines are errors."""
    lines = [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]
    assert all(line["time"].endswith("+00:00") and line["level"] in LEVELS for line in lines), stderr
    return [line["message"] for line in lines]


@contextmanager
def logged() -> Iterator[list[str]]:
    """The messages that are logged in the block, at INFO and above."""
    kept, logger = _Kept(), logging.getLogger("cdc_views")
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(kept)
    try:
        yield kept.messages
    finally:
        logger.removeHandler(kept)
        logger.setLevel(level)
