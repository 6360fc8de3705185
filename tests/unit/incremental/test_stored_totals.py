"""Totals that cannot be added up as they are: an internal view stores their aggregates."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import partial
from importlib import import_module
from typing import Final

import pytest

from cdc_views.plan.explain import explain
from cdc_views.plan.incremental.expressions.select_text import beside, is_of_values
from tests.samples import OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import tuples
from tests.unit.incremental.played import check_fails, counting_rows, declared, is_kept, kept_by, played, random_states
from tests.unit.incremental.test_add_groups import ITEMS, TABLES, item, order

strategy: Final = import_module("cdc_views.engine.views.strategies.keys")

SPREAD: Final = "SELECT max(h) - min(h) AS spread, count(*) AS n FROM i"
VIEWS: Final = {
    "coalesced sum": "SELECT coalesce(CAST(sum(d) AS DECIMAL(18, 2)), 0) AS total FROM i",
    "spread": SPREAD,
    "average of a part": "SELECT avg(h) + 1 AS mean, CASE WHEN count(h) > 2 THEN 'many' END AS m FROM i",
    "average and sum of a part": "SELECT avg(h) FILTER (WHERE k > 0) + 1 AS mean, "
    "coalesce(sum(h) FILTER (WHERE k = 1), 0) AS s FROM i",
    "having": "SELECT sum(h) AS s FROM i HAVING count(*) > 2",
    "having by a name of the result": "SELECT count(h) * 2 AS m, max(k) AS top FROM i HAVING m > 2 OR top IS NULL",
    "having alone": "SELECT 1 AS one FROM i HAVING max(h) > 1",
    "different values": "SELECT count(DISTINCT k) + 0 AS m, count(*) AS n FROM i WHERE h > 0 OR h IS NULL",
    "join": f"SELECT coalesce(max(i.d), 0) - 1 AS m, count(*) - count(i.h) AS n FROM {ITEMS} WHERE o.k IS NOT NULL",
    "derived table": "SELECT max(h) + 1 AS m, count(*) AS n FROM (SELECT h FROM i WHERE h > 0) q",
    "groups below": "SELECT max(c) - min(c) AS m, count(*) * 2 AS n FROM (SELECT k, count(*) AS c FROM o GROUP BY k) q",
    "CTE": "WITH q AS (SELECT h, k FROM i WHERE h > 0) SELECT max(h) - min(h) AS m FROM q JOIN o ON o.k = q.k",
    "left join": "SELECT count(*) - count(i.id) AS without FROM o LEFT JOIN i ON i.id = o.id",
}
FULL: Final = {
    "SELECT max(g) || 'x' AS g FROM o": "neither count(*)",
    "SELECT max(h) + (SELECT count(*) FROM o) AS m FROM i": "subquery",
    "SELECT max(h) + 1 AS m FROM i AS q(id, k, h, d)": "neither count(*)",
    "SELECT DISTINCT max(h) + 1 AS m FROM i": "DISTINCT",
    "SELECT max(h) AS k FROM i HAVING k > 1": "HAVING",
    "SELECT max(h) + product(h) AS m FROM i": "neither count(*)",
}  # fmt: skip

maintained = partial(kept_by, "KEYS", TABLES)


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        memory = maintained(VIEWS[name], *random_states(TABLES, f"{SEED} {name}", count=2 * OF_EACH_VIEW))
        assert memory.views["_cv_v_1"].plan.strategy == "ADD"
        assert is_kept(memory)


@pytest.mark.parametrize("sql", FULL)
def test_other_view_is_computed_in_full_with_the_reason(sql: str) -> None:
    plan = declared(TABLES, sql).views["v"].plan
    assert plan.strategy == "FULL"
    assert FULL[sql] in plan.reason


@pytest.mark.parametrize(
    ("text", "is_certain"),
    [
        ("coalesce(value_1, 0) + value_2", True),
        ("named_struct('n', value_1)", True),
        ("'x'", True),
        ("value_3", False),
        ("t.value_1", False),
        ("mean(value_1)", False),
        ("struct(value_1, value_2)", False),  # its fields have the names of the text
        ("(value_1, value_2)", False),
        ("transform(array(1, 2), value_1 -> value_1 + value_2)", False),
        ("greatest(*)", False),
    ],
)
def test_expression_means_the_same_over_stored_values(text: str, is_certain: bool) -> None:
    assert is_of_values(text, 2) == is_certain


@pytest.mark.parametrize("call", ["avg(h)", "avg /* ( */ (h)", "AVG(h) FILTER (WHERE k > 1)"])
def test_averages_have_their_sum_and_count_beside_them(call: str) -> None:
    assert beside(call) == tuple(re.sub("avg", name, call, flags=re.IGNORECASE) for name in ("sum", "count"))


def test_row_that_having_leaves_out_goes_and_comes_back() -> None:
    items = [item(1, number, "1.00") for number in range(3)]
    memory = maintained(VIEWS["having"], {"i": items})
    assert len(tuples(memory.views["v"].stored.versions[-1])) == 1
    played(memory, [{"i": items[:2]}])
    assert tuples(memory.views["v"].stored.versions[-1]) == []
    played(memory, [{"i": items}])
    assert (len(tuples(memory.views["v"].stored.versions[-1])), memory.in_full) == (1, 0)


def test_change_reads_only_the_change_and_the_stored_row(monkeypatch: pytest.MonkeyPatch) -> None:
    orders, items = [order(number) for number in range(50)], [item(1, number, "1.00") for number in range(50)]
    memory = maintained(VIEWS["join"], {"o": orders, "i": items})
    read = counting_rows(monkeypatch)
    memory.repeats = False
    memory.epoch({"b": (), "o": orders, "i": [*items, item(2, 3, "3.00")]})
    assert (read, memory.in_full) == ([2, 1], 0)  # an item with its order, then the stored row
    assert tuples(memory.views["v"].stored.versions[-1])[0][0] == Decimal("2.00")


def test_explanation_shows_the_stored_totals() -> None:
    view = declared(TABLES, SPREAD).views["v"]
    lines = explain(view.compiled, view.plan).lines()
    assert "strategy: KEYS: its row is computed again from the stored totals, and compared" in lines
    assert "  _cv_v_1: SELECT max(h) AS value_1, min(h) AS value_2, count(*) AS value_3 FROM i" in lines
    assert "  if _cv_v_1 changes, its row is read" in lines


def test_totals_that_are_not_read_again_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_of_all_rows", lambda work: None)
    check_fails(lambda seed: played(declared(TABLES, SPREAD), random_states(TABLES, seed)), 20)
