"""Who holds the lock of a warehouse. It needs no JVM, so readers can ask."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cdc_views.host.os_lock import is_locked
from cdc_views.store.storage import touching

LOCK_FOLDER: Final = ".lock"
ENGINE: Final = "engine"
RUN: Final = "run"


def holder(root: Path, name: str = ENGINE) -> int | None:
    """The pid of the process that holds a lock of the warehouse; None if none does. It is 0 until it is written.

    Raises WarehouseUnusable.
    """
    with touching(root):
        return _holding_pid(root / LOCK_FOLDER / name)


def held_since(root: Path, name: str = ENGINE) -> datetime | None:
    """When the process that last held a lock of the warehouse took it; None if none did. Raises WarehouseUnusable."""
    with touching(root):
        file = root / LOCK_FOLDER / name  # its pid is written once
        return datetime.fromtimestamp(file.stat().st_mtime, UTC) if file.exists() else None


def _holding_pid(file: Path) -> int | None:
    if not file.exists():
        return None
    with file.open("rb") as probe:
        return int(file.read_text().strip() or 0) if is_locked(probe) else None
