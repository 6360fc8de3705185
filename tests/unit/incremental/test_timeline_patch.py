"""PATCH of timelines, which the driver merges: random histories, negative controls, and what is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest

from cdc_views.engine.views.strategies import timelines
from cdc_views.engine.views.strategies.timelines import Timeline
from tests.samples import OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, State, Table
from tests.unit.incremental.played import check_fails, played, random_states

strategy: Final = import_module("cdc_views.engine.views.strategies.patch")  # the package has a function of that name

TABLES: Final = (
    Table("p", {"id": "bigint", "a": "bigint", "g": "int", "s": "text"}, ("id",)),
    Table("f", {"id": "int", "k": "bigint", "g": "int"}, ("id", "k")),
    Table("u", {"id": "bigint", "s": "text"}, ("id",)),
)
FEED: Final = (
    "SELECT f.id AS reader, p.id AS post, p.a, p.g, p.s, u.s AS name FROM f JOIN p ON p.a = f.k JOIN u ON u.id = p.a "
    "WHERE f.g <> 2 OR f.g IS NULL"
)
ORDERS: Final = {
    "newest": "g DESC, post DESC",
    "nulls first": "g DESC NULLS FIRST, s ASC NULLS FIRST, post, a",
    "nulls last": "s ASC NULLS LAST, g DESC NULLS LAST, post DESC, a",
}


def statement(order: str, limit: int, select: str = FEED, owner: str = "reader") -> str:
    return (f"CREATE MATERIALIZED VIEW v WITH (kind = 'timeline', owner = '{owner}', order = '{order}', "
            f"limit = {limit}) AS {select}")  # fmt: skip


def declared(text: str) -> Memory:
    memory = Memory(TABLES)
    view = memory.declare_as_written(text)
    assert view.plan.strategy == "PATCH", view.plan.reason
    return memory


def growing_states(seed: str, epochs: int = 12) -> Iterator[State]:
    """States that mostly gain rows, as a feed does: some of them lose a row, or change one."""
    random = Random(seed)
    posts: dict[int, tuple[Any, ...]] = {}
    follows: dict[tuple[int, int], tuple[Any, ...]] = {}
    users = {number: (number, f"u{number}") for number in range(3)}
    for epoch in range(epochs):
        for _ in range(random.choice([0, 1, 1, 3])):
            number = len(posts) + 100 * epoch
            posts[number] = (number, random.randrange(3), random.choice([None, epoch, random.randrange(20)]),
                             random.choice([None, "a", "b"]))  # fmt: skip
        for _ in range(random.choice([0, 0, 1, 2])):
            key = random.randrange(4), random.randrange(3)
            follows[key] = (*key, random.choice([None, 1, 1, 2]))
        if random.random() < 0.3:
            gone: dict[Any, Any] = random.choice([posts, follows])
            gone.pop(random.choice([None, *gone]), None)
        if random.random() < 0.2:
            user = random.randrange(3)
            users[user] = (user, f"renamed in {epoch}")
        yield {"p": [*posts.values()], "f": [*follows.values()], "u": [*users.values()]}


def at_random(text: str, seed: str, count: int) -> Memory:
    memory = played(declared(text), random_states(TABLES, seed, count))
    for number in range(count):
        memory = played(memory, list(growing_states(f"{seed} {number}")))
    return memory


def is_noticed(order: str = "newest", first: int = 0) -> None:
    text = statement(ORDERS[order], 2)
    check_fails(lambda seed: played(declared(text), list(growing_states(str(seed)))), 300, first)


# ---- random histories


@pytest.mark.parametrize(("order", "limit"), [("newest", 1), ("nulls first", 2), ("nulls last", 5)])
def test_timeline_equals_its_sql_after_every_epoch_of_a_random_history(order: str, limit: int) -> None:
    with naming_the_seed():
        memory = at_random(statement(ORDERS[order], limit), f"{SEED} {order} {limit}", OF_EACH_VIEW)
        assert memory.in_full == 0


def test_timeline_whose_owners_are_merged_in_parts_equals_its_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = timelines._parts
    monkeypatch.setattr(timelines, "_parts", lambda owners, counts, rows, keys: parts(owners, counts, 3, keys))
    with naming_the_seed():
        memory = at_random(statement(ORDERS["newest"], 2), f"{SEED} in parts", OF_EACH_VIEW)
        assert memory.in_full == 0


def test_part_of_the_owners_that_is_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = timelines._parts
    monkeypatch.setattr(timelines, "_parts", lambda owners, counts, rows, keys: [*parts(owners, counts, 3, keys)][:1])
    is_noticed()


def test_timeline_of_one_table_with_owners_of_null_equals_its_sql() -> None:
    text = statement("g DESC, id", 2, "SELECT s, id, g FROM p", "s")
    with naming_the_seed():
        assert at_random(text, f"{SEED} one table", OF_EACH_VIEW).in_full == 0


def test_timeline_whose_owner_has_the_name_of_a_count_equals_its_sql() -> None:
    text = statement("g DESC, id", 2, "SELECT a AS count_all, id, g FROM p", "count_all")
    assert played(declared(text), list(growing_states("count_all"))).in_full == 0


def test_full_timeline_that_is_taken_to_have_room_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Memory.counts
    monkeypatch.setattr(
        Memory, "counts", lambda self, spec, version, keys: counts(self, spec, version, keys) * (keys.num_columns > 1)
    )
    is_noticed()


@pytest.mark.parametrize("order", ["newest", "nulls first"])
def test_another_order_is_noticed(monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    monkeypatch.setattr(Timeline, "first_rows", lambda self, rows: rows.slice(0, self.record.limit))
    is_noticed(order)


def test_owners_who_lose_entries_and_are_not_looked_for_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "affected", lambda work, only_removed: [])
    is_noticed()


def test_partition_that_is_not_refilled_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_doubtful", lambda work, stored, rows, names: stored.slice(0, 0))
    is_noticed(first=4)


# ---- what is read


def star(posts: Sequence[int], followers: int = 50) -> dict[str, list[tuple[Any, ...]]]:
    """Posts of an author whom all follow."""
    return {
        "p": [(number, 7, number, None) for number in posts],
        "f": [(follower, 7, None) for follower in range(followers)],
        "u": [(7, "star")],
    }


def rows_read(
    limit: int, before: Sequence[int], now: Sequence[int], monkeypatch: pytest.MonkeyPatch, **limits: int
) -> list[int]:
    """The stored rows that an epoch with other posts looks up, by lookup."""
    memory = played(declared(statement("g DESC, post DESC", limit)), [star(before)])
    read: list[int] = []
    find = Memory.find

    def counted(self: Memory, spec: Any, *arguments: Any) -> pa.Table | None:
        found = find(self, spec, *arguments)
        read.append(0 if found is None else found.num_rows)
        return found

    monkeypatch.setattr(Memory, "find", counted)
    memory.repeats = False
    for name, most in limits.items():
        setattr(memory, name, most)
    memory.epoch(star(now))
    assert memory.in_full == 0
    return read


def test_post_reads_no_entries_of_timelines_with_room(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(rows_read(3, [1, 2], [1, 2, 3], monkeypatch)) == 0


def test_post_reads_the_entries_of_full_timelines_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(rows_read(2, [1, 2], [1, 2, 3], monkeypatch)) == 2 * 50


def test_entries_of_full_timelines_that_are_too_many_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    read = rows_read(2, [1, 2], [1, 2, 3], monkeypatch, driver_rows=31)
    assert [rows for rows in read if rows] == [30, 30, 30, 10]


def test_owners_of_full_timelines_that_are_too_many_are_looked_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    read = rows_read(2, [1, 2], [1, 2, 3], monkeypatch, lookup_keys=20)
    assert [rows for rows in read if rows] == [40, 40, 20]


def test_post_for_most_of_all_rows_is_patched_if_there_are_many_entries() -> None:
    memory = played(declared(statement("g DESC, post DESC", 100)), [star(range(10))])
    memory.task_rows, memory.repeats = 20, False
    memory.epoch(star(range(11)))
    assert memory.in_full == 0
    memory.epoch({**star(range(11)), "u": [(7, "renamed")]})
    assert memory.in_full == 1


def test_order_by_floats_is_left_to_spark() -> None:
    tables = (Table("p", {"id": "bigint", "s": "text", "x": "double"}, ("id",)),)
    memory = Memory(tables)
    view = memory.declare_as_written(statement("x DESC, id", 2, "SELECT s, id, x FROM p", "s"))
    assert timelines.timeline_of(view.stored.spec) is None
    played(memory, random_states(tables, SEED, OF_EACH_VIEW))
    assert memory.in_full == 0
