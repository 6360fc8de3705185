"""The tables of a project as their mirrors have them, which is not always what the catalog says now.

A table that is stopped, or that was changed while no engine was running, is described as it was when its mirror was
made: that is in the last takeover. The log says when it was changed, and the engine stops that table there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from cdc_views.capture.types import arrow_schema
from cdc_views.config import Settings
from cdc_views.engine.capture.captures import known_takeover
from cdc_views.errors import CdcViewsError, UnknownTable, UnsupportedType
from cdc_views.log.stops import changed_since
from cdc_views.names import TableName
from cdc_views.source.catalog import Column, SourceTable, read_tables
from cdc_views.source.connection import Connection
from cdc_views.stopped import StoppedTable, stopped_in
from cdc_views.store.control.control_log import PUBLISHING, ControlRecord

TABLES: Final = "tables"
"""In the detail of a takeover: each table as its mirror was made of it."""


@dataclass(frozen=True)
class Mirrored:
    """The tables in the order of the settings. `stopped` and `changed` are described as their mirrors were made.

    `changed` are no longer so in the catalog: the error is what is known of it before the log was read.
    """

    sources: list[SourceTable]
    stopped: Mapping[TableName, StoppedTable] = field(default_factory=dict)
    changed: Mapping[TableName, CdcViewsError] = field(default_factory=dict)

    @property
    def held(self) -> frozenset[TableName]:
        """The tables of which the catalog does not matter any more."""
        return frozenset({*self.stopped, *self.changed})


def read_mirrored(settings: Settings, connection: Connection, records: Sequence[ControlRecord] = ()) -> Mirrored:
    """Describe the tables; `records` are those of the control log, none for a new generation.

    Raises UnknownTable and UnsupportedType for a table that has no mirror yet.
    """
    known = known_takeover(records)
    made = {} if known is None else _tables_of(known)
    published = published_of(records, known)
    stopped = {} if published is None else stopped_in(published.detail)
    sources: list[SourceTable] = []
    changed: dict[TableName, CdcViewsError] = {}
    for name in settings.source.tables:
        mirrored = made.get(name)
        if mirrored is None:
            sources.append(_described(settings, connection, name))
        elif name in stopped:
            sources.append(mirrored)
        else:
            try:
                found = _described(settings, connection, name)
                # Another form of the same columns comes of a setting, or of this version: a start refuses that.
                error = None if found.fingerprint() == mirrored.fingerprint() else changed_since(name)
            except (UnknownTable, UnsupportedType) as refused:
                error = changed_since(name, refused.message)
            if error is not None:
                changed[name] = error
            sources.append(found if error is None else mirrored)
    return Mirrored(sources, stopped, changed)


def tables_detail(sources: Iterable[SourceTable]) -> dict[str, Any]:
    """The tables as a takeover keeps them, as JSON."""
    return {str(source.name): asdict(replace(source, placeholder=None)) for source in sources}


def _described(settings: Settings, connection: Connection, name: TableName) -> SourceTable:
    table = read_tables(connection, [name], settings.source.columns)[name]
    arrow_schema(table)  # a type that has no exact form is refused here
    return table


def published_of(records: Sequence[ControlRecord], known: ControlRecord | None) -> ControlRecord | None:
    """The last published record of the takeover's generation."""
    if known is None:
        return None
    ours = (each for each in reversed(records) if each.kind in PUBLISHING and each.generation == known.generation)
    return next(ours, None)


def _tables_of(takeover: ControlRecord) -> dict[TableName, SourceTable]:
    """The tables that a takeover keeps; none in one of an earlier version."""
    found = map(_table, takeover.detail.get(TABLES, {}).values())
    return {table.name: table for table in found}


def _table(fields: Mapping[str, Any]) -> SourceTable:
    return SourceTable(
        **{
            **fields,
            "name": TableName(**fields["name"]),
            "columns": tuple(map(_column, fields["columns"])),
            "excluded": tuple(map(_column, fields["excluded"])),
            "key": tuple(fields["key"]),
        }
    )


def _column(fields: Mapping[str, Any]) -> Column:
    form = fields["as_decimal"]
    return Column(**{**fields, "as_decimal": None if form is None else tuple(form)})
