"""Pages of a timeline: the entries of one owner in their order, with a cursor that leads to the next page.

A cursor is a place in the order, not a number of entries. So a page after it neither repeats an entry nor omits one,
whatever has been added and removed before and behind it in the meantime, unless the entry itself has another place now.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, Self

import orjson
import pyarrow as pa

from cdc_views.base.lsn import Lsn
from cdc_views.base.python_values import plain_values, python_rows, python_values, scalar_of_text
from cdc_views.errors import BadPage
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.table_reader import TableReader
from cdc_views.serve.values.keys import Key
from cdc_views.serve.values.opaque import facts_of, opaque
from cdc_views.store.reading import StoredTables
from cdc_views.views.kinds.options import Ordered
from cdc_views.views.kinds.timeline import TimelineKind, TimelineRecord

PAGE_ENTRIES: Final = 20
"""The entries of a page, unless the reader says."""

Entry = dict[str, object]
Place = tuple[object, ...]
"""The values of an entry in the columns of the order; times are whole numbers."""


@dataclass(frozen=True)
class TimelinePage:
    """Entries of an owner at one epoch, in the order of the view. `cursor` leads to those after them.

    The cursor is None if there are no further entries at this epoch.
    """

    entries: list[Entry]
    cursor: str | None
    epoch: int
    position: Lsn
    committed_at: datetime


@dataclass(frozen=True)
class _Timeline:
    """A view of kind `timeline`: its name, its columns, and its record."""

    name: str
    schema: pa.Schema
    record: TimelineRecord

    @classmethod
    def of(cls, table: TableReader) -> Self:
        """Raises WrongKind."""
        hint = "declare the view WITH (kind = 'timeline', owner = ..., order = ...), or read it by \"query\""
        return cls(table.name, table.schema, TimelineRecord.parse(table.require_kind(TimelineKind.name, hint)))

    @property
    def owner(self) -> Key:
        """The owner, as a key of one column."""
        return Key(self.name, (self.schema.field(self.record.owner),))

    @property
    def identity(self) -> str:
        """Differs if another order decides about the place of an entry."""
        facts = orjson.dumps([self.name, self.record.as_json()["order"]])
        return hashlib.sha256(facts).hexdigest()[:12]

    def places(self, rows: pa.Table) -> list[Place]:
        """The places of rows in the order."""
        return list(zip(*(plain_values(rows.column(each.column)) for each in self.record.order), strict=True))

    def cursor(self, owner: object, entry: Entry) -> str:
        """The cursor of the place of an entry, as a text without blanks."""
        texts = [_text(value) for value in (owner, *(entry[each.column] for each in self.record.order))]
        return opaque([self.identity, *texts])

    def parse(self, cursor: str, owner: object) -> Place:
        """The place of a cursor of this owner. Raises BadPage."""
        try:
            identity, *texts = facts_of(cursor)
            if identity != self.identity:
                raise BadPage(
                    f'the cursor is of another timeline than "{self.name}", or of an earlier order of it',
                    hint="begin without a cursor",
                )
            of, *places = texts
            columns = [self.schema.field(each.column) for each in self.record.order]
            place = tuple(_plain_value(text, field) for text, field in zip(places, columns, strict=True))
        except (ValueError, TypeError, AttributeError):
            raise BadPage("the cursor is not one of ours", hint="give the cursor of a page, unchanged") from None
        if of != _text(owner):
            raise BadPage(f'the cursor is of another owner of "{self.name}"', hint="begin without a cursor")
        return place


def read_page(
    epoch: PublishedEpoch, stored: StoredTables, name: str, owner: object, limit: int, before: str | None
) -> TimelinePage:
    """The first `limit` entries of an owner, or those after the cursor `before`.

    Raises UnknownView, ViewFailed, WrongKind, BadPage, BadKey for a value that the owner cannot have, TableUnavailable.
    """
    table = TableReader(epoch, name, stored)
    timeline = _Timeline.of(table)
    if isinstance(limit, bool) or limit < 1:
        raise BadPage(f"the page has {limit} entries, wanted at least 1", hint=f"{PAGE_ENTRIES} is the default")
    owners = timeline.owner.rows([[owner]])
    found = stored.with_values(table.relative_path, table.version, owners)
    [of] = python_values(owners.column(0))
    after = None if before is None else timeline.parse(before, of)
    numbers = _in_order(timeline.places(found), timeline.record.order, after)
    page = python_rows(found.select(timeline.schema.names).take(pa.array(numbers[:limit], pa.int64())))
    cursor = timeline.cursor(of, page[-1]) if len(numbers) > limit else None
    return TimelinePage(page, cursor, epoch.number, epoch.position, epoch.committed_at)


def owner_of_text(epoch: PublishedEpoch, stored: StoredTables, name: str, text: str) -> object:
    """The owner that a text stands for, as on a command line. Raises as `read_page`."""
    [owner] = _Timeline.of(TableReader(epoch, name, stored)).owner.parse([text])
    return owner


def _in_order(places: Sequence[Place], order: Sequence[Ordered], after: Place | None) -> list[int]:
    """The numbers of the places in their order; with `after`, of those after that place."""
    keys = [_sort_key(place, order) for place in places]
    begin = None if after is None else _sort_key(after, order)
    return sorted((each for each, key in enumerate(keys) if begin is None or key > begin), key=keys.__getitem__)


def _sort_key(place: Sequence[object], order: Sequence[Ordered]) -> tuple[_InOrder, ...]:
    return tuple(_InOrder(value, each) for value, each in zip(place, order, strict=True))


class _InOrder:
    """A value that is compared as Spark's ORDER BY compares it: NaN is the largest number, text is by code point."""

    __slots__ = ("_descends", "_is_null", "_nulls_first", "_value")

    def __init__(self, value: object, ordered: Ordered) -> None:
        self._is_null = value is None
        is_nan = isinstance(value, float) and math.isnan(value)
        self._value: Any = (is_nan, 0.0 if is_nan else value)
        self._descends, self._nulls_first = ordered.descends, ordered.nulls_first

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InOrder) and (self._is_null, self._value) == (other._is_null, other._value)

    def __lt__(self, other: _InOrder) -> bool:
        if self._is_null or other._is_null:
            return self._is_null != other._is_null and self._is_null == self._nulls_first
        return bool(other._value < self._value if self._descends else self._value < other._value)

    def __hash__(self) -> int:
        return hash((self._is_null, self._value))


def _text(value: object) -> str | None:
    """A value as a text from which `_plain_value` gives its place again; None for NULL."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, datetime | date) else str(value)


def _plain_value(text: str | None, field: pa.Field) -> object:
    if text is None:
        return None
    [value] = plain_values(pa.chunked_array([[scalar_of_text(text, field.type)]], field.type))
    return value
