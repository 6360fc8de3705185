"""Unfinished rebuilds: a file for each, locked by the process that works on it (replay/unfinished.py).

This is the part that anything that removes files must know about them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import orjson

from cdc_views.host.os_lock import is_locked, try_lock
from cdc_views.host.waiting import wait_until

FOLDER: Final = ".rebuilds"
# Asking whether a rebuild is running holds its lock for a moment.
_ASKED_S: Final = 0.05


@dataclass(frozen=True)
class Unfinished:
    """A rebuild that is running or was interrupted.

    `id` is the end of the paths of its shadow tables, and identifies its swap. `compared`: its report was given, so
    only a swap can continue it. `from_epoch` is the epoch whose mirrors it begins with, if there is one.
    """

    id: str
    names: tuple[str, ...]
    origin: str
    generation: str
    pid: int
    compared: bool = False
    from_epoch: int | None = None


def read_rebuild(file: Path) -> Unfinished | None:
    """The rebuild of a file; None if it has ended meanwhile, or the file cannot be read as one."""
    try:
        fields = orjson.loads(file.read_bytes())
        return Unfinished(**{**fields, "names": tuple(fields["names"])})
    except (FileNotFoundError, PermissionError, ValueError, LookupError, TypeError):
        return None


def rebuild_files(root: Path) -> list[Path]:
    """The files of all rebuilds of a warehouse. The name of each is the rebuild's id."""
    return sorted((root / FOLDER).glob("*.json"))


def began_by_file(root: Path) -> dict[Path, datetime]:
    """When each unfinished rebuild began, by its file."""
    found = {}
    for file in rebuild_files(root):
        with suppress(FileNotFoundError):  # it has ended meanwhile
            found[file] = _began(file)
    return found


def is_running(file: Path) -> bool:
    """Whether a process works on the rebuild of this file."""
    with suppress(FileNotFoundError, PermissionError), file.open("rb") as probe:
        return is_locked(probe)
    return False


def forget_left(root: Path, before: datetime) -> None:
    """Forget interrupted rebuilds that began before this time, except those of another user."""
    for file in rebuild_files(root):
        with suppress(PermissionError):
            descriptor = locked(file)
            if descriptor is None:
                continue
            try:
                if _began(file) <= before:
                    file.unlink()
            finally:
                os.close(descriptor)


def locked(file: Path) -> int | None:
    """The file's descriptor with the lock; None if another process has it, or has just ended with it."""
    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return None
    is_held = wait_until(lambda: try_lock(descriptor), _ASKED_S, _ASKED_S / 10)
    with suppress(FileNotFoundError):
        if is_held and os.fstat(descriptor).st_ino == file.stat().st_ino:
            return descriptor
    os.close(descriptor)
    return None


def _began(file: Path) -> datetime:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)
