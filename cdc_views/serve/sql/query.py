"""Answers SQL over the published epoch: DuckDB over scans by delta-rs, at the versions of the manifest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import duckdb
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from cdc_views.base.names import HIDDEN, TableName, distinct_names
from cdc_views.errors import BadQuery, CdcViewsError, TableUnavailable
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.sql.limits import NO_LIMITS, QueryLimits
from cdc_views.serve.sql.statement import Statement
from cdc_views.store.reading import refused, scan

# DuckDB's message when a registered scan ends with an error.
_UNREADABLE: Final = re.compile(r"reading the (?:stream|schema of the object) registered as '(\w+)' failed")
_LOCKED_DOWN: Final = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
}
# Before a dot, DuckDB takes these for a database.
_DATABASES: Final = frozenset({"memory", "system", "temp"})
_BATCH_ROWS: Final = 16384
# Types whose values DuckDB gives to Arrow in another form, or cut off.
_INEXACT: Final = frozenset({"bignum", "bit", "time with time zone", "time_ns", "uhugeint", "variant"})
_NESTED: Final = frozenset({"array", "list", "map", "struct", "union"})


def query(epoch: PublishedEpoch, sql: str, limits: QueryLimits = NO_LIMITS) -> pa.Table:
    """Answer `sql`, one SELECT that names views as `name` and mirrors as `schema.table`, or as `table` in public.

    Opens only the tables that the query names. Raises BadQuery, ViewFailed, ViewBeingBuilt, the error of a stopped
    table, TableUnavailable, WarehouseUnusable, QueryTooLong, ResultTooLarge.
    """
    with _database(limits) as database, limits.timed(database):
        names = _published_tables(epoch, Statement.parse(database, sql))
        opened = {f"_cv_{number}": name for number, name in enumerate(names)}
        try:
            for relation, name in opened.items():
                _register(database, epoch, name, relation)
            database.execute("SET lock_configuration = true")
            asked = database.sql(sql)
            _require_exact(asked)
            answer = limits.take(asked.to_arrow_reader(_BATCH_ROWS))
        except duckdb.OutOfMemoryException:
            raise limits.out_of_memory() from None
        except (duckdb.Error, OSError) as error:  # OSError: of a batch after the first one
            raise _described(error, epoch, opened) from error
        except pa.ArrowInvalid as error:  # a type that Arrow does not have, or that nests too deeply
            raise BadQuery(
                f"the answer cannot be given as Arrow: {' '.join(str(error).split())}",
                hint="cast the column to a text, or to another type",
            ) from None
        return answer.rename_columns(distinct_names(answer.column_names))


@contextmanager
def _database(limits: QueryLimits) -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database in memory that reads no file, no variable of Python and no extension."""
    with duckdb.connect(config={**_LOCKED_DOWN, **limits.options()}) as database:
        database.execute("SET python_enable_replacements = false")
        database.execute("SET TimeZone = 'UTC'")
        yield database


def _require_exact(relation: duckdb.DuckDBPyRelation) -> None:
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if inexact := next(_inexact(kind), None):
            raise BadQuery(
                f'column "{name}" has type {inexact}, whose values have no exact form in the answer',
                hint="cast it to VARCHAR",
            )


def _inexact(kind: DuckDBPyType) -> Iterator[DuckDBPyType]:
    if kind.id in _INEXACT:
        yield kind
    elif kind.id in _NESTED:
        for _, inner in kind.children:
            if isinstance(inner, DuckDBPyType):  # not the size of an array
                yield from _inexact(inner)


def _published_tables(epoch: PublishedEpoch, statement: Statement) -> list[str]:
    """The names of the tables that a query reads. Raises BadQuery."""
    found = []
    for parts in statement.tables:
        mirror = str(TableName("public" if len(parts) == 1 else parts[0], parts[-1]))
        # A name without a schema is a view, or a mirror in schema public.
        names = [name for name in (parts[0], mirror) if name == mirror or len(parts) == 1]
        known = [name for name in names if name in epoch.tables]
        known = known or [name for name in names if name in epoch.detail.building]  # opening it says how far it is
        if not known or len(parts) > 2:
            raise BadQuery(f'epoch {epoch.number} has no table "{".".join(parts)}"', hint=_tables_of(epoch))
        found += known
    names = list(dict.fromkeys(found))
    _require_places(epoch, names)
    return names


def _require_places(epoch: PublishedEpoch, names: list[str]) -> None:
    """Raise BadQuery for a table that has no place in DuckDB, or the one of another table."""
    taken: dict[tuple[str, str], str] = {}
    for name in names:
        for schema, bare in _places(epoch, name):
            if schema.lower() in _DATABASES:
                raise BadQuery(
                    f'"{name}" cannot be read by SQL: "{schema}" is a database of DuckDB, wanted another schema',
                    hint="declare a view that selects its columns, or read it without SQL",
                )
            if (other := taken.setdefault((schema.lower(), bare.lower()), name)) != name:
                raise BadQuery(f'one query cannot read both "{other}" and "{name}"', hint="write two queries")


def _places(epoch: PublishedEpoch, name: str) -> Iterator[tuple[str, str]]:
    """Schema and name that a table has in DuckDB. Views are in `main`, and so is a mirror of a schema of that name."""
    if name not in epoch.tables or epoch.tables[name].kind != "mirror":
        yield "main", name
        return
    mirror = TableName.parse(name)
    yield mirror.schema, mirror.table
    if mirror.schema == "public":
        yield "main", mirror.table


def _register(database: duckdb.DuckDBPyConnection, epoch: PublishedEpoch, name: str, relation: str) -> None:
    """Register the table's scan, and create a DuckDB view with the name that queries use."""
    table = epoch.table(name)
    database.register(relation, scan(epoch.warehouse, table.path, table.version))
    own = [column for column in database.table(relation).columns if not column.startswith(HIDDEN)]
    columns = ", ".join(map(_quoted, own))
    for schema, bare in _places(epoch, name):
        database.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")
        database.execute(
            f"CREATE VIEW {_quoted(schema)}.{_quoted(bare)} AS SELECT {columns} FROM memory.main.{relation}"
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _described(error: Exception, epoch: PublishedEpoch, opened: dict[str, str]) -> CdcViewsError:
    """Our error for an error of DuckDB: of the query, or of a table that cannot be read."""
    if unreadable := _UNREADABLE.search(str(error)):
        name = opened[unreadable[1]]
        return refused(error, epoch.warehouse / epoch.table(name).path) or _unavailable(epoch, name)
    return BadQuery(" ".join(str(error).split()), hint=_tables_of(epoch))


def _tables_of(epoch: PublishedEpoch) -> str:
    return "tables are " + ", ".join(sorted(epoch.tables))


def _unavailable(epoch: PublishedEpoch, name: str) -> TableUnavailable:
    table = epoch.table(name)
    return TableUnavailable(
        f'table "{name}": version {table.version} of {table.path} cannot be read',
        hint="its files were removed by a vacuum, or the warehouse is damaged; read a newer epoch",
    )
