"""PATCH of ordered lists: which views it maintains, and that it gives the view's SQL without reading groups."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final

import pyarrow as pa
import pytest

from cdc_views.plan.incremental import OrderedList
from tests.samples import OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, Table, UnequalView, tuples
from tests.unit.incremental.played import check_fails, counting_rows, declared, kept_by, random_states

lists: Final = import_module("cdc_views.engine.views.strategies.adding.ordered_lists")
plans: Final = import_module("cdc_views.plan.incremental.delta_plans.ordered_lists")

TABLES: Final = (
    Table("o", {"id": "bigint", "k": "int", "g": "text", "x": "date", "y": "bool", "z": "double"}, ("id",)),
    Table("i", {"id": "int", "k": "bigint", "h": "int", "d": "decimal"}, ("id", "k")),
    Table("b", {"k": "int", "h": "int"}, ()),
)
ITEMS: Final = "o JOIN i ON i.id = o.id"

VIEWS: Final = {
    "values": "SELECT k, sort_array(collect_list(h)) AS l FROM i GROUP BY k",
    "copies of rows": "SELECT k, sort_array(collect_list(h)) AS l, count(*) AS n FROM b GROUP BY k",
    "values of a key": "SELECT k, array_sort(array_agg(id)) AS l FROM o GROUP BY k",
    "structs": "SELECT k, sort_array(collect_list(struct(x, g, y, id)), false) AS l FROM o GROUP BY k",
    "structs that are equal": "SELECT o.k, array_sort(collect_list(struct(i.d AS of, o.g))) AS l FROM "
    f"{ITEMS} GROUP BY o.k",
    "beside totals": "SELECT o.k, count(*) AS n, sort_array(collect_list(i.d), false) AS l, count(i.h) AS m, "
    f"CAST(sum(i.h) AS BIGINT) AS s FROM {ITEMS} GROUP BY o.k",
    "two lists": "SELECT k, sort_array(collect_list(h)) AS l, slice(sort_array(collect_list(named_struct('a', h, 'b', "
    "id)), false), 1, 2) AS m FROM i GROUP BY k",
    "filtered": "SELECT k, sort_array(collect_list(struct(h, id)) FILTER (WHERE d > 0.7)) AS l, count(*) AS n FROM i "
    "GROUP BY k",
    "filtered alone": "SELECT k, sort_array(collect_list(struct(h, id)) FILTER (WHERE d > 0.7)) AS l FROM i GROUP BY k",
    "computed numbers": "SELECT k, sort_array(collect_list(struct(h * 2 + 1 AS a, -d AS c))) AS l FROM i GROUP BY k",
    "self join": "SELECT p.k, sort_array(collect_list(struct(q.h, p.id))) AS l, count(*) AS n FROM i p JOIN i q ON q.k "
    "= p.k GROUP BY p.k",
    "three tables": "SELECT o.g, o.k, sort_array(collect_list(struct(b.h, i.d))) AS l FROM "
    f"{ITEMS} JOIN b ON b.k = o.k AND b.h <= i.h WHERE i.h <> 1 GROUP BY o.k, o.g",
    "derived table": "SELECT o.k, sort_array(collect_list(q.s)) AS l FROM o JOIN (SELECT i.id AS oid, b.h AS s FROM i "
    "JOIN b ON b.k = i.h) q ON q.oid = o.id GROUP BY o.k",
    "first values": "SELECT k, slice(sort_array(collect_list(h)), 1, 2) AS l, count(*) AS n FROM i GROUP BY k",
    "last values": "SELECT k, slice(sort_array(collect_list(struct(h, id)), false), 1, 2) AS l FROM i GROUP BY k",
    "only the first": "SELECT k, slice(sort_array(collect_list(h), true), 1, 1) AS l FROM i GROUP BY k",
    "first of a join": f"SELECT o.k, slice(array_sort(collect_list(struct(i.h, o.g))), 1, 3) AS l FROM {ITEMS} "
    "GROUP BY o.k",
    "structs alone": "SELECT k, sort_array(collect_list(struct(h))) AS l FROM i GROUP BY k",
    "computed group": "SELECT h % 2 AS p, sort_array(collect_list(id)) AS l FROM i GROUP BY h % 2",
    "only the first of a join": "SELECT o.k, slice(sort_array(collect_list(i.h)), 1, 1) AS l FROM "
    f"{ITEMS} GROUP BY o.k",
    "first of a self join": "SELECT p.k, slice(sort_array(collect_list(q.h), false), 1, 2) AS l, count(*) AS n FROM i "
    "p JOIN i q ON q.k = p.k GROUP BY p.k",
}
OTHERS: Final = {
    "floats": "SELECT k, sort_array(collect_list(z)) AS l FROM o GROUP BY k",
    "floats in structs": "SELECT k, sort_array(collect_list(struct(id, z))) AS l FROM o GROUP BY k",
    "computed text": "SELECT k, sort_array(collect_list(upper(g))) AS l FROM o GROUP BY k",
    "structs in structs": "SELECT k, sort_array(collect_list(struct(struct(x, g) AS a, id))) AS l FROM o GROUP BY k",
    "other places": "SELECT k, slice(sort_array(collect_list(id)), 2, 3) AS l FROM o GROUP BY k",
    "computed number of values": "SELECT k, slice(sort_array(collect_list(id)), 1, 1 + 1) AS l FROM o GROUP BY k",
    "group of floats": "SELECT z, sort_array(collect_list(id)) AS l FROM o GROUP BY z",
    "group column that is not selected": "SELECT k, sort_array(collect_list(id)) AS l FROM o GROUP BY k, g",
    "maximum of text": "SELECT k, sort_array(collect_list(id)) AS l, max(g) AS m FROM o GROUP BY k",
    "having": "SELECT k, sort_array(collect_list(id)) AS l FROM o GROUP BY k HAVING count(*) > 1",
    "left join": "SELECT o.k, sort_array(collect_list(i.h)) AS l FROM o LEFT JOIN i ON i.id = o.id GROUP BY o.k",
    "length of a list": "SELECT k, len(sort_array(collect_list(id))) AS l FROM o GROUP BY k",
}


maintained = partial(kept_by, "PATCH", TABLES)


def maintained_at_random(sql: str, seed: str, count: int = 6) -> Memory:
    return maintained(sql, *random_states(TABLES, seed, count))


def is_noticed(name: str, first: int = 0) -> None:
    check_fails(lambda seed: maintained_at_random(VIEWS[name], str(seed)), 60, first)


# ---- random histories


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        memory = maintained_at_random(VIEWS[name], f"{SEED} {name}", OF_EACH_VIEW)
        assert memory.in_full == 0


@pytest.mark.parametrize("name", OTHERS)
def test_other_view_has_another_strategy(name: str) -> None:
    assert declared(TABLES, OTHERS[name]).views["v"].plan.strategy in ("KEYS", "FULL")


@pytest.mark.parametrize(("name", "first"), [("first values", 3), ("last values", 13), ("first of a self join", 4)])
def test_first_values_that_are_taken_to_be_all_are_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str, first: int
) -> None:
    monkeypatch.setattr(lists, "_bound", lambda plan, stored, changes: None)
    is_noticed(name, first)


@pytest.mark.parametrize("name", ["values", "derived table"])
def test_group_of_nulls_that_is_taken_to_vanish_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(plans, "_is_never_null", lambda value, scope: True)
    is_noticed(name)


@pytest.mark.parametrize("name", ["copies of rows", "structs", "beside totals"])
def test_removed_values_that_are_kept_are_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    net = lists._net
    monkeypatch.setattr(lists, "_net", lambda changes: net(each for each in changes if each.is_added))
    is_noticed(name)


@pytest.mark.parametrize("name", ["structs", "last values"])
def test_values_in_another_order_are_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    orders = lists._orders
    monkeypatch.setattr(
        lists, "_orders", lambda values: [tuple((not known, value) for known, value in each) for each in orders(values)]
    )
    is_noticed(name)


# ---- what is read


def item(number: int, value: int | None, group: int = 7) -> tuple[Any, ...]:
    return (number, group, value, None)


def list_of(memory: Memory) -> Any:
    ((_, values, *_),) = tuples(memory.views["v"].stored.versions[-1])
    return values


def ways(memory: Memory) -> str:
    return memory.ways.taken().get("view", {}).get("v", "patch")


def after(name: str, *states: Sequence[tuple[Any, ...]]) -> Memory:
    """The view after these states of a table; its ways are those of the last one."""
    memory = maintained(VIEWS[name], *({"i": rows} for rows in states[:-1]))
    memory.ways.taken()
    memory.epoch({table.name: {"i": states[-1]}.get(table.name, ()) for table in TABLES})
    return memory


def test_changed_row_reads_no_other_row_of_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [item(number, number) for number in range(2000)]
    memory, look_up = maintained(VIEWS["values"], {"i": rows}), Memory.find
    read = counting_rows(monkeypatch)

    def counting_stored(self: Memory, *args: Any) -> pa.Table:
        found = look_up(self, *args)
        read.append(found.num_rows)
        return found

    monkeypatch.setattr(Memory, "find", counting_stored)
    memory.repeats = False
    memory.epoch({"o": (), "b": (), "i": [*rows[1:], item(0, 1000)]})
    assert read == [2, 1], "the row before and after, and the stored list"
    assert list_of(memory) == (*range(1, 1000), 1000, 1000, *range(1001, 2000))


@pytest.mark.parametrize("stored", [10, 10_000])
def test_places_in_short_and_long_lists_are_the_same(stored: int) -> None:
    values = pa.array([number // 2 for number in range(stored)], pa.int64())
    plan = OrderedList("l", descends=False, most=None, has_all_rows=True)
    changes = [lists._Changed(True, pa.array([-1, 3, stored])), lists._Changed(False, pa.array([0, 3, 3, 4]))]
    wanted = sorted([*values.to_pylist(), -1, 3, stored])
    for gone in (0, 3, 3, 4):
        wanted.remove(gone)
    assert lists._merged(plan, values, changes).to_pylist() == wanted


def test_list_that_stays_full_needs_no_other_rows() -> None:
    four = [item(number, number) for number in range(4)]
    memory = after("first values", four, [*four[1:], item(9, -5)])
    assert (ways(memory), list_of(memory)) == ("patch", (-5, 1))
    memory = after("first values", four, four[:3])
    assert (ways(memory), list_of(memory)) == ("patch", (0, 1))


def test_list_that_became_too_short_is_computed_again() -> None:
    four = [item(number, number) for number in range(4)]
    memory = after("first values", four, four[1:])
    assert (ways(memory), list_of(memory)) == ("keys", (1, 2))


def test_list_that_was_never_full_needs_no_other_rows() -> None:
    memory = after("first values", [item(1, 1), item(2, None)], [item(2, None)])
    assert (ways(memory), list_of(memory)) == ("patch", ())


def test_group_without_rows_vanishes() -> None:
    memory = after("structs alone", [item(1, None), item(2, 3)], [])
    assert (ways(memory), memory.views["v"].stored.versions[-1].num_rows) == ("patch", 0)


def test_group_of_which_only_nulls_may_be_left_is_computed_again() -> None:
    memory = after("values", [item(1, None), item(2, 3)], [item(1, None)])
    assert (ways(memory), list_of(memory)) == ("keys", ())
    memory = after("values", [item(2, 3)], [])
    assert (ways(memory), memory.views["v"].stored.versions[-1].num_rows) == ("keys", 0)


def moved_and_removed() -> Memory:
    """An order moves into a group, and the first item of each order there is removed: their values are the same."""
    orders = [(1, 7, None, None, None, None), (2, 8, None, None, None, None)]
    items = [(1, 1, 1, None), (2, 1, 1, None), (1, 2, 5, None)]
    memory = maintained(VIEWS["only the first of a join"], {"o": orders, "i": items})
    memory.epoch({"o": [orders[0], (2, 7, *orders[1][2:])], "i": items[2:], "b": ()})
    return memory


def test_last_value_of_a_cut_list_of_removed_values_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = moved_and_removed()
    assert (ways(memory), list_of(memory)) == ("keys", (5,))
    bound = lists._bound
    monkeypatch.setattr(lists, "_bound", lambda *args: (found := bound(*args)) and lists._Bound(found.value, True))
    with pytest.raises(UnequalView):
        moved_and_removed()
