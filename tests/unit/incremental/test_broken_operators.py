"""Negative controls of the operators: each breaks one rule of one, and the check of a named view must notice.

The histories are the same in every run. Other rules: test_broken_rules.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest

from cdc_views.plan.incremental.operators import Dependent, FullJoin, Grouping, InnerJoin, OuterJoin, SetOperation
from tests.unit.incremental.broken import (
    Method,
    columns_turned_round,
    last_branch_turned_round,
    one_equality_too_many,
    without_its_groups,
)
from tests.unit.incremental.played import check_fails
from tests.unit.incremental.zoo import maintained_at_random

HISTORIES: Final = 100


@dataclass(frozen=True)
class Broken:
    """A method of an operator, what makes the wrong one of it, and a view that shows it.

    `first` is the number of a history that is known to notice.
    """

    operator: type
    method: str
    broken: Callable[[Method], Method]
    view: str
    first: int = 0


JOINED: Final = "SELECT t.id, t.k, u.id AS o, u.g FROM t JOIN u ON u.k = t.k"
GROUPED: Final = "SELECT t.id, max(u.g) AS m FROM t JOIN u ON u.k = t.k GROUP BY t.id"
SUBQUERIES: Final = {
    "EXISTS": "SELECT id, g FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "NOT EXISTS": "SELECT id, g FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "IN": "SELECT id, g FROM t WHERE k IN (SELECT k FROM u)",
    "NOT IN": "SELECT id, g FROM t WHERE k IS NOT NULL AND k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)",
    "scalar": "SELECT id, (SELECT count(*) FROM u WHERE u.k = t.k) AS c FROM t",
    "semi join": "SELECT t.id, t.g FROM t SEMI JOIN u ON u.k = t.k",
    "anti join": "SELECT t.id, t.g FROM t ANTI JOIN u ON u.k = t.k",
    "LATERAL": "SELECT t.id, l.c FROM t CROSS JOIN LATERAL (SELECT count(*) AS c FROM u WHERE u.k = t.k) l",
    "LEFT LATERAL": (
        "SELECT t.id, l.o FROM t LEFT JOIN LATERAL (SELECT u.id AS o FROM u WHERE u.k = t.k ORDER BY u.id LIMIT 1) l "
        "ON TRUE"
    ),
}
LIMITED: Final = "SELECT q.id, w.id AS o, w.k FROM (SELECT id, g FROM t ORDER BY g, id LIMIT 2) q JOIN w ON w.g = q.id"
CONTROLS: Final = {
    "inner join: the other side": Broken(InnerJoin, "find", one_equality_too_many, JOINED),
    "inner join: rows that it joins": Broken(InnerJoin, "restrict", one_equality_too_many, GROUPED),
    "left join: rows of the kept side": Broken(
        OuterJoin, "find", one_equality_too_many, "SELECT t.id, u.id AS o FROM t LEFT JOIN u ON u.k = t.k"
    ),
    "left join: matches": Broken(
        OuterJoin, "restrict", one_equality_too_many, "SELECT t.id, u.id AS o FROM t LEFT JOIN u ON u.k = t.k"
    ),
    "full join: rows of the other side": Broken(
        FullJoin, "find", one_equality_too_many, "SELECT t.id, u.id AS o FROM t FULL JOIN u ON u.k = t.k"
    ),
    "full join: matches": Broken(
        FullJoin, "restrict", one_equality_too_many, "SELECT t.id, u.id AS o FROM t FULL JOIN u ON u.k = t.k"
    ),
    **{f"{name}: rows around it": Broken(Dependent, "find", one_equality_too_many, sql)
       for name, sql in SUBQUERIES.items()},
    **{f"{name}: rows inside": Broken(Dependent, "restrict", one_equality_too_many, sql)
       for name, sql in SUBQUERIES.items()},
    "groups": Broken(Grouping, "restrict", columns_turned_round, "SELECT k, g, max(id) AS m FROM t GROUP BY k, g"),
    "distinct": Broken(Grouping, "restrict", columns_turned_round, "SELECT DISTINCT k, g FROM t"),
    "window": Broken(
        Grouping,
        "restrict",
        columns_turned_round,
        "SELECT id, k, g, count(*) OVER (PARTITION BY k, g) AS c FROM t",
    ),
    **{f"{word}: the last branch": Broken(
        SetOperation, "restrict", last_branch_turned_round, f"SELECT k, g FROM t {word} SELECT k, g FROM u", 17
    ) for word in ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")},
}  # fmt: skip
# Operators without a column that is the same in a group: each row is decided by all others.
OVER_ALL_ROWS: Final = {
    "LIMIT": LIMITED,
    "window": "SELECT id, g, rank() OVER (ORDER BY g NULLS FIRST) AS r FROM t",
}


@pytest.mark.parametrize("rule", CONTROLS)
def test_broken_rule_is_noticed(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    control = CONTROLS[rule]
    method = getattr(control.operator, control.method)
    monkeypatch.setattr(control.operator, control.method, control.broken(method))
    check_fails(lambda seed: maintained_at_random(control.view, seed), HISTORIES, control.first)


@pytest.mark.parametrize("name", OVER_ALL_ROWS)
def test_rows_that_all_others_decide_are_noticed_if_they_are_found_one_by_one(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for method in ("passable", "restrict", "find"):
        monkeypatch.setattr(Grouping, method, without_its_groups(getattr(Grouping, method)))
    check_fails(lambda seed: maintained_at_random(OVER_ALL_ROWS[name], seed), HISTORIES)


@pytest.mark.parametrize("sql", sorted({control.view for control in CONTROLS.values()}))
def test_views_of_the_controls_are_right_where_nothing_is_broken(sql: str) -> None:
    for seed in range(2):
        maintained_at_random(sql, seed)
