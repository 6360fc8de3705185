"""The changes of a table as objects of JSON, the same on the command line and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from cdc_views.serve.changes.feed import ChangeItem, EpochChanges
from cdc_views.serve.values.json_value import json_rows

# Rows of a snapshot in one object.
_LINE_ROWS: Final = 1000


def change_lines(item: ChangeItem) -> Iterator[dict[str, Any]]:
    """The objects of an item. Only the last one has the token: a reader that has it has all of the item."""
    head = {"epoch": item.epoch, "position": str(item.position), "committed_at": item.committed_at.isoformat()}
    token = {"token": item.token}
    if isinstance(item, EpochChanges):
        yield (
            head
            | {
                "inserted": json_rows(item.inserted),
                "updated": [
                    {"old": old, "new": new}
                    for old, new in zip(json_rows(item.replaced), json_rows(item.updated), strict=True)
                ],
                "deleted": json_rows(item.deleted),
            }
            | token
        )
        return
    part, line = 0, head | {"snapshot": 1, "reason": item.reason, "rows": []}
    for part, batch in enumerate(item.table.batches(_LINE_ROWS), 1):
        if part > 1:
            yield line
        line = head | {"snapshot": part, "reason": item.reason, "rows": json_rows(batch)}
    yield line | token
