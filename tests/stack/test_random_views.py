"""Random views over random histories: what is maintained equals the answer of Postgres over the same rows.

Postgres shares no code with DuckDB, Spark or the planner, so a misreading of SQL that these share cannot hide. The
views are those of tests/unit/incremental whose SQL is portable. A failure names the seed of its examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, LiteralString, Self, cast

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql

from cdc_views.engine.views.view_tables import own_columns
from cdc_views.source.connection import Connection
from tests.samples import EXAMPLES
from tests.seed import naming_the_seed, randomly
from tests.unit.incremental.memory import NAN, TYPES, Memory, Row, State, Table, View, tuples
from tests.unit.incremental.random_example import Example, example

POSTGRES_TYPES: Final = {name: kind for name, (kind, _) in TYPES.items()} | {"decimal": "numeric(8, 2)"}
NOT_PORTABLE: Final = ("SEMI JOIN", "ANTI JOIN", "QUALIFY", "AS items")
SPELLINGS: Final[dict[str, str]] = {
    "AS STRING": "AS TEXT",
    "AS DOUBLE": "AS DOUBLE PRECISION",
    "grouping_id(": "grouping(",
}
# Spark's functions of ordered lists.
FUNCTIONS: Final[Sequence[LiteralString]] = (
    "CREATE FUNCTION with_known(text[], text) RETURNS text[] IMMUTABLE LANGUAGE sql"
    " RETURN CASE WHEN $2 IS NULL THEN $1 ELSE $1 || $2 END",
    "CREATE AGGREGATE collect_list(text) (SFUNC = with_known, STYPE = text[], INITCOND = '{}')",
    "CREATE FUNCTION sort_array(text[]) RETURNS text[] IMMUTABLE LANGUAGE sql"
    " RETURN ARRAY(SELECT v FROM unnest($1) v ORDER BY v)",
    "CREATE FUNCTION array_join(text[], text) RETURNS text IMMUTABLE LANGUAGE sql RETURN array_to_string($1, $2)",
)


class UnequalAnswer(AssertionError):
    """A maintained view differs from the answer of Postgres."""


class Oracle:
    """Tables and views in Postgres, which are gone after the block."""

    def __init__(self, server: Connection, tables: Sequence[Table]) -> None:
        self._server = server
        self._tables = tables

    def __enter__(self) -> Self:
        for table in self._tables:
            columns = ", ".join(f"{name} {POSTGRES_TYPES[kind]}" for name, kind in table.columns.items())
            self._execute(f"CREATE TEMP TABLE {table.name} ({columns})")
        return self

    def __exit__(self, *error: object) -> None:
        self._execute("DISCARD TEMP")

    def declare(self, views: Mapping[str, str]) -> list[str]:
        """Create the views whose SQL is portable; returns their names."""
        found = []
        for name, text in views.items():
            if any(word in text for word in NOT_PORTABLE):
                continue
            # After USING, Postgres finds more names ambiguous than Spark. A view over one that is not here is not here.
            with suppress(psycopg.errors.AmbiguousColumn, psycopg.errors.UndefinedTable):
                self._execute(f"CREATE TEMP VIEW {name} AS {in_postgres(text)}")
                found.append(name)
        return found

    def fill(self, state: State) -> None:
        """Give the tables these rows."""
        for table in self._tables:
            self._execute(f"TRUNCATE {table.name}")
            for row in state[table.name]:
                self._execute(f"INSERT INTO {table.name} VALUES ({', '.join(['%s'] * len(row))})", row)

    def rows(self, view: str) -> list[Row] | None:
        """The rows of a view, as `tuples` gives them; None if Postgres has no plan for its full join."""
        try:
            found = self._execute(f"SELECT * FROM {view}").fetchall()
        except psycopg.errors.FeatureNotSupported as error:
            if "FULL JOIN" not in str(error):
                raise
            return None
        return [tuple(NAN if value != value else value for value in row) for row in found]

    def _execute(self, text: str, values: Row = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._server.execute(sql.SQL(cast("LiteralString", text)), values or None)


def as_run(view: View) -> str:
    """The SQL of a view with the orders that it runs with: without a key, rows that tie may differ."""
    return view.compiled.query({source: source.removeprefix("public.") for source in view.compiled.inputs})


def in_postgres(text: str) -> str:
    """The SQL of a view in Postgres's spelling."""
    for ours, theirs in SPELLINGS.items():
        text = text.replace(ours, theirs)
    return text


@pytest.fixture(scope="module")
def server(answering: Connection) -> Connection:
    """A server that knows the functions of ordered lists."""
    answering.prepare_threshold = None  # the tables of the next example have the same names
    for statement in FUNCTIONS:
        answering.execute(statement)
    return answering


def stored(view: View) -> Counter[Row]:
    """The maintained rows of a view."""
    rows: pa.Table = view.stored.versions[-1]
    return Counter(tuples(rows.select(own_columns(view.compiled, view.stored.spec))))


def check(server: Connection, drawn: Example, counts: Counter[str]) -> None:
    """Compare what the views hold with the answers after every epoch. Raises UnequalAnswer."""
    memory = drawn.memory
    with Oracle(server, memory.tables) as oracle:
        names = oracle.declare({name: as_run(memory.views[name]) for name in drawn.views})
        for state in drawn.epochs():
            oracle.fill(state)
            for view in (memory.views[name] for name in names if memory.views[name].plan.text is not None):
                answer = oracle.rows(view.name)
                if answer is None:
                    continue
                counts["answers"] += 1
                counts["rows"] += len(answer)
                if stored(view) != Counter(answer):
                    raise UnequalAnswer(f'view "{view.name}" has {stored(view)}, Postgres {answer}: {drawn.views}')


def test_answer_that_differs_is_noticed(server: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory([Table("t", {"id": "int", "k": "int"}, ("id",))])
    views = {"v": "SELECT id FROM t WHERE k = 1"}
    memory.declare(views)
    drawn = Example(memory, views, [{"t": [(1, 1), (2, 2)]}], Counter())
    monkeypatch.setitem(SPELLINGS, "k = 1", "k <> 1")
    with pytest.raises(UnequalAnswer, match=r'view "v" has Counter\({\(1,\): 1}\), Postgres \[\(2,\)\]'):
        check(server, drawn, Counter())


@pytest.mark.timeout(max(600, EXAMPLES))
def test_maintained_view_equals_the_answer_of_postgres_after_every_epoch(server: Connection) -> None:
    counts: Counter[str] = Counter()

    @randomly(EXAMPLES)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        drawn = example(data)
        if drawn is not None:
            check(server, drawn, counts)

    with naming_the_seed():
        run()
        assert counts["answers"] > EXAMPLES / 2, counts
        assert counts["rows"] > EXAMPLES / 2, counts
