"""Vacuum: removes data files that no retained version needs, and the folders of retired tables.

A crash leaves the same kind of garbage, a data file that no version names, and so do failed attempts of Spark's tasks.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from cdc_views import faults
from cdc_views.store.delta_log.deletion_vectors import file_of
from cdc_views.store.delta_log.entries import LOG_FOLDER, data_file

_TRASH: Final = ".removed"
_DATA: Final = (".parquet", ".bin")

_LOGGER: Final = logging.getLogger(__name__)


def files_of(table: Path, actions: Iterable[Mapping[str, Any]]) -> set[Path]:
    """The data files and deletion vector files that `add` or `remove` actions name."""
    found = set()
    for action in actions:
        found.add(data_file(table, action["path"]))
        if (vector := action.get("deletionVector")) and vector["storageType"] == "u":
            found.add(file_of(table, vector))
    return found


def sweep(table: Path, needed: Collection[Path], before: float) -> int:
    """Remove the table's files that are not `needed` and were written before a time; returns how many.

    A younger file may belong to a version that is being made.
    """
    removed = 0
    for file in table.iterdir():
        name = _checked_by(file.name)
        if table / name in needed or not name.endswith(_DATA) or not _is_older(file, before):
            continue
        file.unlink(missing_ok=True)
        removed += 1
        faults.point("upkeep.after_first_removed_file")
    for draft in (table / LOG_FOLDER).glob(".*.tmp"):
        if _is_older(draft, before):
            draft.unlink(missing_ok=True)
    for draft in table.glob(".*.tmp"):
        if _is_older(draft, before):
            shutil.rmtree(draft, ignore_errors=True)
    return removed


def remove_tables(root: Path, paths: Iterable[str], require_writer: Callable[[], None]) -> int:
    """Remove whole tables, and what an interrupted call has left; returns how many.

    `require_writer` is called before each removal: another engine may publish a table at the same path again. The
    folder is moved first, since a table that lacks half of its files must not look like a table. A folder that the
    operating system refuses to move is logged and stays.
    """
    trash = root / _TRASH
    removed = 0
    for path in paths:
        require_writer()
        trash.mkdir(exist_ok=True)
        try:
            (root / path).rename(trash / uuid4().hex)
            removed += 1
        except FileNotFoundError:
            pass  # a rebuild has removed its own table
        except PermissionError as error:
            _LOGGER.warning('"%s" is no longer needed, and cannot be removed: %s', root / path, error.strerror)
        faults.point("upkeep.after_leftover_moved")
    shutil.rmtree(trash, ignore_errors=True)
    return removed


def _checked_by(name: str) -> str:
    """The name of the file that a checksum file of Hadoop belongs to; for any other file its own name."""
    return name[1:-4] if name.startswith(".") and name.endswith(".crc") else name


def _is_older(file: Path, than: float) -> bool:
    try:
        return file.stat().st_mtime <= than
    except FileNotFoundError:
        return False
