"""Delta tables that equal a SELECT over Postgres, at a known commit.

To read them from Python:

    import cdc_views

    wh = cdc_views.open("warehouse")
    wh.query("SELECT * FROM order_totals")

Errors are in `cdc_views.errors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike
    from typing import Unpack

    from pyspark.sql import SparkSession

    from cdc_views.serve.moment import MomentArguments
    from cdc_views.serve.reader import WarehouseReader
    from cdc_views.serve.spark_tables import SparkTables

__version__ = "0.1.0"


def open(warehouse: str | PathLike[str]) -> WarehouseReader:  # noqa: A001 (as in `cdc_views.open`)
    """Open a warehouse, a folder, for reading. No engine needs to run. Raises WarehouseUnusable."""
    from cdc_views.serve.reader import WarehouseReader  # imported here, so that `import cdc_views` is cheap

    return WarehouseReader(warehouse)


def spark_tables(
    session: SparkSession, warehouse: str | PathLike[str], **moment: Unpack[MomentArguments]
) -> SparkTables:
    """The data frames of all mirrors (`schema.table`) and views at one epoch, by name.

    The session needs Delta. `moment`: as of `WarehouseReader.epoch`. Raises what that raises.
    """
    from cdc_views.serve.spark_tables import SparkTables

    return SparkTables(session, warehouse, **moment)
