"""The differences between two versions of a table, row by row: counts and a few samples. DuckDB compares."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from cdc_views.base.names import HIDDEN
from cdc_views.base.python_values import python_rows
from cdc_views.engine.tables import Tables
from cdc_views.store.control import ControlRecord, TableVersion, known_attempts, read_control
from cdc_views.store.reading import scan
from cdc_views.store.warehouse import TableSpec, Warehouse

SAMPLES: Final = 5
_THERE: Final = "_cv_there"
_BOTH: Final = "NOT only_old AND NOT only_new"
# The sum of floats depends on the order of the rows.
_TOLERANCE: Final = 1e-9


@dataclass(frozen=True)
class ShadowDifference:
    """The differences between the live table (old) and its shadow table (new) at one epoch.

    `only_old`, `only_new` and `different` count rows by key. `columns` maps each column to the number of different
    rows in which it differs. `samples` are a few rows of each kind, as JSON objects. `note` describes a commit of
    another writer to the live table.
    """

    table: str
    old: TableVersion
    new: TableVersion
    only_old: int
    only_new: int
    different: int
    columns: dict[str, int] = field(default_factory=dict)
    samples: list[dict[str, Any]] = field(default_factory=list)
    note: str | None = None

    @property
    def is_equal(self) -> bool:
        """Whether both tables have the same rows."""
        return not (self.only_old or self.only_new or self.different)


def compare_tables(root: Path, shadows: Tables, published: ControlRecord) -> list[ShadowDifference]:
    """Compare every shadow table with its live table, as of the published epoch that the shadow tables hold."""
    found = []
    for name, spec in shadows.specs.items():
        live = published.tables[name]
        version, note = _live_version(shadows.warehouse, root, live)
        old = replace(live, version=version)
        new = TableVersion(spec.path, shadows.warehouse.latest_version(spec.path), "shadow", live.kind)
        found.append(compare_versions(root, spec, old, new, note))
    return found


def _live_version(warehouse: Warehouse, root: Path, live: TableVersion) -> tuple[int, str | None]:
    """The published version, or that of a later commit of another writer, which a reader of the path sees.

    The second value describes that commit.
    """
    commits = warehouse.history.commits_above(live.path, live.version)
    # An attempt is in the control log before any table has it. So read the control log after the table, or the engine's
    # next commit would look like another writer's. Warehouse.unknown_commits takes the attempts first, so not that.
    ours = known_attempts(read_control(root))
    foreign = [
        commit
        for commit in commits
        if commit.changes_content and (commit.stamp is None or commit.stamp.attempt not in ours)
    ]
    if not foreign:
        return live.version, None
    return foreign[-1].version, f"version {foreign[-1].version} was written by somebody else ({foreign[-1].operation})"


def compare_versions(
    root: Path, spec: TableSpec, old: TableVersion, new: TableVersion, note: str | None
) -> ShadowDifference:
    """Compare two versions of a table by the key and columns of `spec`. Raises TableUnavailable."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for side, table in (("old", old), ("new", new)):
            database.register(f"stored_{side}", scan(root, table.path, table.version))
            # The copies of a row are numbered: after a commit of another writer a table may have a key twice.
            copies = f"row_number() OVER (PARTITION BY {', '.join(map(_name, spec.key)) or '1'}) AS {_THERE}"
            database.execute(f"CREATE VIEW {side} AS SELECT *, {copies} FROM stored_{side}")
        others = [column for column in spec.schema.names if column not in spec.key]
        # A mirror holds the values of Postgres; a view may hold sums of floats.
        rounded = _rounded_columns(spec) if old.kind == "view" else frozenset()
        database.execute(_pairs(spec, others, rounded))
        only_old, only_new, different = _row(database, "FILTER (only_old)", "FILTER (only_new)", f"FILTER ({_BOTH})")
        in_columns = _row(database, *(f"FILTER ({_BOTH} AND {_name('differs', column)})" for column in others))
        samples = [
            _sample(kind, row, spec, others)
            for kind, where in (("only_old", "only_old"), ("only_new", "only_new"), ("different", _BOTH))
            for row in python_rows(database.sql(f"SELECT * FROM pairs WHERE {where} LIMIT {SAMPLES}").to_arrow_table())
        ]
    columns = {column: count for column, count in zip(others, in_columns, strict=True) if count}
    return ShadowDifference(spec.name, old, new, only_old, only_new, different, columns, samples, note)


def _pairs(spec: TableSpec, others: Sequence[str], rounded: Collection[str]) -> str:
    """The statement that pairs the unequal rows of both sides by key; `rounded` columns need not be exactly equal."""
    same_key = [f"old.{_THERE} = new.{_THERE}", *(_same(column) for column in spec.key)]
    differs = {column: f"NOT ({(_nearly_same if column in rounded else _same)(column)})" for column in others}
    shown = [f"old.{_THERE} IS NULL AS only_new", f"new.{_THERE} IS NULL AS only_old"]
    for column in spec.schema.names:
        shown += [f"{side}.{_name(column)} AS {_name(side, column)}" for side in ("old", "new")]
    shown += [f"{condition} AS {_name('differs', column)}" for column, condition in differs.items()]
    unequal = [f"old.{_THERE} IS NULL", f"new.{_THERE} IS NULL", *differs.values()]
    return (
        f"CREATE TEMP TABLE pairs AS SELECT {', '.join(shown)} FROM old FULL JOIN new ON {' AND '.join(same_key)} "
        f"WHERE {' OR '.join(unequal)}"
    )


def _sample(kind: str, row: dict[str, Any], spec: TableSpec, others: Sequence[str]) -> dict[str, Any]:
    def values(side: str, columns: Sequence[str]) -> dict[str, Any]:
        return {column: row[f"{side} {column}"] for column in columns if not column.startswith(HIDDEN)}

    if kind != "different":
        return {"kind": kind, "row": values(kind.removeprefix("only_"), spec.schema.names)}
    changed = [column for column in others if row[f"differs {column}"]]
    return {"kind": kind, "key": values("old", spec.key), "old": values("old", changed), "new": values("new", changed)}


def _row(database: duckdb.DuckDBPyConnection, *filters: str) -> tuple[int, ...]:
    if not filters:
        return ()
    [row] = database.execute(f"SELECT {', '.join(f'count(*) {each}' for each in filters)} FROM pairs").fetchall()
    return tuple(row)


def _rounded_columns(spec: TableSpec) -> frozenset[str]:
    return frozenset(field.name for field in spec.schema if pa.types.is_floating(field.type))


def _nearly_same(column: str) -> str:
    old, new = f"old.{_name(column)}", f"new.{_name(column)}"
    return (
        f"({_same(column)} OR coalesce(abs({old} - {new}) <= {_TOLERANCE} * greatest(abs({old}), abs({new})), false))"
    )


def _same(column: str) -> str:
    return f"old.{_name(column)} IS NOT DISTINCT FROM new.{_name(column)}"


def _name(*parts: str) -> str:
    return '"' + " ".join(parts).replace('"', '""') + '"'
