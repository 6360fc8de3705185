"""Delta tables that equal a SELECT over Postgres, at a known commit.

To read them from Python:

    import cdc_views

    wh = cdc_views.open("warehouse")
    wh.query("SELECT * FROM order_totals")

Errors are in `cdc_views.errors`. The folders, in the order of the data:

source/   Postgres: catalog, publication, slot, markers
log/      Kafka and Connect: topics, the connector, and the cuts of the log
capture/  from Debezium's events to the rows that a mirror must write
views/    what the user declares: view files, their kinds, and which view reads which
plan/     from the SQL of a view to how it is maintained
engine/   epoch after epoch: mirrors, views, publication; `engine/epoch/steps.py` has the six steps
store/    Delta tables and the control log
search/   terms, postings and ranked answers of search indexes, for the engine and for readers
replay/   rebuilds, swaps, rollbacks and resets
serve/    reading what is published: the Python client, HTTP, the page, metrics
cli/      the commands
stack/    the local Postgres, Kafka and Connect
demo/     the demo: its database, workload, views and check
testing/  tools for tests of views
config/   settings
base/     names, LSNs and values, which every layer uses
host/     the machine: clock, processes, signals, folders
errors/   every error, as one tree
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike
    from typing import Unpack

    from pyspark.sql import SparkSession

    from cdc_views.serve.changes.feed import EpochChanges, TableSnapshot
    from cdc_views.serve.epochs.moment import MomentArguments
    from cdc_views.serve.kinds.cache import CachedRow, CacheReader
    from cdc_views.serve.kinds.search import Hit, SearchResult
    from cdc_views.serve.kinds.timeline import TimelinePage
    from cdc_views.serve.reader import EpochReader, WarehouseReader
    from cdc_views.serve.spark_tables import SparkTables
    from cdc_views.serve.table_reader import TableReader
else:
    # Imported when they are used, so that `import cdc_views` is cheap.
    _MODULES = {
        "CacheReader": "kinds.cache",
        "CachedRow": "kinds.cache",
        "EpochChanges": "changes.feed",
        "EpochReader": "reader",
        "Hit": "kinds.search",
        "SearchResult": "kinds.search",
        "SparkTables": "spark_tables",
        "TableReader": "table_reader",
        "TableSnapshot": "changes.feed",
        "TimelinePage": "kinds.timeline",
        "WarehouseReader": "reader",
    }

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"cdc_views.serve.{_MODULES[name]}"), name)


__version__ = "0.1.0"

__all__ = [
    "CacheReader",
    "CachedRow",
    "EpochChanges",
    "EpochReader",
    "Hit",
    "SearchResult",
    "SparkTables",
    "TableReader",
    "TableSnapshot",
    "TimelinePage",
    "WarehouseReader",
    "open",
    "spark_tables",
]


def open(  # noqa: A001
    warehouse: str | PathLike[str], *, index_mb: int | None = None, rows_mb: int | None = None
) -> WarehouseReader:
    """Open a warehouse for reading: a folder, or its file: URL. No engine needs to run.

    Raises BadWarehouse for another URL, WarehouseUnusable.

    Indexes for reads by key take at most `index_mb` of memory (256 by default), and rows that were read at most
    `rows_mb` of the folder for temporary files (256 by default); see WarehouseReader.
    """
    from cdc_views.serve.reader import INDEX_MB, ROWS_MB, WarehouseReader

    return WarehouseReader(
        warehouse, INDEX_MB if index_mb is None else index_mb, ROWS_MB if rows_mb is None else rows_mb
    )


def spark_tables(
    session: SparkSession, warehouse: str | PathLike[str], **moment: Unpack[MomentArguments]
) -> SparkTables:
    """The data frames of all mirrors (`schema.table`) and views at one epoch, by name.

    The session needs Delta. `moment`: as of `WarehouseReader.epoch`. Raises what that raises.
    """
    from cdc_views.serve.spark_tables import SparkTables

    return SparkTables(session, warehouse, **moment)
