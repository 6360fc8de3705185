"""Merging the entries of a timeline in the driver, by its own columns.

A view of kind `timeline` has its total order and its limit in its record, and all columns of the order. So the driver
can say which rows of an owner come first, where Spark would compare them in the same way.

An owner who loses no entry keeps all stored ones but those that added entries push beyond the limit. While there is
room, the stored entries need not be read: their number is that of the index's hits. So a post of an author with very
many followers costs its own rows, and the stored rows only of owners whose timelines are full, some owners at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.engine.views.strategies.incremental import Incremental, TooMany
from cdc_views.engine.views.strategies.results import changes_of
from cdc_views.plan.incremental import PatchPlan
from cdc_views.store.warehouse import Changes, Counts, TableSpec
from cdc_views.views.kinds.timeline import TimelineKind, TimelineRecord

_OWNER: Final = "_cv_owner"
_ORDERED: Final = (
    pa.types.is_integer, pa.types.is_string, pa.types.is_boolean, pa.types.is_date, pa.types.is_timestamp,
    pa.types.is_decimal,
)  # fmt: skip


@dataclass(frozen=True)
class Timeline:
    """The order and the limit of a timeline."""

    record: TimelineRecord

    def first_rows(self, rows: pa.Table) -> pa.Table:
        """The first rows of each owner, up to the limit."""
        if not rows.num_rows:
            return rows
        keys = pa.table({_OWNER: _numbers(rows.column(self.record.owner))})
        sort = [(_OWNER, "ascending")]
        for place, each in enumerate(self.record.order):
            column = rows.column(each.column)
            keys = keys.append_column(f"null{place}", pc.cast(pc.is_null(column), pa.int8()))
            keys = keys.append_column(f"value{place}", column)
            sort.append((f"null{place}", "descending" if each.nulls_first else "ascending"))
            sort.append((f"value{place}", "descending" if each.descends else "ascending"))
        order = pc.sort_indices(keys, sort_keys=sort).to_numpy()
        owners = keys.column(_OWNER).to_numpy()[order]
        starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
        places = np.arange(len(owners)) - np.repeat(starts, np.diff(np.append(starts, len(owners))))
        return rows.take(pa.array(np.sort(order[places < self.record.limit])))

    def with_added(self, work: Incremental[PatchPlan], rows: pa.Table) -> Changes | None:
        """The changes by further entries of owners who lose none; `rows` may have stored ones, too. Raises TooMany."""
        key = list(work.spec.key)
        rows = rows.filter(pa.array(_required(work.stored_counts(rows.select(key))) == 0))
        if not rows.num_rows:
            return None
        owner = self.record.owner
        of_owners = pa.table({_OWNER: rows.column(owner)})
        added = of_owners.group_by(_OWNER, use_threads=False).aggregate([([], "count_all")])
        owners = added.select([_OWNER]).rename_columns([owner])
        stored = _required(work.stored_counts(owners))
        is_full = stored + added.column("count_all").to_numpy() > self.record.limit
        full = owners.filter(pa.array(is_full))
        if not full.num_rows:
            return Changes(None, rows, all_new=True)
        merged = [
            self._pushed(work, part, rows.filter(self._is_of(rows, part)))
            for part in _parts(full, stored[is_full], work.warehouse.driver_rows, work.warehouse.lookup_keys)
        ]
        others = rows.filter(pc.invert(self._is_of(rows, full)))
        kept = pa.concat_tables([others, *(each for _, each in merged)])
        return changes_of(pa.concat_tables([gone for gone, _ in merged]), kept)

    def _is_of(self, rows: pa.Table, owners: pa.Table) -> pa.ChunkedArray:
        """Which rows belong to one of the owners."""
        owner = self.record.owner
        return pc.is_in(rows.column(owner), owners.column(owner).combine_chunks())

    def _pushed(self, work: Incremental[PatchPlan], full: pa.Table, added: pa.Table) -> tuple[pa.Table, pa.Table]:
        """For owners without room: the keys of stored entries that are pushed out, and the added entries that stay."""
        key = list(work.spec.key)
        names = list(dict.fromkeys([self.record.owner, *key, *(each.column for each in self.record.order)]))
        known = work.warehouse.find(work.spec, work.base, full, names)
        if known is None:
            raise TooMany("the stored entries of full timelines are too many for the driver")
        both = pa.concat_tables([known.select(names), added.select(names)])
        both = both.append_column("_cv_row", pa.array(range(both.num_rows), pa.int64()))
        stays = np.zeros(both.num_rows, bool)
        stays[self.first_rows(both).column("_cv_row").to_numpy()] = True
        gone = known.filter(pa.array(~stays[: known.num_rows])).select(key)
        return gone, added.filter(pa.array(stays[known.num_rows :]))


def timeline_of(spec: TableSpec) -> Timeline | None:
    """The order of a table; None if it is no timeline, or if its order has floats, which Spark compares in its way."""
    if spec.kind.get("kind") != TimelineKind.name:
        return None
    record = TimelineRecord.parse(spec.kind)
    types = [spec.schema.field(each.column).type for each in record.order]
    return Timeline(record) if all(any(is_of(type_) for is_of in _ORDERED) for type_ in types) else None


def united(spec: TableSpec, changes: Iterable[Changes | None]) -> Changes | None:
    """Changes of different owners as one; None without any."""
    found = [each for each in changes if each is not None]
    if len(found) <= 1:
        return found[0] if found else None
    nothing = spec.schema.empty_table().select(list(spec.key))
    deleted = [nothing if each.deleted is None else each.deleted for each in found]
    return changes_of(pa.concat_tables(deleted), pa.concat_tables([each.rows for each in found]))


def _parts(owners: pa.Table, counts: Counts, most_rows: int, most_owners: int) -> Iterator[pa.Table]:
    """The owners in parts, each with at most so many stored entries, by their counts, and so many owners."""
    begins, held = 0, 0
    for place, count in enumerate(counts.tolist()):
        if (held + count > most_rows or place - begins == most_owners) and place > begins:
            yield owners.slice(begins, place - begins)
            begins, held = place, 0
        held += count
    yield owners.slice(begins)


def _numbers(column: pa.ChunkedArray) -> pa.Array:
    """A number for each different value; NULL has one, too."""
    return pc.dictionary_encode(column.combine_chunks(), null_encoding="encode").indices


def _required(counts: Counts | None) -> Counts:
    if counts is None:
        raise TooMany("the keys of added entries are too many for the driver, or for its index")
    return counts
