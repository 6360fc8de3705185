"""Vacuum: data files that no version still read has are removed; of retired tables, the whole folder.

What a crash left half done looks the same: a data file that no version names. So does what Spark's attempts leave.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from cdc_views import faults
from cdc_views.store.delta_log.deletion_vectors import file_of
from cdc_views.store.delta_log.entries import LOG_FOLDER
from cdc_views.store.index.stored_keys import data_file

_TRASH: Final = ".removed"
_DATA: Final = (".parquet", ".bin")


def files_of(table: Path, actions: Iterable[Mapping[str, Any]]) -> set[Path]:
    """The files that `add` or `remove` actions name, data and deletion vectors."""
    found = set()
    for action in actions:
        found.add(data_file(table, action["path"]))
        if (vector := action.get("deletionVector")) and vector["storageType"] == "u":
            found.add(file_of(table, vector))
    return found


def sweep(table: Path, needed: Collection[Path], before: float) -> int:
    """Remove the table's files that are not `needed` and were written before a time; returns how many.

    What was written later may belong to a version that is being made.
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
    """Remove whole tables, and what an earlier call had begun with; returns how many.

    `require_writer` is asked before each: another engine may publish a table of the same path again.

    Moved first: a table of which half the files are gone must not pass for one that is there.
    """
    trash = root / _TRASH
    removed = 0
    for path in paths:
        require_writer()
        trash.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):  # a rebuild has removed what was its own
            (root / path).rename(trash / uuid4().hex)
            removed += 1
        faults.point("upkeep.after_leftover_moved")
    shutil.rmtree(trash, ignore_errors=True)
    return removed


def _checked_by(name: str) -> str:
    """The file that a checksum of Hadoop's file system belongs to; of any other file its own name."""
    return name[1:-4] if name.startswith(".") and name.endswith(".crc") else name


def _is_older(file: Path, than: float) -> bool:
    try:
        return file.stat().st_mtime <= than
    except FileNotFoundError:
        return False
