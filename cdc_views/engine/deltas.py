"""Step 3: what the cut's events change in each mirror.

Events are folded per key; a value that Postgres did not write to the log, because it is stored out
of line and unchanged, comes from the mirror's row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cdc_views.capture.fold import Fold, Key
from cdc_views.engine.tables import Tables
from cdc_views.log.cut import CutLog
from cdc_views.store.warehouse import Changes, WrittenRows

if TYPE_CHECKING:
    from cdc_views.engine.epoch import Intent


@dataclass(frozen=True)
class MirrorDelta:
    """The change of one mirror in one epoch; `changes` is None where nothing is left to commit.

    The rows of a mirror that is read in bulk are not counted.
    """

    changes: Changes | WrittenRows | None
    events: int
    snapshot_rows: int


def read_deltas(log: CutLog, intent: Intent, tables: Tables) -> dict[str, MirrorDelta]:
    """Read the cut's records and fold them. Raises BadEvent, UnresolvedToast and what the log raises."""
    bulk = [name for name, source in tables.sources.items() if source.name in intent.cut.bulk]
    folds = {name: Fold(source) for name, source in tables.sources.items()}
    for record in log.records(intent.cut):
        folds[str(log.table_of(record.topic))].add(record)
    deltas = {name: _delta(name, fold, intent, tables) for name, fold in folds.items() if fold.records}
    return deltas | {name: _bulk_delta(name, log, intent, tables) for name in bulk}


def _bulk_delta(name: str, log: CutLog, intent: Intent, tables: Tables) -> MirrorDelta:
    if name in intent.done:
        return MirrorDelta(None, 0, 0)
    assert tables.bulk is not None, "a log that has bulk comes with its reader"
    table, cut = tables.sources[name], intent.cut
    partitions = [each for each in cut.end if log.table_of(each.topic) == table.name]
    start, end = ({each: side[each] for each in partitions} for side in (cut.start, cut.end))
    return MirrorDelta(tables.bulk.rows(table, start, end), 0, 0)


def _delta(name: str, fold: Fold, intent: Intent, tables: Tables) -> MirrorDelta:
    if name in intent.done:
        return MirrorDelta(None, fold.events, fold.snapshot_rows)
    folded = fold.finish(_stored_rows(name, fold, tables))
    first_build = not tables.is_published(name) and name not in tables.standing_in
    # A mirror that was never published is empty: nothing in it can vanish.
    deleted = folded.deletes if folded.deletes.num_rows and not first_build else None
    changes = Changes(deleted=deleted, rows=folded.upserts, all_new=first_build)
    is_empty = deleted is None and folded.upserts.num_rows == 0
    return MirrorDelta(None if is_empty else changes, fold.events, fold.snapshot_rows)


def _stored_rows(name: str, fold: Fold, tables: Tables) -> Mapping[Key, Mapping[str, Any]]:
    if not (keys := fold.lookups()):
        return {}
    spec = tables.specs[name]
    columns = list(zip(*sorted(keys, key=repr), strict=True))
    fields = [spec.schema.field(column) for column in spec.key]
    wanted = pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)], schema=pa.schema(fields)
    )
    found = tables.warehouse.lookup(spec, tables.version(name), wanted, tuple(fold.looked_up))
    return {tuple(row[column] for column in spec.key): row for row in found.to_pylist()}
