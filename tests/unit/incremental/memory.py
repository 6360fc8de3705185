"""A project in memory: tables and views as lists of versions, and DuckDB for the queries.

The view goes through the real compiler, plan and strategy. Only the warehouse and Spark are stand-ins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from warnings import catch_warnings

import duckdb
import numpy as np
import pyarrow as pa

from cdc_views.base.names import TableName
from cdc_views.base.python_values import plain_values
from cdc_views.engine.views.inputs import InputVersions
from cdc_views.engine.views.strategies import Incremental, Plan, TooMany, add, add_groups, keys, patch
from cdc_views.engine.views.view_tables import BAG_KEY, BOX, HASH, NUMBER, column_types, own_columns, view_path
from cdc_views.metrics import Ways
from cdc_views.plan.compiled import CompiledView, compile_view
from cdc_views.plan.incremental.expressions.internal_view import internal_views
from cdc_views.plan.incremental.maintenance import PLAN_FAILED, Maintenance, StoredPart, maintenance
from cdc_views.store.index.changed_rows import RowsChanged
from cdc_views.store.warehouse import Changes, TableSpec
from cdc_views.views.definition import ViewDefinition, parse_view
from cdc_views.views.graph import ViewGraph
from cdc_views.views.kinds import KINDS
from tests.unit.incremental.lists_in_duckdb import in_duckdb

TYPES: Final = {
    "int": ("int4", pa.int32()),
    "bigint": ("int8", pa.int64()),
    "text": ("text", pa.string()),
    "decimal": ("numeric", pa.decimal128(8, 2)),
    "date": ("date", pa.date32()),
    "bool": ("bool", pa.bool_()),
    "float": ("float4", pa.float32()),
    "double": ("float8", pa.float64()),
}
NAN: Final = float("nan")
_ENOUGH: Final = 1_000_000

Row = tuple[Any, ...]
State = Mapping[str, Sequence[Row]]
"""The rows of each table, each with the values of its columns in order."""


@dataclass(frozen=True)
class Table:
    """A source table: the types of its columns by name, its primary key, and what it declares NOT NULL."""

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]
    not_null: frozenset[str] = frozenset()

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, TYPES[kind][1]) for name, kind in self.columns.items()])


@dataclass
class Stored:
    """A table or a view: its rows at each version."""

    spec: TableSpec
    versions: list[pa.Table]

    def lookup(self, version: int, wanted: pa.Table, columns: Collection[str] | None) -> pa.Table:
        """The rows whose columns equal those of one of the keys; NULL finds NULL."""
        names = wanted.column_names
        assert wanted.schema.types == [self.spec.schema.field(name).type for name in names], "keys of other types"
        known = set(tuples(wanted))
        rows = self.versions[version]
        kept = [number for number, row in enumerate(tuples(rows.select(names))) if row in known]
        wanted_names = self.spec.schema.names if columns is None else [*names, *columns]
        return rows.take(pa.array(kept, pa.int64())).select([n for n in self.spec.schema.names if n in wanted_names])

    def delta(self, of: InputVersions, columns: Collection[str]) -> RowsChanged:
        """The rows that only one of two versions has, as bags."""
        assert columns
        schema = pa.schema([field for field in self.spec.schema if field.name in columns])
        old, new = (_bag(self.versions[version].select(schema.names)) for version in (of.old, of.new))
        gone, added = ([row for row, _ in each.elements()] for each in (old - new, new - old))
        return RowsChanged(table_of(schema, gone), table_of(schema, added))


@dataclass
class View:
    """A view of the project: how it is maintained, and its rows at each version."""

    compiled: CompiledView
    plan: Maintenance
    stored: Stored

    @property
    def name(self) -> str:
        return self.compiled.definition.name


@dataclass
class Memory:
    """Tables and the views over them.

    `weak_hash` gives many rows of bags the same hash. `repeats`: each epoch is maintained again. It changes nothing,
    or in views of ADD, which adds to the rows before the epoch, it changes these as before.
    `by_keys` counts the epochs of views that were maintained by KEYS, ADD or PATCH, `in_full` the others of such views.
    """

    tables: Sequence[Table]
    weak_hash: bool = False
    stored: dict[str, Stored] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    repeats: bool = False
    by_keys: int = 0
    ways: Ways = field(default_factory=Ways)
    in_full: int = 0
    task_rows: int = _ENOUGH
    driver_rows: int = _ENOUGH
    lookup_keys: int = _ENOUGH
    delta_rows: int = _ENOUGH

    def __post_init__(self) -> None:
        for table in self.tables:
            name = f"public.{table.name}"
            path = f"mirrors/public/{table.name}/1"
            spec = TableSpec(name, path, table.schema, table.key, not_null=table.not_null)
            self.stored[name] = Stored(spec, [spec.schema.empty_table()])

    def declare(self, views: Mapping[str, str]) -> None:
        """Add views, parents first, with their rows over the tables so far. Raises what the compiler raises."""
        definitions: list[ViewDefinition] = []
        names = [TableName("public", table.name) for table in self.tables]
        for name, sql in views.items():
            definitions.append(parse_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}", Path(f"{name}.sql")))
            self._add(definitions[-1], ViewGraph(definitions, names))

    def declare_as_written(self, *statements: str) -> View:
        """Add views, parents first, given by their whole statements; returns the last one."""
        definitions: list[ViewDefinition] = []
        names = [TableName("public", table.name) for table in self.tables]
        for statement in statements:
            definitions.append(parse_view(statement, Path(f"{statement.split()[3]}.sql")))
            self._add(definitions[-1], ViewGraph(definitions, names))
        return self.views[definitions[-1].name]

    def _add(self, definition: ViewDefinition, graph: ViewGraph) -> None:
        schemas = {f"public.{each.name}": {n: TYPES[t][0] for n, t in each.columns.items()} for each in self.tables}
        table_keys = {f"public.{each.name}": each.key for each in self.tables if each.key}
        view_keys = {name: view.compiled.key for name, view in self.views.items() if view.compiled.key is not None}
        compiled = compile_view(definition, graph, schemas, {**table_keys, **view_keys})
        for view in self._with_internal(compiled, {**table_keys, **view_keys}):
            self.stored[view.name], self.views[view.name] = view.stored, view

    def _with_internal(self, compiled: CompiledView, keys: Mapping[str, tuple[str, ...]], depth: int = 0) -> list[View]:
        """A view after its internal views, each after those that it needs itself; these need no others."""
        view = self._planned(compiled, ())
        types = {source: column_types(self.stored[source].spec) for source in compiled.inputs}
        internal = list(internal_views(compiled, view.plan.wanted, types, keys)) if depth < 2 else []
        groups = [(each, self._with_internal(each.compiled, keys, depth + 1)) for each in internal]
        usable = [
            (each, group)
            for each, group in groups
            if each.is_usable(column_types(group[-1].stored.spec), group[-1].plan.strategy)
        ]
        stored = [each.stored(column_types(group[-1].stored.spec)) for each, group in usable]
        with_internal = self._planned(compiled, stored) if stored else view
        used = with_internal.plan.internal_views
        if not used:
            return [view]
        return [*(one for each, group in usable if each.name in used for one in group), with_internal]

    def _planned(self, compiled: CompiledView, internal: Sequence[StoredPart]) -> View:
        """A view with its rows over the tables so far."""
        definition = compiled.definition
        latest = {source: len(self.stored[source].versions) - 1 for source in compiled.inputs}
        rows = self.run_full(compiled, None, latest)
        assert compiled.parsed is not None
        names = compiled.parsed.tree.named_selects
        if compiled.columns is None and len(names) == rows.num_columns and "*" not in names:
            rows = rows.rename_columns(names)  # DuckDB spells a column as its table does
        schema = rows.schema
        key = compiled.key
        if key is None:
            key = BAG_KEY
            schema = schema.append(pa.field(HASH, pa.int64())).append(pa.field(NUMBER, pa.int32()))
        kind = KINDS[definition.kind].record(
            definition.kind_options, {each.name: str(each.type) for each in schema}, compiled.key
        )
        spec = TableSpec(definition.name, view_path(compiled), schema, key, kind={"kind": definition.kind, **kind})
        types = {source: column_types(self.stored[source].spec) for source in compiled.inputs}
        own = {column: str(schema.field(column).type) for column in own_columns(compiled, spec)}
        row_keys = {source: self.stored[source].spec.key for source in compiled.inputs}
        not_null = {source: self.stored[source].spec.not_null for source in compiled.inputs}
        plan = maintenance(compiled, types, own, row_keys, internal, not_null)
        assert PLAN_FAILED not in plan.reason, plan.reason
        return View(compiled, plan, Stored(spec, [self.identified(rows, compiled)]))

    # ---- an epoch

    def epoch(self, state: State) -> None:
        """Give the tables new rows and maintain the views; a table without changes keeps its version.

        Raises UnequalView if a view that was maintained by its changes differs from its SQL.
        """
        old = self.write(state)
        for view in self.views.values():
            if any(old[source] != len(self.stored[source].versions) - 1 for source in view.compiled.inputs):
                self._maintain(view, old)

    def write(self, state: State) -> dict[str, int]:
        """Give the tables new rows; returns the versions before."""
        old = {name: len(stored.versions) - 1 for name, stored in self.stored.items()}
        for table in self.tables:
            stored = self.stored[f"public.{table.name}"]
            rows = table_of(table.schema, state[table.name])
            if _bag(rows) != _bag(stored.versions[-1]):
                stored.versions.append(rows)
        return old

    def _maintain(self, view: View, old: Mapping[str, int]) -> None:
        if view.plan.text is None and not self._is_read(view):
            return
        wanted = self.run_full(view.compiled, own_columns(view.compiled, view.stored.spec), self._latest(view))
        if view.plan.text is None:
            self._commit(view, self.identified(wanted, view.compiled))
            return
        try:
            rows = self._after(view, self.changes(view, old))
        except TooMany:
            self.in_full += 1
            self._commit(view, self.identified(wanted, view.compiled))
            return
        self._commit(view, rows)
        found = rows.select(own_columns(view.compiled, view.stored.spec))
        missing, extra = Counter(tuples(wanted)), Counter(tuples(found))
        self.by_keys += 1
        if missing != extra:
            raise UnequalView(view, list((missing - extra).elements()), list((extra - missing).elements()))
        if self.repeats:
            self._repeat(view, old)

    def _repeat(self, view: View, old: Mapping[str, int]) -> None:
        """Maintain the epoch of a view again, as after a crash."""
        rows = view.stored.versions[-1]
        adds = view.plan.adds is not None or view.plan.group_adds is not None
        if adds:
            del view.stored.versions[-1]
        try:
            again = self._after(view, self.changes(view, old))
        except TooMany:  # then it would be computed in full
            again = rows
        if adds:
            self._commit(view, rows)
        assert _bag(again) == _bag(rows), f"repeated, the epoch gives {again} instead of {rows}"

    def _is_read(self, view: View) -> bool:
        return any(view.name in other.compiled.inputs for other in self.views.values())

    def _after(self, view: View, changes: Changes | None) -> pa.Table:
        """The rows of a view after its changes. Each change is one that a commit may make."""
        rows = view.stored.versions[-1]
        if changes is None:
            return rows
        key = list(view.stored.spec.key)
        gone = set(tuples(changes.deleted.select(key))) if changes.deleted is not None else set()
        new = tuples(changes.rows.select(key))
        assert len(new) == len(set(new)), "a key twice in the new rows"
        gone |= set(new)
        kept = [number for number, row in enumerate(tuples(rows.select(key))) if row not in gone]
        return pa.concat_tables([rows.take(pa.array(kept, pa.int64())), changes.rows])

    def _commit(self, view: View, rows: pa.Table) -> None:
        view.stored.versions.append(rows)

    def _latest(self, view: View) -> dict[str, int]:
        return {source: len(self.stored[source].versions) - 1 for source in view.compiled.inputs}

    def changes(self, view: View, old: Mapping[str, int]) -> Changes | None:
        """The changes that the view's strategy gives."""
        if view.plan.adds is not None:
            return add(self._work(view, old, view.plan.adds))
        if view.plan.patch is not None:
            try:
                return patch(self._work(view, old, view.plan.patch))
            except TooMany:
                if view.plan.keys is None:
                    raise
                self.ways.took("view", view.name, "keys")
        if view.plan.group_adds is not None:
            try:
                return add_groups(self._work(view, old, view.plan.group_adds))
            except TooMany:
                if view.plan.keys is None:
                    raise
                self.ways.took("view", view.name, "keys")
        assert view.plan.keys is not None
        return keys(self._work(view, old, view.plan.keys))

    def _delta(self, of: InputVersions, columns: Collection[str]) -> RowsChanged | None:
        delta = self.stored[of.spec.name].delta(of, columns)
        return delta if delta.old.num_rows + delta.new.num_rows <= self.delta_rows else None

    def _first_rows(
        self, of: InputVersions, column: str, most: int, columns: Collection[str], *, is_largest: bool
    ) -> pa.Table:
        rows = self.stored[of.spec.name].versions[of.new]
        values = plain_values(rows.column(column))
        numbers = [number for number, value in enumerate(values) if value is not None]
        numbers.sort(key=values.__getitem__, reverse=is_largest)
        names = [name for name in rows.column_names if name in (column, *columns)]
        return rows.take(pa.array(numbers[:most], pa.int64())).select(names)

    def _work(self, view: View, old: Mapping[str, int], plan: Plan) -> Incremental[Plan]:
        assert view.plan.text is not None
        versions = {
            source: InputVersions(self.stored[source].spec, old[source], len(self.stored[source].versions) - 1)
            for source in (*view.compiled.inputs, *view.plan.internal_views)
        }
        fake: Any = self
        base = len(view.stored.versions) - 1
        spec = view.stored.spec
        inputs: Any = SimpleNamespace(
            delta=self._delta,
            lookup=lambda of, version, wanted, columns: self.stored[of.spec.name].lookup(version, wanted, columns),
            first_rows=self._first_rows,
            row_count=lambda of: self.stored[of.spec.name].versions[-1].num_rows,
        )
        return Incremental(view.compiled, spec, base, plan, view.plan.text, inputs, versions, fake, fake)

    # ---- the warehouse and the queries, as the strategies call them

    def rows(self, spec: TableSpec, version: int) -> pa.Table:
        return self.stored[spec.name].versions[version]

    def is_small(self, path: str) -> bool:
        return True

    def row_count(self, path: str) -> int:
        return next(each.versions[-1].num_rows for each in self.stored.values() if each.spec.path == path)

    def find(
        self, spec: TableSpec, version: int, wanted: pa.Table, columns: Collection[str] | None = None
    ) -> pa.Table | None:
        if wanted.num_rows > self.lookup_keys:
            return None
        found = self.stored[spec.name].lookup(version, wanted, columns)
        return found if found.num_rows <= self.driver_rows else None

    def counts(self, spec: TableSpec, version: int, wanted: pa.Table) -> Any:
        known = Counter(tuples(self.stored[spec.name].versions[version].select(wanted.column_names)))
        return np.array([known[key] for key in tuples(wanted)], np.int64)

    def run(
        self,
        query: Callable[[Callable[[Any], str]], str],
        rows: Mapping[Any, pa.Table],
        view: CompiledView,
        columns: Sequence[str],
    ) -> pa.Table:
        names = {key: f"_cv_small_{number}" for number, key in enumerate(rows)}
        found = self._query(query(names.__getitem__), columns, {names[key]: table for key, table in rows.items()})
        return self.identified(found, view)

    def run_full(self, view: CompiledView, columns: Sequence[str] | None, versions: Mapping[str, int]) -> pa.Table:
        """The SQL of a view over whole tables."""
        names = {source: f"_cv_input_{number}" for number, source in enumerate(view.inputs)}
        rows = {}
        for source, name in names.items():
            stored = self.stored[source]
            visible = InputVersions(stored.spec, 0, 0).columns
            rows[name] = stored.versions[versions[source]].select(visible)
        return self._query(view.query(names), columns, rows)

    def _query(self, sql: str, columns: Sequence[str] | None, rows: Mapping[str, pa.Table]) -> pa.Table:
        content = [
            (name, table.schema, [column.to_pylist() for column in table.columns]) for name, table in rows.items()
        ]
        found = _answer(_Question(sql, repr(content), rows))
        return found if columns is None else found.rename_columns(list(columns))

    def identified(self, rows: pa.Table, view: CompiledView) -> pa.Table:
        """The rows, with the hidden columns of a bag: a hash, and a number among the rows of the same hash."""
        if view.key is not None:
            return rows
        boxes = rows.column(BOX).to_pylist() if BOX in rows.column_names else [0] * rows.num_rows
        own = tuples(rows.select([name for name in rows.column_names if name != BOX]))
        counts, numbers = Counter[tuple[int, int]](), {}
        for number, row in sorted(enumerate(own), key=lambda each: repr(each[1])):
            code = hash(row) % 3 if self.weak_hash else hash(row)
            counts[code, boxes[number]] += 1
            numbers[number] = code, counts[code, boxes[number]]
        hashes = [numbers[number] for number in range(rows.num_rows)]
        with_hash = rows.append_column(HASH, pa.array([each for each, _ in hashes], pa.int64()))
        return with_hash.append_column(NUMBER, pa.array([each for _, each in hashes], pa.int32()))


class UnequalView(AssertionError):
    """A maintained view differs from its SQL."""

    def __init__(self, view: View, missing: list[Row], extra: list[Row]) -> None:
        super().__init__(f'view "{view.name}" lacks {missing[:5]} and has {extra[:5]}: {view.compiled.definition.sql}')


@dataclass(frozen=True)
class _Question:
    """A query over tables by name; `content` is theirs as text, in which 0.0 and -0.0 differ and NaN does not."""

    sql: str
    content: str
    rows: Mapping[str, pa.Table] = field(compare=False)


@lru_cache(2000)  # a quarter of the queries repeat an earlier one: of the plan before, or of a view over empty tables
def _answer(question: _Question) -> pa.Table:
    database = _database()
    for name, table in question.rows.items():
        database.register(name, table)
    try:
        with catch_warnings(action="ignore"):  # `sql` would not copy the few rows, but binds the query twice
            return database.execute(in_duckdb(question.sql).replace("`", '"')).to_arrow_table()
    finally:
        for name in question.rows:
            database.unregister(name)


@cache
def _database() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'; SET threads = 1; PRAGMA disable_optimizer")
    return database


def tuples(rows: pa.Table) -> list[Row]:
    """The rows as tuples, equal where Spark takes their values for equal. A table without columns has one row: ()."""
    return list(zip(*map(_values, rows.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    values = column.to_pylist()
    if pa.types.is_nested(column.type):
        return [_frozen(value) for value in values]
    return [NAN if value != value else value for value in values] if pa.types.is_floating(column.type) else values


def _frozen(value: Any) -> Any:
    """A nested value, to be put into a set."""
    if isinstance(value, dict):
        return tuple(_frozen(each) for each in value.values())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _bag(rows: pa.Table) -> Counter[tuple[Row, str]]:
    """How often each row occurs; -0.0 differs from 0.0."""
    return Counter((row, str(row)) for row in tuples(rows))


def table_of(schema: pa.Schema, rows: Sequence[Row] | Iterator[Row]) -> pa.Table:
    """Rows as an Arrow table."""
    listed = list(rows)
    columns = list(zip(*listed, strict=True)) or [()] * len(schema)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )
