"""What differs between two states of a view that the driver holds, by key; DuckDB does the joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

import duckdb
import pyarrow as pa

_ROW: Final = "_cv_row"


def difference(recomputed: pa.Table, stored: pa.Table, key: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """The keys of `stored` that `recomputed` no longer has, and the rows of it that are new or other.

    Both have the same columns, and no key twice; NULL equals NULL, in keys and elsewhere.
    """
    with _database().cursor() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("new", _numbered(recomputed))
        database.register("old", _numbered(stored))
        other = database.sql(
            f"SELECT new.{_ROW} FROM new LEFT JOIN old ON {_same(key)} "
            f"WHERE old.{_ROW} IS NULL OR NOT ({_same(recomputed.column_names)})"
        ).to_arrow_table()
        vanished = database.sql(f"SELECT old.{_ROW} FROM old ANTI JOIN new ON {_same(key)}").to_arrow_table()
    return stored.select(list(key)).take(vanished[_ROW]), recomputed.take(other[_ROW])


def is_unique(rows: pa.Table, key: Sequence[str]) -> bool:
    """Whether no two rows have the same key, NULL equal to NULL; at most one row has the empty key."""
    if not key or rows.num_rows < 2:
        return bool(rows.num_rows < 2)
    columns = ", ".join(_quoted(name) for name in key)
    with _database().cursor() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("keys", rows.select(list(key)))
        copies = f"SELECT 1 FROM keys GROUP BY {columns} HAVING count(*) > 1 LIMIT 1"
        found: pa.Table = database.sql(copies).to_arrow_table()
    return bool(found.num_rows == 0)


@cache
def _database() -> duckdb.DuckDBPyConnection:
    # A database of its own takes 26 ms to open, a further connection to this one none.
    return duckdb.connect()


def _numbered(rows: pa.Table) -> pa.Table:
    return rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))


def _same(columns: Iterable[str]) -> str:
    return " AND ".join(f"new.{name} IS NOT DISTINCT FROM old.{name}" for name in map(_quoted, columns)) or "TRUE"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
