"""The tables of one epoch as data frames of a Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Unpack

from cdc_views.base.names import TableName
from cdc_views.errors import BadQuery
from cdc_views.serve.epochs.moment import MomentArguments
from cdc_views.serve.reader import WarehouseReader
from cdc_views.store.delta_log import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkTables(Mapping[str, "DataFrame"]):
    """The data frame of each mirror (`schema.table`) and view of one epoch, made when it is asked for."""

    def __init__(
        self, session: SparkSession, warehouse: str | PathLike[str], **moment: Unpack[MomentArguments]
    ) -> None:
        """The tables of the last epoch, or that of a moment (see Moment). Raises what WarehouseReader.epoch raises."""
        self._session = session
        self.epoch = WarehouseReader(warehouse).epoch(**moment)
        """The epoch that all tables are of."""

    def __getitem__(self, name: str) -> DataFrame:
        """The data frame of a table. Raises KeyError; ViewFailed, SchemaChanged, TableTruncated."""
        if name not in self.epoch.tables:
            raise KeyError(name)
        return self.epoch.table(name).spark(self._session)

    def __iter__(self) -> Iterator[str]:
        return iter(self.epoch.tables)

    def __len__(self) -> int:
        return len(self.epoch.tables)

    def create_temp_views(self) -> list[str]:
        """Create a temporary view of each table, for the session's SQL, and return their names.

        A mirror in schema `public` has the name of its table, another one `schema_table`. Tables that have failed or
        are stopped are skipped. Raises BadQuery, before it creates any, if two tables would have one name.
        """
        views = {
            name: name if table.kind == "view" else _view_of(TableName.parse(name))
            for name, table in self.epoch.readable.items()
        }
        taken: dict[str, str] = {}
        for name, view in views.items():
            if (other := taken.setdefault(view.lower(), name)) != name:
                raise BadQuery(
                    f'"{other}" and "{name}" would both be the temporary view "{view}"',
                    hint=f'make those that you need: tables["{name}"].createOrReplaceTempView(...)',
                )
        for name, view in views.items():
            self[name].createOrReplaceTempView(quoted(view))
        return list(views.values())


def _view_of(mirror: TableName) -> str:
    return mirror.table if mirror.schema == "public" else f"{mirror.schema}_{mirror.table}"
