"""Remembers that the history of the log is broken, in a file in the folder of the control log.

A later start may not notice: the connector continues after the lost changes, and then slot, stored offsets and topics
agree again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

import orjson

from cdc_views import errors
from cdc_views.store.control import FOLDER
from cdc_views.store.storage import durable, touching

# Other errors go away, or are found again by the next check.
LASTING: Final = (errors.SlotChanged, errors.LogDiscontinuity, errors.PrintedOtherwise)

_FILE: Final = "_broken.json"


@contextmanager
def remembering(warehouse: Path) -> Iterator[None]:
    """Remember one of the `LASTING` errors if the block raises it. Raises an error that was remembered earlier."""
    require_unbroken(warehouse)
    try:
        yield
    except LASTING as error:
        raise _written_down(warehouse, error) from None


def require_unbroken(warehouse: Path) -> None:
    """Raise the remembered error, if there is one."""
    file = _file(warehouse)
    try:
        found = orjson.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):  # `check` reports a warehouse that is not a folder
        return
    raise getattr(errors, found["error"])(
        f"{found['message']} (seen at {found['at']})", hint=f'{found["hint"]}; remembered in "{file}"'
    )


def forget(warehouse: Path) -> None:
    """Forget the error, since a reset has started a new history. Raises WarehouseUnusable."""
    with touching(warehouse):
        _file(warehouse).unlink(missing_ok=True)


def _written_down(warehouse: Path, error: errors.CdcViewsError) -> errors.CdcViewsError:
    """Write the error to the file. Returns it; if it could not be written, the hint says why."""
    file = _file(warehouse)
    record = {
        "error": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    draft = file.with_suffix(f".{uuid4().hex}")
    try:
        durable.write(draft, orjson.dumps(record))
        with suppress(FileExistsError):  # another process has written one
            os.link(draft, file)
        draft.unlink()
        durable.sync(file.parent)
    except OSError as problem:
        # Raise the error itself, which matters more than a full disk.
        unwritten = f'this could not be remembered in "{file}" ({problem}): a later start may not notice it'
        return error.restated(hint=f"{error.hint}; {unwritten}")
    return error


def _file(warehouse: Path) -> Path:
    # In the folder of the control log, so that it goes when the warehouse is emptied.
    return warehouse / FOLDER / _FILE
