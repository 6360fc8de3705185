"""Who holds the lock of a warehouse. It needs no JVM, so readers can ask."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Final

from cdc_views.store.storage import touching

LOCK_FOLDER: Final = ".lock"


def holder(root: Path) -> int | None:
    """The pid of the engine that holds the warehouse; None if none does. Raises WarehouseUnusable."""
    with touching(root):
        return _holding_pid(root / LOCK_FOLDER / "engine")


def _holding_pid(file: Path) -> int | None:
    if not file.exists():
        return None
    with file.open("rb") as probe:
        try:
            fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(file.read_text().strip() or 0) or None
    return None
