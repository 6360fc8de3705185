"""SQL over the published epoch: DuckDB's SQL over scans by delta-rs, at the versions of the manifest."""

from __future__ import annotations

import itertools
import re
from typing import Final

import duckdb
import pyarrow as pa

from cdc_views.errors import BadQuery, TableUnavailable
from cdc_views.serve.published import PublishedEpoch
from cdc_views.store.reading import refused, scan

# What DuckDB says when the scan that it was given ends with an error.
_UNREADABLE: Final = re.compile(r"reading the stream registered as '(\w+)' failed")


def query(epoch: PublishedEpoch, sql: str) -> pa.Table:
    """Answer `sql`, in which a view is `name` and a mirror `schema.table`, or `table` in schema public.

    Only the tables that the query names are opened. Raises BadQuery, UnknownView, ViewFailed, TableUnavailable,
    WarehouseUnusable.
    """
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        opened = {_register(database, epoch, name): name for name in _named_tables(epoch, database, sql)}
        try:
            answer = database.sql(sql)
            if answer is None:
                raise BadQuery("the statement gives no rows", hint="queries are SELECT statements")
            return _with_names_told_apart(answer.to_arrow_table())
        except duckdb.Error as error:
            if unreadable := _UNREADABLE.search(str(error)):
                name = opened[unreadable[1]]
                table = epoch.warehouse / epoch.table(name).path
                raise refused(error, table) or _unavailable(epoch, name) from error
            raise BadQuery(" ".join(str(error).split()), hint="tables are " + ", ".join(sorted(epoch.tables))) from None


def _with_names_told_apart(table: pa.Table) -> pa.Table:
    """A join may give two columns one name; the second becomes `name_1`, as in a subquery of DuckDB."""
    names: list[str] = []
    for name in table.column_names:
        numbered = (f"{name}_{number}" for number in itertools.count(1))
        names.append(next(free for free in itertools.chain([name], numbered) if free not in names))
    return table.rename_columns(names)


def _named_tables(epoch: PublishedEpoch, database: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    try:
        written = database.get_table_names(sql, qualified=True)
    except duckdb.Error as error:
        raise BadQuery(" ".join(str(error).split()), hint="queries are DuckDB's SQL") from None
    names = [name.replace('"', "") for name in written]
    return [known for name in names for known in (name, f"public.{name}") if known in epoch.tables]


def _register(database: duckdb.DuckDBPyConnection, epoch: PublishedEpoch, name: str) -> str:
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
    return relation


def _unavailable(epoch: PublishedEpoch, name: str) -> TableUnavailable:
    table = epoch.table(name)
    return TableUnavailable(
        f'table "{name}": version {table.version} of {table.path} cannot be read',
        hint="its files were removed by a vacuum, or the warehouse is damaged; read a newer epoch",
    )
