"""The tables of an engine: their paths and versions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import uuid4

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.base.stopped import StoppedTable
from cdc_views.capture.types import arrow_schema
from cdc_views.log.kafka.record import Offsets, offsets_by_partition
from cdc_views.metrics import UpkeepDone
from cdc_views.source.catalog import SourceTable
from cdc_views.store.control import (
    BUILDING,
    INTERNAL_VIEW_FOLDER,
    MIRROR_FOLDER,
    PUBLISHING,
    VIEW_FOLDER,
    ControlRecord,
    PublishedDetail,
    TableVersion,
    table_kind,
)
from cdc_views.store.warehouse import TableSpec, Warehouse

SHADOW_SEPARATOR: Final = "-"
"""In the path of a shadow table, between the defined path and the id of the rebuild, reset or rollback that made it.

The path of an internal view whose table was lost ends with an id of its own."""

_IN_PATHS: Final = frozenset("_- ")

FindPath = Callable[[str, str], str]
"""Returns the current path of a table, given its name and the path that its definition gives it."""


def as_defined(name: str, path: str) -> str:
    """The path of a table that no rebuild has replaced."""
    return path


def as_published(published: ControlRecord | None, suffix_of_views: str = "") -> FindPath:
    """Return a function that finds paths in the manifest.

    A rebuild adds a suffix to the defined path, and earlier versions of cdc_views did not quote names. A view that is
    not published yet gets `suffix_of_views`, so that after a reset it does not reuse the table of an earlier
    generation.
    """

    def find_path(name: str, path: str) -> str:
        table = published.tables.get(name) if published is not None else None
        if table is not None and _is_of_definition(table.path, path):
            return table.path
        return f"{path}{suffix_of_views}" if path.startswith((VIEW_FOLDER, INTERNAL_VIEW_FOLDER)) else path

    return find_path


def mirror_spec(source: SourceTable, generation: str) -> TableSpec:
    """The mirror of a table, at its defined path."""
    path = f"{MIRROR_FOLDER}{path_part(source.name.schema)}/{path_part(source.name.table)}/{generation}"
    not_null = frozenset(column.name for column in source.columns if column.not_null)
    return TableSpec(str(source.name), path, arrow_schema(source), source.key, not_null=not_null)


def path_part(name: str) -> str:
    """Encode a name as one part of a path; different names have different parts.

    Letters, digits, blanks, `_` and `-` are kept. Every other byte becomes `~` and two hexadecimal digits. `%` would
    not do, because delta-rs decodes it.
    """
    return "".join(
        each if each.isalnum() or each in _IN_PATHS else "".join(f"~{byte:02x}" for byte in each.encode())
        for each in name
    )


def _is_of_definition(path: str, defined: str) -> bool:
    """Whether the table at `path` was created for the definition with the path `defined`. Both have the same name.

    The last part of a path identifies the definition: the generation of a mirror, or the fingerprint of a view.
    """
    return path.rpartition("/")[2].partition(SHADOW_SEPARATOR)[0] == defined.rpartition("/")[2]


class Tables:
    """Mirrors and views by their name in the manifest: `schema.table` and `view`.

    The versions are those of the last published epoch; only fences have been added since, so the content is what
    readers see. `shadows` names the shadow tables that the next epoch publishes: they may hold rows although no
    epoch was published with them at their path. `upkeep_done` counts what upkeep did since the last published record.
    `building` says of each view that is built beside the epochs how far it is: its table is not among these. Upkeep
    leaves the folders `built`, and what the epochs since `built_since` have.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        generation: str,
        sources: Iterable[SourceTable],
        parallel_commits: int = 2,
        find_path: FindPath = as_defined,
    ) -> None:
        self.warehouse = warehouse
        self.shadows: frozenset[str] = frozenset()
        self.upkeep_done = UpkeepDone()
        self.building: dict[str, str] = {}
        self.built: frozenset[str] = frozenset()
        self.built_since: datetime | None = None
        self._find_path = find_path
        self.parallel_commits = parallel_commits
        self.generation = generation
        self.sources = {str(source.name): source for source in sources}
        self.specs: dict[str, TableSpec] = {}
        self.offsets: Offsets = {}
        self.position: Lsn | None = None
        self.committed_at: datetime | None = None
        self.published: ControlRecord | None = None
        self._versions: dict[str, int] = {}
        self._defined: dict[str, str] = {}
        for source in self.sources.values():
            self.add(mirror_spec(source, generation))

    def add(self, spec: TableSpec, *, at_new_path: bool = False) -> None:
        """Add a table, and create it if it does not exist; `at_new_path`: where there was no table before."""
        new_path = f"{spec.path}{SHADOW_SEPARATOR}{uuid4().hex[:8]}"
        placed = replace(spec, path=new_path if at_new_path else self._find_path(spec.name, spec.path))
        self._versions[spec.name] = self.warehouse.create(placed)  # may raise: then the table is not added
        self._defined[spec.name] = spec.path
        self.specs[spec.name] = placed

    def replace(self, paths: Mapping[str, str]) -> None:
        """Swap in the existing tables at these paths for the tables of the same names."""
        self.shadows |= paths.keys()
        for name, path in paths.items():
            self.specs[name] = replace(self.specs[name], path=path)
            self._versions[name] = self.warehouse.create(self.specs[name])

    def is_made_of(self, name: str, path: str) -> bool:
        """Whether this path belongs to the present definition of the table."""
        return _is_of_definition(path, self._defined[name])

    def renew(self, name: str) -> None:
        """Replace a table that is not usable any more by a new and empty one, which no epoch has published yet."""
        self.add(replace(self.specs[name], path=self._defined[name]), at_new_path=True)

    def is_internal(self, name: str) -> bool:
        """Whether this is the table of an internal view."""
        return self.specs[name].path.startswith(INTERNAL_VIEW_FOLDER)

    def shadow_mirrors(self) -> dict[str, int]:
        """The mirrors in `shadows` and their versions. The views that read them must be recomputed."""
        return {name: self._versions[name] for name in self.shadows & self.sources.keys()}

    def beside(self, record: ControlRecord) -> Tables:
        """These tables as a published record has them, for work beside the epochs. Commits to them are no attempts."""
        other = copy(self)
        other.warehouse = self.warehouse.beside()
        other.upkeep_done, other.shadows, other.building = UpkeepDone(), frozenset(), {}
        other.specs, other._versions, other._defined = dict(self.specs), dict(self._versions), dict(self._defined)
        other.published = record
        other.stand_at({name: record.tables[name].version for name in other.specs if other.is_published(name)})
        return other

    def adopt(self, specs: Collection[TableSpec], record: ControlRecord) -> None:
        """Add tables that were built beside the epochs: from now on, the last published epoch has them as `record`."""
        assert self.published is not None
        assert record.seq == self.published.seq
        built = {spec.name: record.tables[spec.name] for spec in specs}
        self.specs |= {spec.name: spec for spec in specs}
        self.stand_at({name: table.version for name, table in built.items()})
        self.published = replace(self.published, tables={**self.published.tables, **built})

    def take_back(self, specs: Iterable[TableSpec]) -> None:
        """Add tables that were removed, at their newest versions."""
        for spec in specs:
            self.specs[spec.name] = spec
            self.stand_at({spec.name: self.warehouse.create(spec)})

    def standing(self) -> dict[str, TableVersion]:
        """What the last epoch has of the views that are being built: rows by their old definitions, if there are."""
        published = self.published.tables if self.published is not None else {}
        return {name: replace(published[name], status=BUILDING) for name in self.building if name in published}

    def remove(self, name: str) -> None:
        """Remove a view. Its Delta table is kept."""
        del self.specs[name], self._versions[name]

    def version(self, name: str) -> int:
        """The version that the next epoch starts from."""
        return self._versions[name]

    def versions(self) -> dict[str, TableVersion]:
        """Path and version of every table, as a base for the next epoch."""
        return {
            name: TableVersion(spec.path, self._versions[name], "base", table_kind(spec.path))
            for name, spec in self.specs.items()
        }

    def stand_at(self, versions: Mapping[str, int]) -> None:
        """Set base versions of the next epoch: fenced, restored, or committed by an earlier attempt."""
        self._versions |= versions

    def advance(self, record: ControlRecord) -> None:
        """Move to the state of this published record."""
        assert record.kind in PUBLISHING
        self.published = record
        self.shadows = frozenset()
        self.position = record.position
        self.committed_at = record.committed_at
        self.offsets = offsets_by_partition(record.offsets)
        for name, table in record.tables.items():
            if name in self.specs and self.specs[name].path == table.path:
                self._versions[name] = max(self._versions[name], table.version)

    def skip(self, offsets: Offsets) -> None:
        """Continue reading at these offsets: there was nothing to publish before them. Not persistent."""
        self.offsets = offsets

    def is_published(self, name: str) -> bool:
        """Whether the last epoch has this table at its present path, and with rows of its present definition."""
        if self.published is None or name not in self.published.tables or name not in self.specs:
            return False
        table = self.published.tables[name]
        return table.path == self.specs[name].path and table.status != BUILDING

    def stopped(self) -> dict[TableName, StoppedTable]:
        """The tables that the last epoch says are stopped."""
        return PublishedDetail.read(self.published).stopped_tables if self.published is not None else {}

    def is_failed(self, name: str) -> bool:
        """Whether this view has failed in the last epoch."""
        return self._has_status(name, "failed")

    def is_live(self, name: str) -> bool:
        """Whether the last epoch has published this view with the rows of that epoch."""
        return self._has_status(name, "live")

    def _has_status(self, name: str, status: str) -> bool:
        return self.is_published(name) and self.published is not None and self.published.tables[name].status == status

    def failure(self, name: str) -> str:
        """Why this view has failed."""
        assert self.published is not None
        return PublishedDetail.read(self.published).failures.get(name, "")
