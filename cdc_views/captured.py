"""The captured set: all that decides what the events of captured tables mean, and whether every row has its events.

`cdc_views.describe` in the source (source/service_sql.py) describes a table; `changes` says what two descriptions
differ in, leaving out what is harmless. What is harmless: new labels of an enum, whatever leaves columns, key,
guards, membership in the publication and replica identity as they are, a replica identity that becomes FULL, and new
storage (VACUUM FULL, CLUSTER) where a TRUNCATE or a rewrite by ALTER TABLE would have been recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from cdc_views.names import TableName

CREATE_TABLE: Final = "CREATE TABLE"


class _Description(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Relation(_Description):
    """A captured table itself, one of its partitions, or a table that inherits from it.

    `identity` is pg_class.relreplident, with the columns of its index; `parent` the oid of the relation above it,
    empty for the table itself; `storage` its file node, `altered` a hash that any ALTER of a column changes.
    `trigger` is the version of our trigger for TRUNCATE, None where that is missing or disabled.
    """

    name: str
    kind: str
    persistence: str
    identity: str
    parent: str
    storage: int
    altered: str | None
    trigger: str | None

    @property
    def may_join(self) -> bool:
        """Whether a partition that was created like this has all its rows in the stream."""
        return self.kind in "rp" and self.persistence == "p" and self.identity in "df"


class CapturedTable(_Description):
    """A captured table as the catalog described it at one moment.

    `columns` are by attribute number; `guards` are our CHECK constraints; `labels` those of enums, by oid, and
    `attributes` those of composite types that its values are printed with; `relations` are by oid.
    """

    name: str
    membership: str | None
    columns: Mapping[str, str]
    key: str | None
    guards: Mapping[str, str]
    labels: Mapping[str, str]
    attributes: Mapping[str, str]
    relations: Mapping[str, Relation]


class CapturedSet(_Description):
    """All captured tables of a project; `event_triggers` has the version of each that is there and always fires.

    A table that is gone has the description None.
    """

    event_triggers: Mapping[str, str] = Field(default_factory=dict)
    tables: Mapping[str, CapturedTable | None]

    def of(self, table: TableName) -> CapturedTable | None:
        """The description of a table; None if it is gone, or was never captured."""
        return self.tables.get(str(table))


@dataclass(frozen=True)
class DefinitionChange:
    """One thing that is not as it was known to be.

    `is_dated` says that the command which did it is known; rows may otherwise have changed without events at any
    time since the table was last known to be whole.
    """

    what: str
    found: str
    wanted: str
    is_dated: bool = True

    def __str__(self) -> str:
        return f"{self.what} is {self.found}, wanted {self.wanted}"


def definition_changes(
    known: CapturedTable, found: CapturedTable, *, command: str | None = None, vouched: bool = True
) -> Iterator[DefinitionChange]:
    """Say what differs and matters.

    `command` is the tag of the DDL command that led from one to the other, None where none is known. `vouched` says
    that every DDL command since `known` was recorded by event triggers.
    """
    plain = {
        "its name": (known.name, found.name),
        "its membership in the publication": (known.membership, found.membership),
        "its primary key": (known.key, found.key),
    }
    for what, (before, after) in plain.items():
        if before != after:
            yield DefinitionChange(what, _shown(after), _shown(before))
    yield from _of_mapping("column {}", known.columns, found.columns)
    yield from _of_mapping("constraint {}", known.guards, found.guards)
    yield from _of_mapping("attribute {} of a composite type", known.attributes, found.attributes)
    kept = {oid: label for oid, label in found.labels.items() if oid in known.labels}  # a new label changes no row
    yield from _of_mapping("enum label {}", known.labels, kept)
    yield from _of_relations(known.relations, found.relations, command, vouched)


def _of_mapping(what: str, known: Mapping[str, str], found: Mapping[str, str]) -> Iterator[DefinitionChange]:
    for name in sorted(known.keys() | found.keys()):
        if known.get(name) != found.get(name):
            yield DefinitionChange(what.format(name), _shown(found.get(name)), _shown(known.get(name)))


def _of_relations(
    known: Mapping[str, Relation], found: Mapping[str, Relation], command: str | None, vouched: bool
) -> Iterator[DefinitionChange]:
    for oid in sorted(known.keys() | found.keys(), key=int):
        before, after = known.get(oid), found.get(oid)
        if before is None:
            assert after is not None
            if not (vouched and command == CREATE_TABLE and after.may_join and _is_partition(after, found)):
                yield DefinitionChange(
                    f"relation {after.name}", "part of the table", "none of its partitions or children"
                )
        elif after is None:
            yield DefinitionChange(
                f"relation {before.name}", "no part of the table", "one of its partitions or children"
            )
        else:
            yield from _of_relation(before, after, vouched)


def _is_partition(relation: Relation, relations: Mapping[str, Relation]) -> bool:
    parent = relations.get(relation.parent)
    return parent is not None and parent.kind == "p"


def _of_relation(known: Relation, found: Relation, vouched: bool) -> Iterator[DefinitionChange]:
    for what, name in (("kind", "kind"), ("persistence", "persistence"), ("replica identity", "identity"),
                       ("parent", "parent")):  # fmt: skip
        before, after = getattr(known, name), getattr(found, name)
        if before != after and not (name == "identity" and (before, after) == ("d", "f")):
            yield DefinitionChange(f"{what} of {known.name}", _shown(after), _shown(before))
    if known.storage != found.storage:
        is_watched = vouched and known.trigger is not None and known.trigger == found.trigger
        if not is_watched or known.altered != found.altered:
            yield DefinitionChange(
                f"storage of {known.name}", "another file (TRUNCATE, or a rewrite)", "the same", is_dated=False
            )


def _shown(value: str | None) -> str:
    return "missing" if value is None or not value else f'"{value}"'
