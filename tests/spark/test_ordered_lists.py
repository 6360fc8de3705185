"""PATCH of ordered lists with Spark: every type in the order of Spark, over random changes; and what a change reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module
from random import Random, randrange
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from cdc_views.errors import UnequalRows
from cdc_views.testing import Change, Delete, Insert, Update, ViewHarness
from tests.seed import drawn

lists: Final = import_module("cdc_views.engine.views.strategies.adding.ordered_lists")

DDL: Final = (
    "CREATE TABLE g (id bigint PRIMARY KEY, name text)",
    "CREATE TABLE t (id bigint PRIMARY KEY, g bigint, whole int, number numeric(8, 2), word text, day date, "
    "at timestamptz, flag boolean, raw bytea)",
)
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "g": (1, 2, None),
    "whole": (-1, 0, 1, None),
    "number": (Decimal("-1.50"), Decimal("0.00"), Decimal("10.00"), None),
    "word": ("", "Z", "a", "a ", "é", "z", "\uffee", "\U0001f600", None),
    "day": (date(1, 1, 1), date(1969, 12, 31), date(2026, 1, 2), date(9999, 12, 31), None),
    "at": (datetime(1969, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), None),
    "flag": (True, False, None),
    "raw": (b"", b"\x00", b"\x7f", b"\x80", b"\xff\x00", None),
}
COLUMNS: Final = tuple(VALUES)[1:]
ALL: Final = "struct(whole, word, number, flag, day, at, raw)"
VIEWS: Final = {
    **{
        f"of_{name}": f"SELECT g, sort_array(collect_list({name})) AS up, sort_array(collect_list(struct({name}, id)), "
        "false) AS down, count(*) AS n FROM t GROUP BY g"
        for name in COLUMNS
    },
    "of_all": f"SELECT g, array_sort(array_agg({ALL})) AS up, sort_array(collect_list({ALL}), false) AS down FROM t "
    "GROUP BY g",
    "firsts": f"SELECT g, slice(sort_array(collect_list({ALL})), 1, 3) AS up, slice(sort_array(collect_list(word), "
    "false), 1, 2) AS down, count(*) AS n FROM t GROUP BY g",
    "joined": "SELECT g.name, sort_array(collect_list(struct(t.word, g.id AS of)) FILTER (WHERE t.flag)) AS l, "
    "slice(array_sort(collect_list(t.number)), 1, 4) AS m, count(*) AS n FROM g JOIN t ON t.g = g.id GROUP BY g.name",
}
SEED: Final = randrange(2**32)
EPOCHS: Final = 8
MANY: Final = 100_000


def random_row(chance: Random, number: int) -> dict[str, Any]:
    return {"id": number, **{name: chance.choice(values) for name, values in VALUES.items()}}


def random_changes(chance: Random, known: set[int]) -> Iterator[Change]:
    """Some rows that appear, some that change, and some that vanish."""
    for number in chance.sample(range(30), 6):
        if number not in known:
            known.add(number)
            yield Insert("t", random_row(chance, number))
        elif chance.random() < 0.5:
            known.remove(number)
            yield Delete("t", {"id": number})
        else:
            name = chance.choice(tuple(VALUES))
            yield Update("t", {"id": number}, {name: chance.choice(VALUES[name])})
    yield Update("g", {"id": chance.choice((1, 2))}, {"name": chance.choice(("a", "b", None))})


def played(spark: SparkSession, views: dict[str, str], seed: int) -> set[str]:
    """Follow random changes, and compare each view with its SQL after each epoch; the paths that were used."""
    chance, known, ways = Random(seed), set[int](), set[str]()
    with ViewHarness(DDL, spark, partitions=1) as h:
        for name, sql in views.items():
            explanation = h.create_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
            assert explanation.strategy == "PATCH", explanation.reason
        h.apply(
            [Insert("g", {"id": 1, "name": "a"}), Insert("g", {"id": 2, "name": "b"}), *random_changes(chance, known)]
        )
        for _ in range(EPOCHS):
            h.apply(random_changes(chance, known))
            ways |= set(h.records[-1].detail["ways"]["view"].values())
            h.verify()
    return ways


def test_lists_follow_random_changes_in_the_order_of_spark(spark: SparkSession) -> None:
    ways = played(spark, VIEWS, SEED)
    assert "patch" in ways, f"seed {SEED}"
    assert ways <= {"patch", "keys+patch"}, f"seed {SEED}"


@pytest.mark.parametrize("view", ["of_word", "of_all"])
def test_null_that_is_put_last_is_noticed(monkeypatch: pytest.MonkeyPatch, spark: SparkSession, view: str) -> None:
    orders = lists._orders
    monkeypatch.setattr(
        lists, "_orders", lambda values: [tuple((not known, value) for known, value in each) for each in orders(values)]
    )
    with pytest.raises(UnequalRows):
        played(spark, {view: VIEWS[view]}, 1)


@pytest.mark.parametrize(
    ("values", "length"),
    drawn(
        1,
        [
            ("sort_array(collect_list(struct(word, id)))", MANY + 1),
            ("slice(sort_array(collect_list(struct(word, id)), false), 1, 10)", 10),
        ],
    ),
)
def test_change_of_a_large_group_reads_the_change_and_the_stored_list(
    spark: SparkSession, values: str, length: int
) -> None:
    empty = dict.fromkeys(COLUMNS)
    with ViewHarness(DDL, spark, partitions=1) as h:
        h.apply(Insert("t", {"id": number, "g": 1, **empty, "word": f"w{number % 7}"}) for number in range(MANY))
        h.create_view(f"CREATE MATERIALIZED VIEW v AS SELECT g, {values} AS l FROM t GROUP BY g")
        h.apply([Insert("t", {"id": MANY, "g": 2, **empty})])
        h.apply([Update("t", {"id": 5}, {"word": "x"}), Insert("t", {"id": MANY + 1, "g": 1, **empty})])
        assert h.records[-1].detail["ways"]["view"] == {"v": "patch"}
        assert h.cost("v").rows_found == 3 + 1, "the row before and after, the new row, and the stored row"
        assert len({row[0]: row[1] for row in h.rows("v")}[1]) == length
        h.verify()
