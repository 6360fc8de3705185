"""One record of the control log, and its form as a row of the Delta table `_epochs`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, get_args

import orjson
import pyarrow as pa

from cdc_views.base.lsn import Lsn
from cdc_views.base.stopped import STOPPED

Kind = Literal["takeover", "intent", "publish", "abandon", "swap", "rollback", "upkeep", "quarantine", "reset"]

TableKind = Literal["mirror", "view", "internal"]

MIRROR_FOLDER: Final = "mirrors/"
VIEW_FOLDER: Final = "views/"
INTERNAL_VIEW_FOLDER: Final = "internal_views/"

BUILDING: Final = "building"
"""The status of a view whose new definition is being built: its rows are those of an earlier epoch, by the old one."""

_STANDING: Final = frozenset({STOPPED, "failed", BUILDING})

KINDS: Final[frozenset[str]] = frozenset(get_args(Kind))
PUBLISHING: Final[frozenset[str]] = frozenset({"publish", "swap", "rollback"})

_TIME = pa.timestamp("us", tz="UTC")
_TABLE = pa.struct([("path", pa.string()), ("version", pa.int64()), ("status", pa.string())])

SCHEMA: Final = pa.schema(
    [
        ("seq", pa.int64()),
        ("term", pa.int64()),
        ("writer", pa.string()),
        ("kind", pa.string()),
        ("epoch", pa.int64()),
        ("attempt", pa.int64()),
        ("generation", pa.string()),
        ("position", pa.string()),
        ("position_lsn", pa.int64()),
        ("complete_to_lsn", pa.int64()),
        ("committed_at", _TIME),
        ("published_at", _TIME),
        ("offsets", pa.map_(pa.string(), pa.int64())),
        ("tables", pa.map_(pa.string(), _TABLE)),
        ("kinds", pa.map_(pa.string(), pa.string())),  # not a field of `tables`: delta-rs reads no maps that got one
        ("detail", pa.string()),
    ]
)


def table_kind(path: str) -> TableKind:
    """What a new table is: each kind has a folder of the warehouse. The tables that no user declared are internal."""
    if path.startswith(MIRROR_FOLDER):
        return "mirror"
    return "view" if path.startswith(VIEW_FOLDER) else "internal"


@dataclass(frozen=True)
class TableVersion:
    """The Delta version that holds a table at an epoch; `path` is relative to the warehouse, `kind` what it is."""

    path: str
    version: int
    status: str
    kind: TableKind

    @property
    def is_standing(self) -> bool:
        """Whether it has rows of an earlier epoch: a stopped mirror, a view that has failed or is being built."""
        return self.status in _STANDING


@dataclass(frozen=True)
class ControlRecord:
    """A decision of the writer. `seq` is the version of `_epochs` that added the record."""

    seq: int
    term: int
    writer: str
    kind: Kind
    epoch: int
    attempt: int
    generation: str | None = None
    position: Lsn | None = None
    complete_to: Lsn | None = None
    committed_at: datetime | None = None
    published_at: datetime | None = None
    offsets: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, TableVersion] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_idle(self) -> bool:
        """Whether this only moves the position: the tables are those of the epoch before it."""
        return self.kind == "publish" and "changes" not in self.detail

    @property
    def mirrors_and_views(self) -> dict[str, TableVersion]:
        """The tables of the user, without internal ones of the engine."""
        return {name: table for name, table in self.tables.items() if table.kind != "internal"}

    def holds(self, position: Lsn) -> bool:
        """Whether the record covers everything committed before `position`."""
        return self.complete_to is not None and self.complete_to >= position

    def row(self) -> pa.Table:
        """The record as one row of `_epochs`."""
        values = {
            **{
                name: getattr(self, name)
                for name in ("seq", "term", "writer", "kind", "epoch", "attempt", "generation")
            },
            "position": None if self.position is None else str(self.position),
            "position_lsn": None if self.position is None else int(self.position),
            "complete_to_lsn": None if self.complete_to is None else int(self.complete_to),
            "committed_at": self.committed_at,
            "published_at": self.published_at,
            "offsets": list(self.offsets.items()),
            "tables": [(name, vars(table)) for name, table in self.tables.items()],
            "kinds": [(name, table.kind) for name, table in self.tables.items()],
            "detail": orjson.dumps(dict(self.detail)).decode(),
        }
        return pa.Table.from_pylist([values], schema=SCHEMA)


def record_of(row: Mapping[str, Any]) -> ControlRecord:
    """A row of `_epochs` as a record; the kind is not checked."""
    complete_to = row["complete_to_lsn"]
    kinds = dict(row.get("kinds") or ())  # none in a record of an earlier version of cdc_views
    return ControlRecord(
        **{name: row[name] for name in ("seq", "term", "writer", "kind", "epoch", "attempt", "generation")},
        position=None if row["position_lsn"] is None else Lsn(row["position_lsn"]),
        complete_to=None if complete_to is None else Lsn(complete_to),
        committed_at=row["committed_at"],
        published_at=row["published_at"],
        offsets=dict(row["offsets"] or ()),
        tables={
            name: TableVersion(**table, kind=kinds.get(name) or table_kind(table["path"]))
            for name, table in row["tables"] or ()
        },
        detail=orjson.loads(row["detail"] or "{}"),
    )
