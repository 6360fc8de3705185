"""PATCH: which views it maintains, and that it gives the view's SQL after every epoch without reading partitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from cdc_views.engine.views.strategies import TooMany
from cdc_views.plan.incremental.delta_plans import top_rows
from cdc_views.plan.incremental.delta_plans.shown_columns import _Names
from cdc_views.plan.incremental.leaf_names import leaf_names
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.views.definition import parse_view
from cdc_views.views.expression_text import Texts
from cdc_views.views.references import parse_query
from tests.samples import OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, State, Table, UnequalView, tuples
from tests.unit.incremental.played import check_fails, declared, kept_by, random_states

shown: Final = import_module("cdc_views.engine.views.strategies.shown")
strategy: Final = import_module("cdc_views.engine.views.strategies.patch")  # the package has a function of that name

TABLES: Final = (
    Table("p", {"id": "bigint", "a": "bigint", "g": "int", "s": "text"}, ("id",)),
    Table("f", {"id": "int", "k": "bigint", "g": "int"}, ("id", "k")),
    Table("u", {"id": "bigint", "s": "text"}, ("id",)),
    Table("b", {"id": "bigint", "g": "int"}, ()),
)
PLACE: Final = "row_number() OVER (PARTITION BY f.id ORDER BY p.g DESC NULLS LAST, p.id DESC, f.k)"
FEED: Final = "f JOIN p ON p.a = f.k"

VIEWS: Final = {
    "one table": "SELECT g, id FROM (SELECT g, id, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM p) q "
    "WHERE n <= 2",
    "ranked": f"SELECT * FROM (SELECT f.id AS reader, f.k, p.id, p.s, {PLACE} AS n FROM {FEED}) q WHERE n <= 2",
    "place is a column": "SELECT reader, place, post, a, name FROM (SELECT f.id AS reader, p.id AS post, p.a, u.s AS "
    f"name, {PLACE} AS place FROM {FEED} JOIN u ON u.id = p.a WHERE f.g <> 2 OR f.g IS NULL) q WHERE place < 3",
    "unranked": f"SELECT reader, post, a FROM (SELECT f.id AS reader, p.id AS post, p.a, {PLACE} AS n FROM {FEED}) q "
    "WHERE q.n <= 2",
    "qualified, without a key": f"SELECT f.id AS reader, p.id, p.s FROM {FEED} QUALIFY {PLACE} <= 2",
    "place without a key": f"SELECT f.id AS reader, p.id, {PLACE} AS n FROM {FEED} QUALIFY {PLACE} <= 2",
    "only the first": f"SELECT f.id AS reader, f.k, p.id, p.g + 1 AS h FROM {FEED} QUALIFY {PLACE} = 1",
    "partition of NULLs": "SELECT id, a, g, s FROM (SELECT *, row_number() OVER (PARTITION BY g, s ORDER BY a, id) AS "
    "n FROM p) q WHERE n <= 2",
    "self join": "SELECT one, other, g FROM (SELECT x.id AS one, y.id AS other, x.g, row_number() OVER (PARTITION BY "
    "x.g ORDER BY y.s NULLS FIRST, x.id, y.id) AS n FROM p x JOIN p y ON y.a = x.id AND y.g <> x.g) q WHERE n <= 2",
    "derived table": "SELECT reader, post, k FROM (SELECT f.id AS reader, f.k, q.post, row_number() OVER (PARTITION BY "
    "f.id ORDER BY q.post, f.k) AS n FROM f JOIN (SELECT p.id AS post, p.a, u.s FROM p JOIN u ON u.id = p.a WHERE p.g "
    "> 0) q ON q.a = f.k) z WHERE n <= 2",
    "shown on both sides": "SELECT x.g, x.id, x.s AS one, y.id AS other, y.s AS two FROM p x JOIN p y ON y.a = x.id "
    "QUALIFY row_number() OVER (PARTITION BY x.g ORDER BY y.g NULLS FIRST, x.id, y.id) <= 2",
    "CTE": f"WITH q AS (SELECT f.id AS reader, f.k, p.id, p.s, {PLACE} AS n FROM {FEED}) SELECT * FROM q WHERE n <= 2",
    "CTE over a CTE": "WITH c AS (SELECT id, g, a FROM p WHERE a > 0), q AS (SELECT c.g, c.id, u.s, row_number() OVER "
    "(PARTITION BY c.g ORDER BY c.a DESC, c.id) AS n FROM c JOIN u ON u.id = c.a) SELECT r.g, r.id, r.s, r.n FROM q "
    "r WHERE r.n < 3",
    "derived table over a CTE": "WITH c AS (SELECT id, g FROM p WHERE a > 0) SELECT g, id FROM (SELECT g, id, "
    "row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM c) q WHERE n <= 2",
    "qualified over a CTE": "WITH c AS (SELECT id, g FROM p WHERE a > 0) SELECT g, id FROM c QUALIFY row_number() OVER "
    "(PARTITION BY g ORDER BY id DESC) <= 2",
    "place in an expression": f"SELECT reader, post, k, CASE WHEN n = 1 THEN 'first' END AS c FROM (SELECT f.id AS "
    f"reader, f.k, p.id AS post, {PLACE} AS n FROM {FEED}) q WHERE n <= 2",
}
OTHERS: Final = {
    "partition of computed values": "SELECT g, id FROM (SELECT g, id, row_number() OVER (PARTITION BY g, id % 2 ORDER "
    "BY id) AS n FROM p) q WHERE n <= 2",
    "column of PARTITION BY not selected": "SELECT g, id FROM (SELECT g, s, id, row_number() OVER (PARTITION BY g, s "
    "ORDER BY id) AS n FROM p) q WHERE n <= 2",
    "CTE with other names": "WITH q(x, y, z) AS (SELECT g, id, row_number() OVER (PARTITION BY g ORDER BY id) AS n "
    "FROM p) SELECT x, y FROM q WHERE z <= 2",
    "CTE of a CTE": "WITH c AS (SELECT g, id, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM p), q AS "
    "(SELECT * FROM c) SELECT g, id FROM q WHERE n <= 2",
    "another condition": "SELECT g, id FROM (SELECT g, id, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM p) "
    "q WHERE n <= 2 AND id > 1",
    "second rows": "SELECT g, id FROM (SELECT g, id, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM p) q "
    "WHERE n = 2",
    "rank": "SELECT g, id FROM (SELECT g, id, rank() OVER (PARTITION BY g ORDER BY s) AS n FROM p) q WHERE n <= 2",
    "another window": "SELECT g, id, m FROM (SELECT g, id, count(*) OVER (PARTITION BY g) AS m, row_number() OVER "
    "(PARTITION BY g ORDER BY id) AS n FROM p) q WHERE n <= 2",
    "left join": "SELECT g, id, s FROM (SELECT p.g, p.id, u.s, row_number() OVER (PARTITION BY p.g ORDER BY p.id) AS n "
    "FROM p LEFT JOIN u ON u.id = p.a) q WHERE n <= 2",
    "anti join": "SELECT g, id FROM (SELECT p.g, p.id, row_number() OVER (PARTITION BY p.g ORDER BY p.id) AS n FROM p "
    "WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = p.a)) q WHERE n <= 2",
    "groups": "SELECT g, a, m FROM (SELECT p.g, q.a, q.m, row_number() OVER (PARTITION BY p.g ORDER BY p.id) AS n FROM "
    "p JOIN (SELECT a, max(id) AS m FROM p GROUP BY a) q ON q.a = p.a) z WHERE n <= 2",
    "only whole partitions": "SELECT g FROM p QUALIFY row_number() OVER (PARTITION BY g ORDER BY id) = 1",
    "distinct": "SELECT DISTINCT g, id FROM (SELECT g, id, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM p) "
    "q WHERE n <= 2",
}


maintained = partial(kept_by, "PATCH", TABLES)


def maintained_at_random(sql: str, seed: str, count: int = 6) -> Memory:
    return maintained(sql, *random_states(TABLES, seed, count))


def is_noticed(sql: str, first: int = 0) -> None:
    check_fails(lambda seed: maintained_at_random(sql, str(seed)), 60, first)


# ---- random histories


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        memory = maintained_at_random(VIEWS[name], f"{SEED} {name}", OF_EACH_VIEW)
        assert memory.in_full == 0


@pytest.mark.parametrize("name", ["ranked", "place is a column", "unranked", "qualified, without a key"])
def test_partition_that_is_not_refilled_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(strategy, "_doubtful", lambda work, box, stored, rows: stored.slice(0, 0))
    is_noticed(VIEWS[name], first=22)


@pytest.mark.parametrize("name", ["one table", "ranked"])
def test_rows_that_are_not_merged_are_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    look_up_all = strategy._look_up_all

    def without_kept(work: Any, lookups: Any, known: Any) -> Any:
        return {} if work.plan.stored in known else look_up_all(work, lookups, known)

    monkeypatch.setattr(strategy, "_look_up_all", without_kept)
    is_noticed(VIEWS[name], first=10)


def test_row_that_is_taken_to_stay_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_staying", lambda work, stored: stored)
    is_noticed(VIEWS["ranked"], first=22)


@pytest.mark.parametrize("name", OTHERS)
def test_other_view_has_another_strategy(name: str) -> None:
    assert declared(TABLES, OTHERS[name]).views["v"].plan.strategy in ("KEYS", "FULL")


# ---- what is read


def feed(posts: Sequence[tuple[Any, ...]]) -> State:
    return {"p": posts, "f": [(1, 7, None)]}


def post(number: int, order: int | None = None) -> tuple[Any, ...]:
    return (number, 7, number if order is None else order, None)


def ways(memory: Memory) -> str:
    return memory.ways.taken().get("view", {}).get("v", "patch")


def after(before: Sequence[tuple[Any, ...]], now: Sequence[tuple[Any, ...]], name: str = "ranked") -> str:
    """Which way a change of posts takes: "keys" if a partition was computed again."""
    memory = maintained(VIEWS[name], feed(before))
    memory.ways.taken()
    memory.epoch({table.name: feed(now).get(table.name, ()) for table in TABLES})
    return ways(memory)


FOUR: Final = [post(number) for number in range(1, 5)]


def test_new_row_does_not_read_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = maintained(VIEWS["ranked"], feed([*FOUR, *(post(n, 0) for n in range(10, 90))]))
    memory.repeats = False
    read = list[int]()
    run = Memory.run

    def counting(self: Memory, query: Any, rows: Any, *rest: Any) -> pa.Table:
        read.append(sum(table.num_rows for table in rows.values()))
        return run(self, query, rows, *rest)

    monkeypatch.setattr(Memory, "run", counting)
    memory.epoch({"u": (), "b": (), **feed([*FOUR, *(post(n, 0) for n in range(10, 90)), post(99)])})
    assert read == [1 + 2 + 1], "the reader, the two stored posts, and the new one"
    assert [row[2] for row in sorted(tuples(memory.views["v"].stored.versions[-1]), key=lambda row: row[4])] == [99, 4]


@pytest.mark.parametrize("name", ["ranked", "unranked"])
def test_removed_row_that_better_rows_replace_needs_no_other(name: str) -> None:
    assert after(FOUR, [*FOUR[:3], post(8), post(9)], name) == "patch"


@pytest.mark.parametrize("name", ["ranked", "unranked"])
def test_removed_row_of_a_full_partition_computes_it_again(name: str) -> None:
    assert after(FOUR, FOUR[:3], name) == "keys"
    assert after(FOUR, [*FOUR[:3], post(4, 0)], name) == "keys"


def test_removed_row_of_a_partition_that_is_not_full_needs_no_other() -> None:
    assert after(FOUR[:1], []) == "patch"
    assert after([*FOUR[:1]], [post(1, 0)]) == "patch"


def test_row_that_keeps_a_place_before_the_last_needs_no_other() -> None:
    moved = [*FOUR[:3], post(4, 5)]
    assert after(FOUR, moved, "place is a column") == "patch"
    assert after(FOUR, moved, "unranked") == "keys", "the view has no column with the place"


def test_change_of_what_is_only_shown_ranks_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    full = feed([*FOUR, *(post(n, 0) for n in range(10, 90))])
    memory = maintained(VIEWS["place is a column"], {**full, "u": [(7, "ada")]})
    memory.repeats = False
    monkeypatch.setattr(Memory, "run", None)
    memory.epoch({"b": (), **full, "u": [(7, "eve")]})
    assert [row[4] for row in tuples(memory.views["v"].stored.versions[-1])] == ["eve", "eve"]


# Each leaf by its alias, and the columns of it that are only shown.
SHOWN: Final[dict[str, dict[str, list[str]]]] = {
    f"SELECT f.id AS r, f.k, p.id, p.s FROM {FEED} QUALIFY {PLACE} <= 2": {"p": ["s"]},
    f"SELECT f.id AS r, f.k, p.id, p.s AS one, p.s AS two FROM {FEED} QUALIFY {PLACE} <= 2": {"p": ["s", "s"]},
    f"SELECT r, k, id, t FROM (SELECT f.id AS r, f.k, p.id, p.s AS t, {PLACE} AS n FROM {FEED}) q WHERE n = 1":
        {"p": ["s"]},
    f"SELECT * FROM (SELECT f.id AS r, f.k, p.id, p.s AS t, {PLACE} AS n FROM {FEED}) q WHERE n = 1": {"p": ["s"]},
    f"SELECT r, k, id, upper(t) AS t FROM (SELECT f.id AS r, f.k, p.id, p.s AS t, {PLACE} AS n FROM {FEED}) q "
    "WHERE n = 1": {},
    f"SELECT f.id AS r, f.k, p.id, p.s FROM {FEED} WHERE p.s <> 'a' QUALIFY {PLACE} <= 2": {},
    f"SELECT f.id AS r, f.k, p.id, p.s, upper(p.s) AS t FROM {FEED} QUALIFY {PLACE} <= 2": {},
    f"SELECT f.id AS r, f.k, p.id, p.s AS t FROM {FEED} QUALIFY row_number() OVER (PARTITION BY f.id ORDER BY p.s, "
    "p.id, f.k) <= 2": {},
    "SELECT p.g, p.id, u.id AS author, u.s FROM p JOIN u USING (s) QUALIFY row_number() OVER (PARTITION BY p.g "
    "ORDER BY p.id, u.id) <= 2": {},
    # An item may name another one by its alias, and a function without parentheses a column.
    f"SELECT f.id AS r, f.k, p.id, p.s AS z, z AS y FROM {FEED} QUALIFY {PLACE} <= 2": {},
    f"SELECT * FROM (SELECT f.id AS r, f.k, p.id, p.s AS z, z AS y, {PLACE} AS n FROM {FEED}) q WHERE n = 1": {},
    f"SELECT r, k, id, s, z FROM (SELECT f.id AS r, f.k, p.id, p.s, p.s AS x, x AS z, {PLACE} AS n FROM {FEED}) q "
    "WHERE n = 1": {},
    # Its key is not in the view.
    f"SELECT f.id AS r, f.k, p.id, u.s FROM {FEED} JOIN u ON u.id = p.g QUALIFY {PLACE} <= 2": {},
    "SELECT x.g, x.id, y.id AS other, y.s AS t FROM p x JOIN p y ON y.a = x.id QUALIFY row_number() OVER (PARTITION BY "
    "x.g ORDER BY x.id, y.id) <= 2": {"y": ["s"]},
}  # fmt: skip


@pytest.mark.parametrize("sql", SHOWN)
def test_columns_that_are_only_shown(sql: str) -> None:
    view = declared(TABLES, sql).views["v"]
    assert view.plan.patch is not None, view.plan.reason
    assert view.compiled.parsed is not None
    names = leaf_names(view.compiled.parsed, view.plan.patch.leaves)
    found = {
        names[path].split()[-1]: [name for name, _ in each.columns] for path, each in view.plan.patch.shown.items()
    }
    assert {name.removeprefix("public."): columns for name, columns in found.items()} == SHOWN[sql]


def test_column_that_an_item_names_by_an_alias_is_ranked_again() -> None:
    sql = f"SELECT f.id AS r, f.k, p.id, p.s AS z, z AS y FROM {FEED} QUALIFY {PLACE} <= 2"
    memory = maintained(sql, feed([(1, 7, 1, "old")]), feed([(1, 7, 1, "new")]))
    assert [row[-2:] for row in tuples(memory.views["v"].stored.versions[-1])] == [("new", "new")]


def test_partition_that_loses_a_row_and_gets_other_values_is_computed_again() -> None:
    after = {**feed([*FOUR[:3], post(9, 0)]), "u": [(7, "eve")]}
    memory = maintained(VIEWS["place is a column"], {**feed(FOUR), "u": [(7, "ada")]}, after)
    found = sorted((row[1], row[2], row[4]) for row in tuples(memory.views["v"].stored.versions[-1]))
    assert (found, ways(memory)) == ([(1, 3, "eve"), (2, 2, "eve")], "keys")


def test_shown_values_that_stay_as_they_were_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "_with_values", lambda rows, *_: rows)
    renamed_is_noticed()


def test_shown_values_that_are_not_written_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown.ShownChanges, "added_to", lambda self, work, changes: changes)
    renamed_is_noticed()


def renamed_is_noticed() -> None:
    """A new name of an author must be noticed if the view keeps the one before."""
    with pytest.raises(UnequalView):
        maintained(VIEWS["place is a column"], {**feed(FOUR), "u": [(7, "ada")]}, {**feed(FOUR), "u": [(7, "eve")]})


def test_joined_rows_are_looked_up_from_the_stored_rows_and_not_by_the_partition() -> None:
    sql = "SELECT s, id, g FROM (SELECT u.s, p.id, p.g, row_number() OVER (PARTITION BY u.s ORDER BY p.g, p.id) AS n " \
        "FROM u JOIN p ON p.a = u.id) q WHERE n <= 2"  # fmt: skip
    plan = maintained(sql, feed([])).views["v"].plan.patch
    assert plan is not None
    assert [(str(lookup.leaf), lookup.columns) for lookup in plan.kept] == [
        ("public.p", ("id",)),
        ("public.u", ("id",)),
    ]


def test_more_stored_rows_than_can_be_looked_up_are_left_to_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many(*_: Any) -> None:
        raise TooMany("stored rows")

    monkeypatch.setattr(strategy, "_merged", too_many)
    memory = maintained(VIEWS["ranked"], feed([post(1)]), feed([post(1), post(2)]))
    assert memory.ways.taken() == {"view": {"v": "keys"}}


def test_number_of_rows_that_a_partition_may_have_costs_nothing() -> None:
    sql = VIEWS["one table"].replace("n <= 2", f"n <= {2**31 - 1}")
    before = [(number, 1, 1, None) for number in range(3)]
    memory = maintained(sql, {"p": before}, {"p": before[1:]})
    assert (len(tuples(memory.views["v"].stored.versions[-1])), memory.ways.taken()) == (2, {})


# A column and a text have one tree as the unit of date_trunc.
NUMBERED: Final = "SELECT id, k, {item} AS n FROM f QUALIFY {condition} <= 2"
PLACED: Final = "row_number() OVER (PARTITION BY k ORDER BY date_trunc({}, at), id)"


def test_number_that_is_ordered_by_another_text_is_not_the_place() -> None:
    def numbered(item: str) -> top_rows._Numbered:
        sql = NUMBERED.format(item=PLACED.format(item), condition=PLACED.format("'s'"))
        query = parse_query(parse_view(f"CREATE MATERIALIZED VIEW v AS {sql}", Path("v.sql")))
        return top_rows._numbered(query.tree, Texts(query))

    assert numbered("'s'").places == [2]
    with pytest.raises(NotIncremental, match="not the same text"):
        numbered("s")


NAMES: Final = {
    "SELECT p.id, p.s FROM p": True,
    "SELECT *, count(*) OVER (PARTITION BY id) AS n FROM p": True,
    "SELECT p.id, p.s, to_json(struct(p.*)) AS j FROM p": False,
    "SELECT p.id, p.s FROM p WHERE hash(*) > 0": False,
    "SELECT p.id, p.s, count(*, 1) AS n FROM p": False,
    "SELECT p.id, p.s FROM p ORDER BY date_trunc(p.s, p.at)": False,
    "SELECT p.id, p.s FROM p WHERE kind = 's'": True,
}


@pytest.mark.parametrize("sql", NAMES)
def test_column_is_only_shown_if_nothing_else_in_the_text_may_mean_it(sql: str) -> None:
    query = parse_query(parse_view(f"CREATE MATERIALIZED VIEW v AS {sql}", Path("v.sql")))
    assert _Names.of(query).are_shown("s") is NAMES[sql]
