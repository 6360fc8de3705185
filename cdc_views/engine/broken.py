"""A history of the log that was seen to be broken stays so: it is written down beside the control log.

Whoever starts later may find nothing: the connector goes on behind the changes that are lost, and then slot, stored
offsets and topics agree again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import orjson

from cdc_views import errors
from cdc_views.store import durable
from cdc_views.store.control import FOLDER
from cdc_views.store.data_files import space_for

# All others are found again by who looks again.
LASTING: Final = (errors.SlotChanged, errors.LogDiscontinuity)

_FILE: Final = "_broken.json"


@contextmanager
def remembering(warehouse: Path) -> Iterator[None]:
    """Around what may meet one of the `LASTING` errors; raises it again if it was met before."""
    require_unbroken(warehouse)
    try:
        yield
    except LASTING as error:
        _write_down(warehouse, error)
        raise


def require_unbroken(warehouse: Path) -> None:
    """Raise the error that was written down, if there is one."""
    try:
        found = orjson.loads(_file(warehouse).read_bytes())
    except FileNotFoundError:
        return
    raise getattr(errors, found["error"])(f"{found['message']} (seen at {found['at']})", hint=found["hint"])


def _write_down(warehouse: Path, error: errors.CdcViewsError) -> None:
    file = _file(warehouse)
    told = {
        "error": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    draft = file.with_suffix(".draft")
    with space_for(warehouse):
        durable.write(draft, orjson.dumps(told))
        draft.rename(file)
        durable.sync(file.parent)


def _file(warehouse: Path) -> Path:
    # In the folder of the control log, so that an emptied warehouse is unbroken.
    return warehouse / FOLDER / _FILE
