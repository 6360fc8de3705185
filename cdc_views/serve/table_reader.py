"""One table at one epoch, for the libraries that read tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from cdc_views.base.names import HIDDEN
from cdc_views.base.python_values import python_rows, python_values
from cdc_views.errors import BadQuery, WrongKind
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.values.keys import Key
from cdc_views.store.delta_log import quoted
from cdc_views.store.reading import StoredTable, StoredTables, TableScan, read_batches, read_table, scan
from cdc_views.views.kinds import DEFAULT_KIND

if TYPE_CHECKING:
    import pandas
    import polars
    from pyspark.sql import DataFrame, SparkSession


class TableReader:
    """A mirror or view as it is in an epoch, without the columns that cdc_views adds to it.

    The methods raise TableUnavailable if the epoch is no longer retained, and WarehouseUnusable.
    """

    def __init__(self, epoch: PublishedEpoch, name: str, stored: StoredTables) -> None:
        """Raises UnknownView, ViewFailed, and the error of a stopped table."""
        self._root = epoch.warehouse
        self._table = epoch.table(name)
        self._stored = stored
        self.name = name
        """The view, or the mirror as `schema.table`."""

    @property
    def path(self) -> str:
        """The folder of the Delta table."""
        return str(self._root / self._table.path)

    @property
    def relative_path(self) -> str:
        """The same, below the warehouse."""
        return self._table.path

    @property
    def kind(self) -> str:
        """The kind of a view; "sql" for a mirror, too."""
        return str(self._described().kind.get("kind", DEFAULT_KIND))

    def require_kind(self, wanted: str, hint: str) -> Mapping[str, Any]:
        """What readers of a kind of views need to know of this one. Raises WrongKind if it is of another kind."""
        if self.kind != wanted:
            raise WrongKind(f'"{self.name}" is of kind "{self.kind}", wanted "{wanted}"', hint=hint)
        return self._described().kind

    @property
    def version(self) -> int:
        """The Delta version that holds the table at the epoch."""
        return self._table.version

    @property
    def schema(self) -> pa.Schema:
        """The columns and their Arrow types."""
        return pa.schema([field for field in self._described().schema if not field.name.startswith(HIDDEN)])

    def columns(self, wanted: Sequence[str] | None) -> list[str]:
        """These columns, each once; without any, all of them. Raises BadQuery for one that the table lacks."""
        known: list[str] = self.schema.names
        if wanted is None:
            return known
        if unknown := [name for name in wanted if name not in known]:
            raise BadQuery(f'"{self.name}" has no column {", ".join(unknown)}', hint=f"columns are {', '.join(known)}")
        return list(dict.fromkeys(wanted))

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row. Raises BadKey for a view without a key, KeyNotRecorded."""
        return tuple(field.name for field in self._key().fields)

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, in no particular order; all columns, or some. Raises BadQuery for a column that it lacks."""
        return read_table(self._root, self._table.path, self.version, self.columns(columns))

    def batches(self, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The same in batches of at most `rows`, which are read as they are taken."""
        return read_batches(self._root, self._table.path, self.version, self.columns(columns), rows)

    def duckdb(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """A relation of this connection, whose rows are read when it is."""
        return connection.from_arrow(self._scan())

    def polars(self) -> polars.LazyFrame:
        """A lazy frame of Polars, which must be installed (`cdc-views[polars]`)."""
        import polars

        return polars.scan_delta(self.path, version=self.version).select(self.schema.names)

    def pandas(self) -> pandas.DataFrame:
        """A data frame of pandas, with the types to which Arrow converts, but for whole numbers: these stay exact.

        So structs, lists and maps are values of Python, as in `get`.
        """
        import pandas

        nullable = {
            pa.int8(): pandas.Int8Dtype(),
            pa.int16(): pandas.Int16Dtype(),
            pa.int32(): pandas.Int32Dtype(),
            pa.int64(): pandas.Int64Dtype(),
        }
        rows = self.arrow()
        plain = [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
        frame: pandas.DataFrame = rows.select(plain).to_pandas(types_mapper=nullable.get)
        for place, field in enumerate(rows.schema):
            if pa.types.is_nested(field.type):
                values = python_values(rows.column(place))
                frame.insert(place, field.name, pandas.Series(values, range(rows.num_rows), object))
        return frame

    def spark(self, session: SparkSession) -> DataFrame:
        """A data frame of a Spark session, which needs Delta."""
        frame = session.read.format("delta").option("versionAsOf", self.version).load(self.path)
        return frame.select(*map(quoted, self.schema.names))

    def get(self, *key: object) -> dict[str, object] | None:
        """The row with a key, by column; None if there is none. The values are in the order of `key`; NULL is None.

        Reads only files and row groups that can hold the key. A time outside of the years 1 to 9999, for which Python
        has no value, is a text, also in the key: "12000-01-02T03:04:05.000000+00:00", "infinity". Raises BadKey,
        KeyNotRecorded.
        """
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[Sequence[object]]) -> list[dict[str, object] | None]:
        """The rows with these keys, in their order; None where there is none. Each has the values of a key in order.

        Raises BadKey, KeyNotRecorded.
        """
        key = self._key()
        wanted = key.rows(keys)
        found = self._stored.with_values(self._table.path, self.version, wanted)
        rows = {key.of_row(row): row for row in python_rows(found.select(self.schema.names))}
        return [rows.get(key.of_row(row)) for row in python_rows(wanted)]

    def key_of_text(self, texts: Sequence[str | None]) -> list[object]:
        """The key whose values are given as texts, as on a command line. Raises BadKey, KeyNotRecorded."""
        return self._key().parse(texts)

    def _described(self) -> StoredTable:
        return self._stored.describe(self._table.path)

    def _key(self) -> Key:
        return Key.of(self.name, self._described())

    def _scan(self) -> TableScan:
        return scan(self._root, self._table.path, self.version, self.schema.names)
