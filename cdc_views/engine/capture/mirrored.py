"""The tables of a project as their mirrors have them, which may differ from what the catalog says now.

A table that is stopped, or that was changed while no engine was running, is described as it was when its mirror was
created; the last takeover has that description. The log says where the table was changed, and the engine stops it
there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cdc_views.base.names import TableName
from cdc_views.base.stopped import StoppedTable
from cdc_views.capture.types import arrow_schema
from cdc_views.config import Settings
from cdc_views.engine.capture.captures import known_takeover
from cdc_views.errors import CdcViewsError, UnknownTable, UnsupportedType
from cdc_views.log.cuts.ddl import changed_since
from cdc_views.source.catalog import SourceColumn, SourceTable, read_tables
from cdc_views.source.connection import Connection
from cdc_views.store.control import PUBLISHING, ControlRecord, PublishedDetail, TakeoverDetail


@dataclass(frozen=True)
class Mirrored:
    """The tables in the order of the settings. `stopped` and `changed` tables are described by their mirrors.

    `changed` are tables that are different in the catalog now, each with the error that is known before the log is
    read.
    """

    sources: list[SourceTable]
    stopped: Mapping[TableName, StoppedTable] = field(default_factory=dict)
    changed: Mapping[TableName, CdcViewsError] = field(default_factory=dict)

    @property
    def held(self) -> frozenset[TableName]:
        """The tables whose description in the catalog no longer matters."""
        return frozenset({*self.stopped, *self.changed})


def read_mirrored(settings: Settings, connection: Connection, records: Sequence[ControlRecord] = ()) -> Mirrored:
    """Describe the tables. `records` are those of the control log; none for a new generation.

    Raises UnknownTable and UnsupportedType for a table that has no mirror yet.
    """
    known = known_takeover(records)
    made = {} if known is None else _tables_of(known)
    published = published_of(records, known)
    stopped = {} if published is None else PublishedDetail.read(published).stopped_tables
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
                # Only the form of the mirror may differ, because of a setting or this version: a start refuses that.
                error = None if found.fingerprint() == mirrored.fingerprint() else changed_since(name)
            except (UnknownTable, UnsupportedType) as refused:
                error = changed_since(name, refused.message)
            if error is not None:
                changed[name] = error
            sources.append(found if error is None else mirrored)
    return Mirrored(sources, stopped, changed)


def tables_detail(sources: Iterable[SourceTable]) -> dict[str, Any]:
    """The tables as the detail of a takeover has them, as JSON."""
    return {str(source.name): asdict(replace(source, placeholder=None)) for source in sources}


def _described(settings: Settings, connection: Connection, name: TableName) -> SourceTable:
    table = read_tables(connection, [name], settings.source.columns)[name]
    arrow_schema(table)  # refuses a type that cannot be mirrored exactly
    return table


def published_of(records: Sequence[ControlRecord], known: ControlRecord | None) -> ControlRecord | None:
    """The last published record of the takeover's generation."""
    if known is None:
        return None
    ours = (each for each in reversed(records) if each.kind in PUBLISHING and each.generation == known.generation)
    return next(ours, None)


def _tables_of(takeover: ControlRecord) -> dict[TableName, SourceTable]:
    """The tables that a takeover keeps; none in one of an earlier version."""
    found = map(_table, TakeoverDetail.read(takeover).tables.values())
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


def _column(fields: Mapping[str, Any]) -> SourceColumn:
    form = fields["as_decimal"]
    return SourceColumn(**{**fields, "as_decimal": None if form is None else tuple(form)})
