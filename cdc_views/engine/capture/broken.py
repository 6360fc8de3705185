"""A history of the log that was seen to be broken stays so: it is written down beside the control log.

Whoever starts later may find nothing: the connector goes on behind the changes that are lost, and then slot, stored
offsets and topics agree again.
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
from cdc_views.store.control.control_log import FOLDER
from cdc_views.store.storage import durable
from cdc_views.store.storage.disk import touching

# Others are found again by who looks again, or pass.
LASTING: Final = (errors.SlotChanged, errors.LogDiscontinuity, errors.PrintedOtherwise)

_FILE: Final = "_broken.json"


@contextmanager
def remembering(warehouse: Path) -> Iterator[None]:
    """Around what may meet one of the `LASTING` errors; raises it again if it was met before."""
    require_unbroken(warehouse)
    try:
        yield
    except LASTING as error:
        raise _written_down(warehouse, error) from None


def require_unbroken(warehouse: Path) -> None:
    """Raise the error that was written down, if there is one."""
    file = _file(warehouse)
    try:
        found = orjson.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):  # `check` says if the warehouse is not a folder
        return
    raise getattr(errors, found["error"])(
        f"{found['message']} (seen at {found['at']})", hint=f'{found["hint"]}; remembered in "{file}"'
    )


def forget(warehouse: Path) -> None:
    """Forget the error: a reset has begun a new history. Raises WarehouseUnusable."""
    with touching(warehouse):
        _file(warehouse).unlink(missing_ok=True)


def _written_down(warehouse: Path, error: errors.CdcViewsError) -> errors.CdcViewsError:
    """The error, with where it is written down, or why it is not."""
    file = _file(warehouse)
    told = {
        "error": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    draft = file.with_suffix(f".{uuid4().hex}")
    try:
        durable.write(draft, orjson.dumps(told))
        with suppress(FileExistsError):  # another process was faster
            os.link(draft, file)
        draft.unlink()
        durable.sync(file.parent)
    except OSError as problem:
        # The error says more than that a disk is full.
        unwritten = f'this could not be remembered in "{file}" ({problem}): a later start may find nothing of it'
        return type(error)(error.message, hint=f"{error.hint}; {unwritten}")
    return error


def _file(warehouse: Path) -> Path:
    # In the folder of the control log, so that an emptied warehouse is unbroken.
    return warehouse / FOLDER / _FILE
