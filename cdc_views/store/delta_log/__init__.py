"""The log of one Delta table: its entries, the state they describe, checkpoints, and who wrote each version.

entries.py           list, read and put the entries
schema.py            Arrow schemas as Delta schemas
features.py          the protocol and the settings of every table
versions.py          what a version records about its origin, and its actions
state.py             the state of a table, replayed from its log
deletion_vectors.py  which rows of a data file are gone
history.py           who wrote each version
torn.py              versions that a loss of power has torn
operations/          create, copy, restore, fence, checkpoint
"""

from __future__ import annotations

from cdc_views.store.delta_log.entries import (
    LOG_FOLDER,
    NO_TABLE,
    Add,
    data_file,
    entry_file,
    make_folder,
    newest_version,
    read_entry,
)
from cdc_views.store.delta_log.features import table_properties
from cdc_views.store.delta_log.operations.copying import copy_table
from cdc_views.store.delta_log.schema import TableSpec, key_schema, quoted, require_column_names
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.delta_log.versions import RESTORE, Stamp, TableCommit

__all__ = [
    "LOG_FOLDER",
    "NO_TABLE",
    "RESTORE",
    "Add",
    "Stamp",
    "TableCommit",
    "TableSpec",
    "TableState",
    "copy_table",
    "data_file",
    "entry_file",
    "key_schema",
    "make_folder",
    "newest_version",
    "quoted",
    "read_entry",
    "require_column_names",
    "table_properties",
]
