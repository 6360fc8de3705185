"""What strategies do alike with a result: check its columns, and turn a difference into changes."""

from __future__ import annotations

import pyarrow as pa

from cdc_views.errors import ColumnsDiffer
from cdc_views.store.warehouse import Changes, TableSpec


def changes_of(deleted: pa.Table, rows: pa.Table, *, all_new: bool = False) -> Changes | None:
    """The changes of a view; None if there are none."""
    if not deleted.num_rows and not rows.num_rows:
        return None
    return Changes(deleted=deleted if deleted.num_rows else None, rows=rows, all_new=all_new)


def require_columns(found: pa.Schema, spec: TableSpec) -> None:
    """Raise ColumnsDiffer if the columns differ: a cast could change values, or fail for some."""
    for field, wanted in zip(found, spec.schema, strict=True):
        if field.name != wanted.name or field.type != wanted.type:
            raise ColumnsDiffer(
                f'column "{field.name}" of the result is {field.type}, wanted "{wanted.name}" {wanted.type}'
            )
