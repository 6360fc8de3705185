"""SQL over the published epoch: DuckDB's SQL over scans by delta-rs, at the versions of the manifest."""

from __future__ import annotations

import re

import duckdb
import pyarrow as pa

from cdc_views.errors import BadQuery
from cdc_views.serve.published import PublishedEpoch
from cdc_views.store.reading import scan


def query(epoch: PublishedEpoch, sql: str) -> pa.Table:
    """Answer `sql`, in which a view is `name` and a mirror `schema.table`, or `table` in schema public.

    Only the tables that the query names are opened. Raises BadQuery, UnknownView, ViewFailed.
    """
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for name in _named_tables(epoch, database, sql):
            _register(database, epoch, name)
        try:
            return database.execute(sql).to_arrow_table()
        except duckdb.Error as error:
            raise BadQuery(
                " ".join(str(error).split()), hint="tables are " + ", ".join(sorted(epoch.record.tables))
            ) from None


def _named_tables(epoch: PublishedEpoch, database: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    try:
        written = database.get_table_names(sql, qualified=True)
    except duckdb.Error as error:
        raise BadQuery(" ".join(str(error).split()), hint="queries are DuckDB's SQL") from None
    names = [name.replace('"', "") for name in written]
    return [known for name in names for known in (name, f"public.{name}") if known in epoch.record.tables]


def _register(database: duckdb.DuckDBPyConnection, epoch: PublishedEpoch, name: str) -> None:
    table = epoch.table(name)
    relation = "_cv_" + re.sub(r"\W", "_", name)
    database.register(relation, scan(epoch.warehouse, table.path, table.version))
    schema, dot, bare = name.rpartition(".")
    own = [column for column in database.table(relation).columns if not column.startswith("_cv_")]
    columns = ", ".join('"' + column.replace('"', '""') + '"' for column in own)
    if dot:
        database.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        database.execute(f'CREATE VIEW "{schema}"."{bare}" AS SELECT {columns} FROM memory.main."{relation}"')
    if not dot or schema == "public":
        database.execute(f'CREATE OR REPLACE VIEW main."{bare}" AS SELECT {columns} FROM "{relation}"')
