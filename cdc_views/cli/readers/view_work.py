"""What the last epochs did for a view, as `cdc-views explain` shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cdc_views.serve.epochs.history import table_row
from cdc_views.store.control import ControlRecord, updates_view

MOST_EPOCHS: Final = 5
_COLUMNS: Final = ("epoch", "strategy", "looked up", "found", "computed", "written", "ms")
_LEGEND: Final = (
    "looked up: keys, in its tables and among its stored rows",
    "found: the rows with these keys, and the changed rows; with full, all rows",
    "computed: the rows that its query returned; - if they were not counted",
    "written: the rows in its new data files",
)


def last_epochs(records: Sequence[ControlRecord], view: str, internal: Sequence[str] = ()) -> list[str]:
    """The last epochs that updated a view, oldest first, as lines: a header, a line each, and what the columns mean.

    Those of its `internal` views follow, with a header each. Nothing if no record has work for them, such as those of
    earlier versions.
    """
    lines = _of_table(records, view, "last epochs:")
    for name in internal:
        lines += _of_table(records, name, f"last epochs of {name}:")
    return [*lines, *(f"  {line}" for line in _LEGEND)] if lines else []


def _of_table(records: Sequence[ControlRecord], name: str, title: str) -> list[str]:
    published = (record for record in reversed(records) if updates_view(record, name))
    shown = [record for record, _ in zip(published, range(MOST_EPOCHS), strict=False)]
    if not shown:
        return []
    cells = [_COLUMNS, *(_cells(record, name) for record in reversed(shown))]
    return [title, *(f"  {line}" for line in _table(cells))]


def _cells(record: ControlRecord, view: str) -> tuple[str, ...]:
    row = table_row(record, view)
    numbers = (row[name] for name in ("keys_looked_up", "rows_found", "rows_computed", "rows_written", "milliseconds"))
    shown = ("-" if each is None else str(each) for each in numbers)
    strategy, why = row["strategy"] or "", row["why_full"]
    return str(record.epoch), f"{strategy} ({why})" if why else strategy, *shown


def _table(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
