"""Rebuilds under way or left: a file each, locked by the process that works on it (replay/unfinished.py).

Here is what everybody must know of them who removes files.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import orjson

FOLDER: Final = ".rebuilds"
SEPARATOR: Final = "-"  # between the path that a table's definition gives it and the id of the rebuild that made it


@dataclass(frozen=True)
class Unfinished:
    """A rebuild; `id` is the end of its shadows' paths, and what its swap is known by.

    `compared`: its report was given, so that only a swap goes on with it.
    """

    id: str
    names: tuple[str, ...]
    origin: str
    generation: str
    pid: int
    compared: bool = False


def read_rebuild(file: Path) -> Unfinished:
    """The rebuild of a file. Raises FileNotFoundError if it has ended since."""
    fields = orjson.loads(file.read_bytes())
    return Unfinished(**{**fields, "names": tuple(fields["names"])})


def rebuild_files(root: Path) -> list[Path]:
    """The files of all rebuilds of a warehouse."""
    return sorted((root / FOLDER).glob("*.json"))


def unfinished_rebuilds(root: Path) -> dict[Unfinished, datetime]:
    """Every rebuild that is under way or left, and since when."""
    found = {}
    for file in rebuild_files(root):
        with suppress(FileNotFoundError):  # it has ended since
            found[read_rebuild(file)] = _began(file)
    return found


def forget_left(root: Path, before: datetime) -> None:
    """Forget the rebuilds that no process works on, of before this time."""
    for file in rebuild_files(root):
        descriptor = locked(file)
        if descriptor is not None:
            if _began(file) <= before:
                file.unlink()
            os.close(descriptor)


def locked(file: Path) -> int | None:
    """The file's descriptor with the lock; None if another process has it, or has just ended with it."""
    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == file.stat().st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None


def _began(file: Path) -> datetime:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)
