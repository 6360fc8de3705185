"""How Debezium writes a value that Postgres did not put into the WAL because it is stored out of line and unchanged.

It writes a placeholder instead of the value, in a form that depends on the column's type; all forms were measured
(tests/stack/test_types.py). The placeholder is a secret of each log (log/debezium/placeholder.py). So a value that
equals one of its forms is never a real value, whatever the table's replica identity is, and no row of a mirror may hold
one.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from hashlib import md5
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.errors import UnresolvedToast
from cdc_views.source.catalog import SourceTable
from cdc_views.source.checks.refusals import has_placeholder

# A column is searched as one text; single values are only looked at if that finds something.
_TEXTS: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
_NUMBERS: Final = (pa.int32(), pa.int64(), pa.date32())


class Forms(NamedTuple):
    """The forms of a placeholder, as JSON has them."""

    text: str
    base64: str  # bytea, and types that Debezium does not know
    hstore: str
    uuid: str  # in an array of uuid
    texts: list[str]
    uuids: list[str]
    numbers: list[int]  # in an array of integers or dates

    @property
    def plain(self) -> tuple[Any, ...]:
        """The forms in a column that is not an array."""
        return self.text, self.base64, self.hstore

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The forms in an array."""
        return self.texts, self.uuids, self.numbers

    def in_json(self) -> tuple[bytes, ...]:
        """Return the bytes one of which a JSON text without spaces contains if it holds a form of the placeholder."""
        numbers = orjson.dumps(self.numbers).removeprefix(b"[").removesuffix(b"]")
        return self.text.encode(), self.base64.encode(), self.uuid.encode(), numbers


@cache
def forms_of(placeholder: str) -> Forms:
    """Return the forms in which Debezium writes this placeholder."""
    content = placeholder.encode()
    # Java's UUID.nameUUIDFromBytes: version 3 without a namespace.
    uuid = str(UUID(bytes=md5(content, usedforsecurity=False).digest(), version=3))
    hstore = orjson.dumps({placeholder: placeholder}).decode()
    encoded = base64.b64encode(content).decode()
    return Forms(placeholder, encoded, hstore, uuid, [placeholder], [uuid], list(content))


def with_placeholder(tables: Iterable[SourceTable], placeholder: str) -> list[SourceTable]:
    """Return the tables with the placeholder of their log, so that its events can be decoded."""
    return [replace(table, placeholder=placeholder) for table in tables]


def forms(table: SourceTable) -> Forms:
    """Return the forms of the placeholder of the log that the table's events come from."""
    if table.placeholder is None:
        raise ValueError(f'table "{table.name}" does not have the placeholder of its log')
    return forms_of(table.placeholder)


def unchangeable(table: SourceTable) -> dict[str, tuple[Any, ...]]:
    """Return the columns whose values an event may omit, with what may stand for the value."""
    found = forms(table)
    return {
        column.name: found.plain if column.element is None else found.arrays
        for column in table.columns
        if column.toastable
    }


def unmarked(table: SourceTable) -> tuple[str, ...]:
    """Return the columns without a known placeholder: the connector fails, or a NULL may stand for the value."""
    return tuple(column.name for column in table.columns if column.toastable and not has_placeholder(column))


def require_no_placeholder(table: SourceTable, rows: pa.Table) -> None:
    """Raise UnresolvedToast if a value of these rows, which a mirror is to hold, is or contains the placeholder.

    The last line of defence: whatever went wrong before, no placeholder gets into a mirror.
    """
    found = forms(table)
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if any(_holds(chunk, found) for chunk in column.chunks):
            raise UnresolvedToast(
                f'table "{table.name}": column "{name}" would hold the placeholder of an unchanged value',
                hint=IDENTITY_HINT,
                table=str(table.name),
                column=name,
            )


IDENTITY_HINT: Final = (
    "the replica identity of the table, or of one of its partitions, is not FULL, or was not: "
    'run "cdc-views check --fix", then rebuild the table from a snapshot'
)


def _holds(values: pa.Array, placeholder: Forms) -> bool:
    kind = values.type
    if any(is_text(kind) for is_text in _TEXTS):
        return _holds_text(values, placeholder.text)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    items = values.flatten()
    if kind.value_type in _NUMBERS:
        return _holds_numbers(items, placeholder.numbers)
    return _holds(items, placeholder) or (pa.types.is_string(items.type) and _holds_text(items, placeholder.uuid))


def _holds_text(values: pa.Array, text: str) -> bool:
    content = values.buffers()[2]
    if content is None or content.to_pybytes().find(text.encode()) < 0:
        return False
    # The buffer may hold more than these values, and the end of one value next to the beginning of another.
    return bool(pc.any(pc.match_substring(values, text)).as_py())


def _holds_numbers(values: pa.Array, numbers: list[int]) -> bool:
    # A date is the number of its day.
    plain = values.view(pa.int32()) if pa.types.is_date32(values.type) else values
    found = plain.fill_null(0).to_numpy(zero_copy_only=False)
    starts = np.arange(max(0, len(found) - len(numbers) + 1))
    for place, number in enumerate(numbers):
        starts = starts[found[starts + place] == number]
    return bool(starts.size)
