"""The log of one Delta table: list, read and put the entries of `_delta_log`.

An entry is put if absent: this fails if another writer has that version, or had it. Entries are removed once a
checkpoint replaces them, so a version below the oldest entry is taken too. Nothing is ever overwritten, rebased or
retried here.
"""

from __future__ import annotations

import errno
import math
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson

from cdc_views.errors import TableUnavailable
from cdc_views.store.storage import durable
from cdc_views.store.storage.disk import touching, unusable
from cdc_views.store.storage.port import STORAGE

Action: TypeAlias = Mapping[str, Any]
Add: TypeAlias = dict[str, Any]

LOG_FOLDER: Final = "_delta_log"
ENGINE: Final = "cdc-views"
NO_TABLE: Final = -1
# Of data files, and of log entries, whose paths are kept, in 10 MB each. To make a path, and the hash by which caches
# find it, takes as long as to look at the file.
_MOST_FILES: Final = 20_000

_CHECKPOINT: Final = re.compile(r"^(\d{20})\.checkpoint\.parquet$")
_ENTRY: Final = re.compile(r"^(\d{20})\.(?:json|checkpoint\..*parquet)$")


class VersionTaken(Exception):
    """The wanted version exists already. Callers translate it to their own error."""


@lru_cache(_MOST_FILES)
def entry_file(table: Path, version: int) -> Path:
    """The file of a log entry."""
    return table / LOG_FOLDER / f"{version:020d}.json"


def entry_identity(table: Path, version: int) -> tuple[int, int] | None:
    """What tells a log entry from one of the same version in the log of another table that took its place.

    None if the entry is not there.
    """
    try:
        found = entry_file(table, version).stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


@lru_cache(_MOST_FILES)
def data_file(table: Path, path: str) -> Path:
    """The file that a path in the log refers to; the log has it URL-encoded."""
    return table / urllib.parse.unquote(path)


def newest_version(table: Path) -> int:
    """The newest version in the log, NO_TABLE if there is none. Raises WarehouseUnusable."""
    with touching(table):
        try:
            names = STORAGE.list(table / LOG_FOLDER)
        except FileNotFoundError:
            return NO_TABLE
    return max((int(match[1]) for name in names if (match := _ENTRY.match(name))), default=NO_TABLE)


def read_entry(table: Path, version: int) -> list[dict[str, Any]]:
    """The actions of one version. Raises TableUnavailable if its entry is gone, WarehouseUnusable."""
    with touching(table):
        try:
            lines = STORAGE.read(entry_file(table, version)).splitlines()
        except FileNotFoundError:
            raise TableUnavailable(
                f'table "{table.name}": the log entry of version {version} is gone, newest is {newest_version(table)}'
            ) from None
    return [orjson.loads(line) for line in lines if line.strip()]


def commit_info(actions: Sequence[Action]) -> dict[str, Any]:
    """The commitInfo of an entry; empty if its writer gave none."""
    return next((dict(action["commitInfo"]) for action in actions if "commitInfo" in action), {})


def has_entry(table: Path, version: int) -> bool:
    """Whether the log still has the entry of a version."""
    return STORAGE.exists(entry_file(table, version))


def put_entry(table: Path, version: int, actions: Sequence[Action]) -> None:
    """Put a version that must not exist yet, durably (store/storage/durable.py).

    Raises VersionTaken, WarehouseUnusable, DiskFull.
    """
    with touching(table):
        if version == 0:
            make_folder(table / LOG_FOLDER)  # only then: the folder of an existing table was removed by somebody
        _refuse_gap(table, version)
        try:
            content = b"".join(orjson.dumps(action) + b"\n" for action in actions)
            STORAGE.put_if_absent(entry_file(table, version), content)
        except FileExistsError:
            raise VersionTaken(version) from None
        # Since the first check others may have gone on and removed their entries. Then this one stays until the next
        # clean-up. Nobody reads it, since every reader begins at a checkpoint above it.
        _refuse_gap(table, version)


def _refuse_gap(table: Path, version: int) -> None:
    """Raise VersionTaken if the log begins above a version.

    The newest entry is never removed, so if the entry before a new one is gone, others have gone on from there. If
    they have not, somebody has removed the log: raises WarehouseUnusable.
    """
    if version > 0 and not has_entry(table, version - 1):
        if newest_version(table) > version:
            raise VersionTaken(version)
        raise unusable(errno.ENOENT, entry_file(table, version - 1))


def checkpoint_file(table: Path, version: int) -> Path:
    """The file of a checkpoint of one file."""
    return table / LOG_FOLDER / f"{version:020d}.checkpoint.parquet"


def checkpoints(table: Path, at_most: float = math.inf) -> list[int]:
    """The versions up to `at_most` with a checkpoint of one file, newest first; the file may be incomplete."""
    found = (int(match[1]) for name in STORAGE.list(table / LOG_FOLDER) if (match := _CHECKPOINT.match(name)))
    return sorted((version for version in found if version <= at_most), reverse=True)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and fsync their names."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    durable.sync(folder.parent)
