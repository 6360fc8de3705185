"""What the engine knows of its tables: where they are and at which version they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from cdc_views.capture.types import arrow_schema
from cdc_views.engine.input.bulk import BulkReader
from cdc_views.engine.input.quarantine import Quarantine
from cdc_views.engine.upkeep.rebuilds import SEPARATOR
from cdc_views.engine.views.relations import VIEW_FOLDER
from cdc_views.engine.views.text_columns import TextColumns, text_columns
from cdc_views.log.record import Offsets, offsets_by_partition
from cdc_views.lsn import Lsn
from cdc_views.metrics import UpkeepDone
from cdc_views.names import TableName
from cdc_views.source.catalog import SourceTable
from cdc_views.stopped import StoppedTable, stopped_in
from cdc_views.store.control.control_log import PUBLISHING, ControlRecord, TableVersion
from cdc_views.store.warehouse import TableSpec, Warehouse

if TYPE_CHECKING:
    from cdc_views.engine.input.lost_rows import LostRows

Place = Callable[[str, str], str]
"""Of a table's name and the path that its definition gives it, the path at which it is."""


def as_defined(name: str, path: str) -> str:
    """Where a table is that no rebuild has replaced."""
    return path


def where_published(published: ControlRecord | None, suffix_of_views: str = "") -> Place:
    """Where the manifest says: a rebuild adds a suffix to the path, and earlier versions wrote names as they are.

    A view that is not published yet gets the path with `suffix_of_views`: after a reset it is not to be where an
    earlier generation has one.
    """

    def place(name: str, path: str) -> str:
        table = published.tables.get(name) if published is not None else None
        if table is not None and _is_of_definition(table.path, path):
            return table.path
        return f"{path}{suffix_of_views}" if path.startswith(VIEW_FOLDER) else path

    return place


REBUILT: Final = SEPARATOR

_IN_PATHS: Final = frozenset("_- ")


def mirror_spec(source: SourceTable, generation: str) -> TableSpec:
    """The mirror of a table, at the path that it has as long as no rebuild has replaced it."""
    path = f"mirrors/{path_part(source.name.schema)}/{path_part(source.name.table)}/{generation}"
    return TableSpec(str(source.name), path, arrow_schema(source), source.key)


def path_part(name: str) -> str:
    """A name as one part of a path, which no other name has.

    Letters, digits, blanks, `_` and `-` stay; every other byte is `~` and two digits. Not `%`: delta-rs decodes that.
    """
    return "".join(
        each if each.isalnum() or each in _IN_PATHS else "".join(f"~{byte:02x}" for byte in each.encode())
        for each in name
    )


def _is_of_definition(path: str, defined: str) -> bool:
    """Whether a table at `path` is of the definition whose table is made at `defined`; both are of the same name.

    The last part tells one definition from another: the generation of a mirror, the fingerprint of a view.
    """
    return path.rpartition("/")[2].partition(REBUILT)[0] == defined.rpartition("/")[2]


class Tables:
    """Mirrors and views by their name in the manifest: `schema.table` and `view`.

    The versions are those of the last published epoch, moved up by fences only, so their content
    is what readers see. `standing_in` are tables that may have rows though no epoch was published with them at
    their path: the next one is. `bulk` reads what a first cut leaves out. `parks` says that bad events go into the
    `quarantine` (None: there is none) and stop nothing. `lost_rows` looks for rows that the log does not tell of.
    `upkeep_done` is what upkeep did since the last published record. `text_columns` are the columns of each table
    that are text here and not in Postgres.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        generation: str,
        sources: Iterable[SourceTable],
        parallel_commits: int = 2,
        place: Place = as_defined,
    ) -> None:
        self.warehouse = warehouse
        self.bulk: BulkReader | None = None
        self.lost_rows: LostRows | None = None
        self.standing_in: frozenset[str] = frozenset()
        self.parks = False
        self.quarantine: Quarantine | None = None
        self.upkeep_done = UpkeepDone()
        self._place = place
        self.parallel_commits = parallel_commits
        self.generation = generation
        self.sources = {str(source.name): source for source in sources}
        self.specs: dict[str, TableSpec] = {}
        self.text_columns: dict[str, TextColumns] = {}
        self.offsets: Offsets = {}
        self.position: Lsn | None = None
        self.committed_at: datetime | None = None
        self.published: ControlRecord | None = None
        self._versions: dict[str, int] = {}
        self._defined: dict[str, str] = {}
        for source in self.sources.values():
            spec = mirror_spec(source, generation)
            self.add(spec)
            self.text_columns[spec.name] = text_columns(source, spec.schema)

    def add(self, spec: TableSpec) -> None:
        """Know this table; it is created if it does not exist."""
        placed = replace(spec, path=self._place(spec.name, spec.path))
        self._versions[spec.name] = self.warehouse.create(placed)  # raises before the table is known
        self._defined[spec.name] = spec.path
        self.specs[spec.name] = placed

    def replace(self, paths: Mapping[str, str]) -> None:
        """Let the tables at these paths, which are there, take the place of those of the same names."""
        self.standing_in |= paths.keys()
        for name, path in paths.items():
            self.specs[name] = replace(self.specs[name], path=path)
            self._versions[name] = self.warehouse.create(self.specs[name])

    def is_made_of(self, name: str, path: str) -> bool:
        """Whether a table of the present definition may be at this path."""
        return _is_of_definition(path, self._defined[name])

    def mirrors_standing_in(self) -> dict[str, int]:
        """The mirrors among `standing_in`, and their versions: what reads them is to be computed anew."""
        return {name: self._versions[name] for name in self.standing_in & self.sources.keys()}

    def remove(self, name: str) -> None:
        """Know this view no more; its table stays where it is."""
        del self.specs[name], self._versions[name]

    def version(self, name: str) -> int:
        """The version that the next epoch starts from."""
        return self._versions[name]

    def versions(self) -> dict[str, TableVersion]:
        """Path and version of every table, as a base for the next epoch."""
        return {name: TableVersion(spec.path, self._versions[name], "base") for name, spec in self.specs.items()}

    def stand_at(self, versions: Mapping[str, int]) -> None:
        """Take these versions for the base of the next epoch: fenced, restored or done by an earlier attempt."""
        self._versions |= versions

    def advance(self, record: ControlRecord) -> None:
        """Stand where this published record says."""
        assert record.kind in PUBLISHING
        self.published = record
        self.standing_in = frozenset()
        self.position = record.position
        self.committed_at = record.committed_at
        self.offsets = offsets_by_partition(record.offsets)
        for name, table in record.tables.items():
            if name in self.specs and self.specs[name].path == table.path:
                self._versions[name] = max(self._versions[name], table.version)

    def skip(self, offsets: Offsets) -> None:
        """Read on from here: up to here there was nothing to publish. A crash forgets it."""
        self.offsets = offsets

    def is_published(self, name: str) -> bool:
        """Whether the last epoch has this table, at the path that it has now."""
        if self.published is None or name not in self.published.tables:
            return False
        return self.published.tables[name].path == self.specs[name].path

    def stopped(self) -> dict[TableName, StoppedTable]:
        """The tables that the last epoch says are stopped."""
        return stopped_in(self.published.detail) if self.published is not None else {}

    def is_failed(self, name: str) -> bool:
        """Whether the last epoch says that this view's query failed."""
        return self.is_published(name) and self.published is not None and self.published.tables[name].status == "failed"

    def failure(self, name: str) -> str:
        """Why this view has failed."""
        assert self.published is not None
        return str(self.published.detail.get("failures", {}).get(name, ""))
