"""The captured set: what determines the meaning of the captured tables' events, and whether every row has its events.

`cdc_views.describe` in the source (source/service/service_sql.py) describes a table. `changes` compares two
descriptions and yields the differences that matter. These do not matter: new labels of an enum; a replica identity that
becomes FULL; new storage (VACUUM FULL, CLUSTER) where a TRUNCATE or a rewrite by ALTER TABLE would have been recorded;
and anything that leaves the columns, key, guards, replica identity and membership in the publication (also that of the
service tables) unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from cdc_views.base.names import TableName

CREATE_TABLE: Final = "CREATE TABLE"


class _Description(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Relation(_Description):
    """A captured table itself, one of its partitions, or a table that inherits from it.

    `identity` is pg_class.relreplident with the columns of its index. `parent` is the oid of the parent relation, and
    empty for the table itself. `storage` is the file node. `altered` is a hash that every ALTER of a column changes.
    `trigger` is the version of our TRUNCATE trigger and its function, or None if it is missing or disabled.
    """

    name: str
    kind: str
    persistence: str
    identity: str
    parent: str
    storage: int
    altered: str | None
    trigger: str | None

    def may_join(self, others: Iterable[Relation]) -> bool:
        """Whether the stream has all rows of a partition created like this, and as much of each row as of `others`.

        Without our trigger, a TRUNCATE in the transaction that creates it leaves no trace.
        """
        identities = {"f"} if any(other.identity == "f" for other in others) else {"d", "f"}
        is_known = self.kind == "p" or self.identity in identities
        return self.kind in "rp" and self.persistence == "p" and is_known and self.trigger is not None


class CapturedTable(_Description):
    """A captured table as the catalog described it at one moment.

    `membership` is that of the table in the publication. `service` is that of the service tables, whose rows show DDL
    and TRUNCATE. `columns` are keyed by attribute number, `labels` (of enums) and `relations` by oid. `array_domains`
    are the numbers of the columns whose type is a domain over an array: their events do not mark unchanged values.
    `guards` are our CHECK constraints. `attributes` are those of the composite types that the table's values are
    printed with. Descriptions of an earlier version lack `service` and `array_domains`.
    """

    name: str
    membership: str | None
    service: str | None = None
    columns: Mapping[str, str]
    array_domains: tuple[int, ...] | None = None
    key: str | None
    guards: Mapping[str, str]
    labels: Mapping[str, str]
    attributes: Mapping[str, str]
    relations: Mapping[str, Relation]


class CapturedSet(_Description):
    """All captured tables of a project.

    `event_triggers` has the version of each event trigger that exists and always fires. The description of a dropped
    table is None.
    """

    event_triggers: Mapping[str, str] = Field(default_factory=dict)
    tables: Mapping[str, CapturedTable | None]

    def of(self, table: TableName) -> CapturedTable | None:
        """Return the description of a table, or None if it was dropped or never captured."""
        return self.tables.get(str(table))


@dataclass(frozen=True)
class DefinitionChange:
    """One difference from the known description.

    `is_dated`: the command that made the change is known. Otherwise, rows may have changed without events at any time
    since the table was last known to be complete.
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
    """Yield the differences that matter.

    `command` is the tag of the DDL command between the two descriptions, or None if it is unknown. `vouched`: event
    triggers recorded every DDL command since `known`.
    """
    plain = {
        "its name": (known.name, found.name),
        "its membership in the publication": (known.membership, found.membership),
        "its primary key": (known.key, found.key),
    }
    if known.service is not None:
        plain["the membership of the service tables in the publication"] = (known.service, found.service)
    for what, (before, after) in plain.items():
        if before != after:
            yield DefinitionChange(what, _shown(after), _shown(before))
    yield from _of_mapping("column {}", known.columns, found.columns)
    if known.array_domains is not None:
        yield from _of_array_domains(known.array_domains, found.array_domains or ())
    yield from _of_mapping("constraint {}", known.guards, found.guards)
    yield from _of_mapping("attribute {} of a composite type", known.attributes, found.attributes)
    kept = {oid: label for oid, label in found.labels.items() if oid in known.labels}  # a new label changes no row
    yield from _of_mapping("enum label {}", known.labels, kept)
    yield from _of_relations(known.relations, found.relations, command, vouched)


def _of_mapping(what: str, known: Mapping[str, str], found: Mapping[str, str]) -> Iterator[DefinitionChange]:
    for name in sorted(known.keys() | found.keys()):
        if known.get(name) != found.get(name):
            yield DefinitionChange(what.format(name), _shown(found.get(name)), _shown(known.get(name)))


def _of_array_domains(known: Collection[int], found: Collection[int]) -> Iterator[DefinitionChange]:
    shown = ("an array", "a domain over an array")
    for number in sorted({*known} ^ {*found}):
        yield DefinitionChange(f"type of column {number}", shown[number in found], shown[number in known])


def _of_relations(
    known: Mapping[str, Relation], found: Mapping[str, Relation], command: str | None, vouched: bool
) -> Iterator[DefinitionChange]:
    for oid in sorted(known.keys() | found.keys(), key=int):
        before, after = known.get(oid), found.get(oid)
        if before is None:
            assert after is not None
            if not (
                vouched and command == CREATE_TABLE and after.may_join(known.values()) and _is_partition(after, found)
            ):
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
