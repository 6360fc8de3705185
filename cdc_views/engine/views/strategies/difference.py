"""The difference between two states of a view in the driver's memory, by key.

DuckDB does the joins. For a few rows of types whose values Python compares as Spark does, that takes longer than to
compare the rows in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

import duckdb
import pyarrow as pa

from cdc_views.base.python_values import plain_values

_ROW: Final = "_cv_row"
_FEW_ROWS: Final = 2000


def difference(recomputed: pa.Table, stored: pa.Table, key: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """The keys that only `stored` has, and the rows of `recomputed` that are new or changed.

    Both tables have the same columns and each key at most once. NULL equals NULL, in keys and in other columns. The key
    -0.0 is that of 0.0, but a row in which one took the place of the other has changed: CAST(x AS STRING) shows it.
    """
    if _are_few(recomputed) and _are_few(stored):
        return _difference_of_few(recomputed, stored, key)
    with _database().cursor() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("new", _numbered(recomputed))
        database.register("old", _numbered(stored))
        other = database.sql(
            f"SELECT new.{_ROW} FROM new LEFT JOIN old ON {_same(key)} "
            f"WHERE old.{_ROW} IS NULL OR NOT ({_same(recomputed.column_names)} AND {_same_signs(recomputed.schema)})"
        ).to_arrow_table()
        vanished = database.sql(f"SELECT old.{_ROW} FROM old ANTI JOIN new ON {_same(key)}").to_arrow_table()
    return stored.take(vanished[_ROW]).select(list(key)), recomputed.take(other[_ROW])


def is_unique(rows: pa.Table, key: Sequence[str]) -> bool:
    """Whether no two rows have the same key. NULL equals NULL; with an empty key there may be at most one row."""
    if not key or rows.num_rows < 2:
        return bool(rows.num_rows < 2)
    if _are_few(keys := rows.select(list(key))):
        return len(set(tuples(keys))) == int(rows.num_rows)
    columns = ", ".join(_quoted(name) for name in key)
    with _database().cursor() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("keys", rows.select(list(key)))
        copies = f"SELECT 1 FROM keys GROUP BY {columns} HAVING count(*) > 1 LIMIT 1"
        found: pa.Table = database.sql(copies).to_arrow_table()
    return bool(found.num_rows == 0)


def _are_few(rows: pa.Table) -> bool:
    """Whether there are few rows, and no floats (-0.0 and NaN) and no nested values."""
    return rows.num_rows <= _FEW_ROWS and not any(
        pa.types.is_nested(field.type) or pa.types.is_floating(field.type) for field in rows.schema
    )


def has_floats(type_: pa.DataType) -> bool:
    """Whether values of a type are floats, or have floats in them."""
    inside = (type_.field(number).type for number in range(type_.num_fields))
    return bool(pa.types.is_floating(type_)) or any(map(has_floats, inside))


def _difference_of_few(recomputed: pa.Table, stored: pa.Table, key: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    places = [recomputed.column_names.index(name) for name in key]
    new = {tuple(row[place] for place in places): row for row in tuples(recomputed)}
    old = {tuple(row[place] for place in places): row for row in tuples(stored.select(recomputed.column_names))}
    vanished = [number for number, each in enumerate(old) if each not in new]
    other = [number for number, (each, row) in enumerate(new.items()) if each not in old or old[each] != row]
    return stored.take(pa.array(vanished, pa.int64())).select(list(key)), recomputed.take(pa.array(other, pa.int64()))


def tuples(rows: pa.Table) -> list[tuple[object, ...]]:
    """The rows, without floats and nested values, for comparison with others of the same types."""
    return list(zip(*map(plain_values, rows.columns), strict=True))


@cache
def _database() -> duckdb.DuckDBPyConnection:
    # To open a new database takes 26 ms; another connection to this one takes no time.
    return duckdb.connect()


def _numbered(rows: pa.Table) -> pa.Table:
    return rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))


def _same(columns: Iterable[str]) -> str:
    return " AND ".join(f"new.{name} IS NOT DISTINCT FROM old.{name}" for name in map(_quoted, columns)) or "TRUE"


def _same_signs(schema: pa.Schema) -> str:
    """The condition that floats that are equal have the same sign: -0.0 equals 0.0, but each NaN is the same."""
    names = [_quoted(field.name) for field in schema if has_floats(field.type)]
    return " AND ".join(f"{_shown('new', name)} IS NOT DISTINCT FROM {_shown('old', name)}" for name in names) or "TRUE"


def _shown(side: str, name: str) -> str:
    return f"replace(CAST({side}.{name} AS VARCHAR), '-nan', 'nan')"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
