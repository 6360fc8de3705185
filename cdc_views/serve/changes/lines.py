"""The changes of a table as objects of JSON, the same on the command line and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from cdc_views.serve.changes.feed import ChangeItem, EpochChanges
from cdc_views.serve.values.json_value import json_rows

# Rows in one object.
_LINE_ROWS: Final = 1000


def change_lines(item: ChangeItem) -> Iterator[dict[str, Any]]:
    """The objects of an item. Only the last one has the token: a reader that has it has all of the item."""
    head = {"epoch": item.epoch, "position": str(item.position), "committed_at": item.committed_at.isoformat()}
    token = {"token": item.token}
    if isinstance(item, EpochChanges):
        last = max(len(item) - 1, 0) // _LINE_ROWS * _LINE_ROWS
        for begin in range(0, last, _LINE_ROWS):
            yield head | _changed(item, begin)
        yield head | _changed(item, last) | token
        return
    part, line = 0, head | {"snapshot": 1, "reason": item.reason, "rows": []}
    for part, batch in enumerate(item.table.batches(_LINE_ROWS), 1):
        if part > 1:
            yield line
        line = head | {"snapshot": part, "reason": item.reason, "rows": json_rows(batch)}
    yield line | token


def _changed(item: EpochChanges, begin: int) -> dict[str, list[Any]]:
    """The changed rows from the one with this number on, as many as a line has: deletes, updates, inserts."""

    def part(rows: pa.Table, before: int) -> list[dict[str, Any]]:
        low, high = (min(max(place - before, 0), rows.num_rows) for place in (begin, begin + _LINE_ROWS))
        return json_rows(rows.slice(low, high - low))

    updates = item.deleted.num_rows
    replaced, updated = part(item.replaced, updates), part(item.updated, updates)
    return {
        "inserted": part(item.inserted, updates + item.updated.num_rows),
        "updated": [{"old": old, "new": new} for old, new in zip(replaced, updated, strict=True)],
        "deleted": part(item.deleted, 0),
    }
