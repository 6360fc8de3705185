"""Describe an unexpected error without row values: its class, and where our code raised it.

The message itself is omitted: those of Arrow, DuckDB and others quote the values that they failed on.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

_OURS: Final = Path(__file__).parents[1]


def described(error: BaseException) -> str:
    """Return class and place, as in `pyarrow.ArrowInvalid in store/warehouse.py, line 12`."""
    kind = type(error)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.split('.')[0]}.{kind.__name__}"
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    ours = [(file.relative_to(_OURS), line) for file, line in frames if file.is_relative_to(_OURS)]
    return f"{name} in {ours[-1][0]}, line {ours[-1][1]}" if ours else name
