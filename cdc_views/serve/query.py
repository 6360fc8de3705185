"""Answers SQL over the published epoch: DuckDB over scans by delta-rs, at the versions of the manifest."""

from __future__ import annotations

import itertools
import re
from contextlib import suppress
from typing import Final

import duckdb
import pyarrow as pa

from cdc_views.base.names import HIDDEN, TableName
from cdc_views.errors import BadQuery, TableUnavailable
from cdc_views.serve.published import PublishedEpoch
from cdc_views.store.reading import refused, scan

# DuckDB returns table names with their aliases, and quotes a name with a blank.
_ALIAS: Final = re.compile(r"""\sAS\s(?:"(?:[^"]|"")*"|[^\s"]+)\Z""")
# DuckDB's message when a registered scan ends with an error.
_UNREADABLE: Final = re.compile(r"reading the stream registered as '(\w+)' failed")


def query(epoch: PublishedEpoch, sql: str) -> pa.Table:
    """Answer `sql`, which names views as `name` and mirrors as `schema.table`, or as `table` in schema public.

    Opens only the tables that the query names. Raises BadQuery, UnknownView, ViewFailed, the error of a stopped table,
    TableUnavailable, WarehouseUnusable.
    """
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        opened = {}
        for number, name in enumerate(dict.fromkeys(_named_tables(epoch, database, sql))):
            opened[f"_cv_{number}"] = name
            _register(database, epoch, name, f"_cv_{number}")
        try:
            answer = database.sql(sql)
            if answer is None:
                raise BadQuery("the statement returns no rows", hint="queries are SELECT statements")
            return _with_unique_names(answer.to_arrow_table())
        except duckdb.Error as error:
            if unreadable := _UNREADABLE.search(str(error)):
                name = opened[unreadable[1]]
                table = epoch.warehouse / epoch.table(name).path
                raise refused(error, table) or _unavailable(epoch, name) from error
            raise BadQuery(" ".join(str(error).split()), hint="tables are " + ", ".join(sorted(epoch.tables))) from None


def _with_unique_names(table: pa.Table) -> pa.Table:
    """Two columns of a join may have one name. The second becomes `name_1`, as in a subquery of DuckDB."""
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
    found, tables = [], {**epoch.tables, **epoch.detail.building}
    for name in written:
        with suppress(ValueError):  # a name of three parts
            table = TableName.parse(_ALIAS.sub("", name))
            # A name without a schema is a view, or a mirror in schema public.
            found += [known for known in (table.table, str(table)) if known in tables]
    return found


def _register(database: duckdb.DuckDBPyConnection, epoch: PublishedEpoch, name: str, relation: str) -> None:
    """Register the table's scan, and create a DuckDB view with the name that queries use."""
    table = epoch.table(name)
    database.register(relation, scan(epoch.warehouse, table.path, table.version))
    own = [column for column in database.table(relation).columns if not column.startswith(HIDDEN)]
    columns = ", ".join(map(_quoted, own))
    mirror = TableName.parse(name) if table.kind == "mirror" else None
    bare = name if mirror is None else mirror.table
    if mirror is not None:
        database.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(mirror.schema)}")
        database.execute(
            f"CREATE VIEW {_quoted(mirror.schema)}.{_quoted(bare)} AS SELECT {columns} FROM memory.main.{relation}"
        )
    if mirror is None or mirror.schema == "public":
        database.execute(f"CREATE OR REPLACE VIEW main.{_quoted(bare)} AS SELECT {columns} FROM {relation}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unavailable(epoch: PublishedEpoch, name: str) -> TableUnavailable:
    table = epoch.table(name)
    return TableUnavailable(
        f'table "{name}": version {table.version} of {table.path} cannot be read',
        hint="its files were removed by a vacuum, or the warehouse is damaged; read a newer epoch",
    )
