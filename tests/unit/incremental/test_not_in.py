"""NOT IN over columns that are declared NOT NULL: KEYS while their tables hold no NULL in them, else FULL.

A mirror may hold such NULLs all the same: of a time before the declaration, or after its end.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Final

import pytest

from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, Row, State, tuples
from tests.unit.incremental.played import check_fails, declared, kept_by, played, random_states
from tests.unit.incremental.zoo import TABLES

strategy: Final = import_module("cdc_views.engine.views.strategies.keys")  # the package has a function of that name
HISTORIES: Final = 60
DECLARED: Final = [replace(table, not_null=frozenset({"k", "g"})) for table in TABLES]
NOT_IN: Final = "SELECT id, k FROM t WHERE k NOT IN (SELECT k FROM u)"
# Each with the columns that must hold no NULL.
VIEWS: Final = {
    NOT_IN: "public.t.k, public.u.k",
    "SELECT id, k FROM t WHERE k IS NOT NULL AND k NOT IN (SELECT g FROM u)": "public.u.g",
    "SELECT id FROM t WHERE NOT (id IN (SELECT g FROM u WHERE s = 'a') AND g = 1)": "public.u.g",
    "SELECT id FROM t WHERE CASE WHEN k IN (SELECT k FROM w) THEN g = 1 ELSE g = 2 END": "public.t.k",
    "SELECT id FROM t WHERE (id, g) NOT IN (SELECT id, g FROM w)": "public.t.g, public.w.g",
    "SELECT id FROM t WHERE k NOT IN (SELECT k FROM u GROUP BY k HAVING count(*) > 1)": "public.t.k, public.u.k",
    "SELECT id FROM t WHERE k NOT IN (SELECT k FROM u UNION SELECT g FROM w)": "public.t.k, public.u.k, public.w.g",
    "SELECT a.id, b.id AS o FROM t a JOIN t b ON a.g = b.k WHERE a.k NOT IN "
    "(SELECT k FROM t WHERE s IS NULL)": "public.t.k",
    "SELECT id, k IN (SELECT k FROM u) AS has FROM t": "public.u.k, public.t.k",
    "SELECT t.id, t.k FROM t LEFT JOIN u ON u.k = t.k WHERE t.g NOT IN (SELECT g FROM w)": "public.t.g, public.w.g",
}
FULL: Final = (
    "SELECT t.id, u.id AS o FROM t LEFT JOIN u ON u.k = t.k WHERE u.g NOT IN (SELECT k FROM w)",
    "SELECT id FROM t WHERE id NOT IN (SELECT w.k FROM u LEFT JOIN w ON w.g = u.g)",
    "SELECT id FROM t WHERE id NOT IN (SELECT k + 1 FROM w)",
    "SELECT id FROM t WHERE id NOT IN (SELECT max(k) FROM u GROUP BY g)",
    "SELECT id FROM t WHERE (k, g) NOT IN (SELECT q.k, q.g FROM (SELECT k, g FROM u WHERE k IS NOT NULL AND "
    "g IS NOT NULL GROUP BY k, ROLLUP (g)) q)",
    "SELECT id FROM t WHERE k NOT IN (SELECT id FROM u WHERE id IN (SELECT k FROM w)) AND s NOT IN (SELECT s FROM u)",
)
maintained = partial(kept_by, "KEYS", DECLARED)


def test_not_in_over_columns_that_are_not_declared_is_full() -> None:
    assert "NOT IN with columns that may be NULL" in declared(TABLES, NOT_IN).views["v"].plan.reason


def of(t: list[int | None], u: list[int | None]) -> State:
    """The rows of `t` and `u` with these values in their column `k`."""
    return {"t": [(n, k, 1, "a") for n, k in enumerate(t)], "u": [(n, k, 1, "a") for n, k in enumerate(u)]}


def rows(memory: Memory) -> list[Row]:
    return sorted(tuples(memory.views["v"].stored.versions[-1]))


@pytest.mark.parametrize("sql", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(sql: str) -> None:
    with naming_the_seed():
        maintained(sql, *random_states(DECLARED, f"{SEED} {sql}", count=3))


@pytest.mark.parametrize(("sql", "columns"), VIEWS.items())
def test_reason_names_the_columns_that_must_hold_no_null(sql: str, columns: str) -> None:
    reason = declared(DECLARED, sql).views["v"].plan.reason
    assert reason.endswith(f"and compared, as long as no row has NULL in {columns}")


@pytest.mark.parametrize("sql", FULL)
def test_not_in_over_a_value_that_no_table_decides_alone_is_full(sql: str) -> None:
    plan = declared(DECLARED, sql).views["v"].plan
    assert (plan.strategy, "NOT IN" in plan.reason) == ("FULL", True)


def in_full(*states: State) -> list[bool]:
    """Whether each epoch after the first was computed in full."""
    memory, found = maintained(NOT_IN, *states[:1]), list[bool]()
    for each in states[1:]:
        before = memory.in_full
        played(memory, [each])
        found.append(memory.in_full > before)
    return found


def test_epoch_is_full_while_a_column_holds_null_and_when_it_no_longer_does() -> None:
    states = of([1, 2], [2]), of([1, 2, 3], [2]), of([1, 2], [2, None]), of([1], [2, None]), of([1], [2]), of([1], [1])
    assert in_full(*states) == [False, True, True, True, False]


def test_null_on_either_side_gives_the_rows_of_sql() -> None:
    memory = maintained(NOT_IN, of([1, None], []))
    assert rows(memory) == [(0, 1), (1, None)]
    assert rows(played(memory, [of([1, None], [2])])) == [(0, 1)]
    assert rows(played(memory, [of([1, 3], [2, None])])) == []


def test_null_that_is_not_looked_for_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "require_values", lambda work: None)
    check_fails(lambda seed: maintained(NOT_IN, *random_states(DECLARED, seed, count=3)), HISTORIES)


def test_null_before_the_epoch_that_is_not_looked_for_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Memory.counts
    monkeypatch.setattr(Memory, "counts", lambda memory, spec, _, wanted: counts(memory, spec, -1, wanted))
    check_fails(lambda seed: maintained(NOT_IN, *random_states(DECLARED, seed, count=3)), HISTORIES)
