"""The log of one Delta table as files: list, read and put entries of `_delta_log` on a local disk.

An entry is put if absent: written to a temporary file, then hard-linked to its name, which fails if
somebody else has that version, or had it: entries are removed once a checkpoint stands for them, and a version
in such a gap is none. Nothing is ever overwritten, rebased or retried here.
"""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from cdc_views.errors import TableUnavailable
from cdc_views.store.storage import durable
from cdc_views.store.storage.disk import touching, unusable

Action = Mapping[str, Any]

LOG_FOLDER: Final = "_delta_log"
ENGINE: Final = "cdc-views"
NO_TABLE: Final = -1

_ENTRY = re.compile(r"^(\d{20})\.(?:json|checkpoint\..*parquet)$")


class VersionTaken(Exception):
    """The wanted version exists already; callers turn it into their own error."""


def entry_file(table: Path, version: int) -> Path:
    """The file of one log entry."""
    return table / LOG_FOLDER / f"{version:020d}.json"


def newest_version(table: Path) -> int:
    """The newest version in the log, NO_TABLE if there is none. Raises WarehouseUnusable."""
    with touching(table):
        try:
            names = os.listdir(table / LOG_FOLDER)
        except FileNotFoundError:
            return NO_TABLE
    return max((int(match[1]) for name in names if (match := _ENTRY.match(name))), default=NO_TABLE)


def read_entry(table: Path, version: int) -> list[dict[str, Any]]:
    """The actions of one version. Raises TableUnavailable if its entry is gone, WarehouseUnusable."""
    with touching(table):
        try:
            lines = entry_file(table, version).read_bytes().splitlines()
        except FileNotFoundError:
            raise TableUnavailable(
                f'table "{table.name}": the log entry of version {version} is gone, newest is {newest_version(table)}'
            ) from None
    return [orjson.loads(line) for line in lines if line.strip()]


def commit_info(actions: Sequence[Action]) -> dict[str, Any]:
    """The commitInfo of an entry, empty if its writer gave none."""
    return next((dict(action["commitInfo"]) for action in actions if "commitInfo" in action), {})


def put_entry(table: Path, version: int, actions: Sequence[Action]) -> None:
    """Put a version that must not exist yet, durably (store/storage/durable.py).

    Raises VersionTaken, WarehouseUnusable, DiskFull.
    """
    log = table / LOG_FOLDER
    # Readers of the log ignore names that begin with a dot.
    draft = log / f".{uuid.uuid4()}.tmp"
    with touching(table):
        if version == 0:
            make_folder(log)  # of a table that is there it is never made: it was removed
        try:
            durable.write(draft, b"".join(orjson.dumps(action) + b"\n" for action in actions))
            _refuse_gap(table, version)
            os.link(draft, entry_file(table, version))
            durable.sync(log)
            # Others may have gone on, and removed their entries, between the question and the answer. Then this one
            # stays for the next clean-up: nobody reads it, since every reader begins at a checkpoint above it.
            _refuse_gap(table, version)
        except FileExistsError:
            raise VersionTaken(version) from None
        finally:
            draft.unlink(missing_ok=True)


def _refuse_gap(table: Path, version: int) -> None:
    """Raise VersionTaken if a version is older than what the log begins with.

    The newest entry is never removed, so if the one before a new one is gone, others have gone on from there. Raises
    WarehouseUnusable if they have not: then somebody has removed the log.
    """
    if version > 0 and not entry_file(table, version - 1).exists():
        if newest_version(table) > version:
            raise VersionTaken(version)
        raise unusable(errno.ENOENT, entry_file(table, version - 1))


def make_folder(folder: Path) -> None:
    """Make a folder with those above it, their names durable too."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    durable.sync(folder.parent)
