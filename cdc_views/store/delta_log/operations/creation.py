"""Creating a table of the warehouse, or checking that the one that is there is ours."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import orjson
from deltalake import DeltaTable

from cdc_views.store.delta_log.entries import NO_TABLE, VersionTaken, newest_version, put_entry
from cdc_views.store.delta_log.features import check_features
from cdc_views.store.delta_log.history import History, foreign
from cdc_views.store.delta_log.schema import TableSpec, delta_schema
from cdc_views.store.delta_log.torn import newest_whole_version
from cdc_views.store.delta_log.versions import creation


def create_table(root: Path, spec: TableSpec, history: History) -> int:
    """Create the table if it is absent, and return its newest version.

    Raises UnsupportedType, WrongFeatures, and ForeignCommit if a table is there that is not ours.
    """
    schema, table = delta_schema(spec), root / spec.path
    if newest_version(table) == NO_TABLE:
        # If another engine was faster, its table is checked below like any other.
        with suppress(VersionTaken):
            put_entry(table, 0, creation(spec))
    # Entries above it were torn by a loss of power; they are removed once this is the writer.
    whole = newest_whole_version(table)
    opened = DeltaTable(str(table), version=whole)
    check_features(opened, spec.name, spec.layout)
    if _fields(opened.schema().to_json()) != _fields(schema):
        raise foreign(spec.name, "found other columns than the wanted ones")
    unknown = history.unknown_commits(spec.path, 0, to=whole)
    if unknown:
        raise foreign(spec.name, f"found version {unknown[0].version} of another writer, wanted only our own")
    return newest_version(table)


def _fields(schema: str) -> list[object]:
    # Case and order count; field metadata does not.
    return [(field["name"], field["type"], field["nullable"]) for field in orjson.loads(schema)["fields"]]
