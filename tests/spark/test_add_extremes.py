"""Extremes over all rows with Spark: the value that follows a removed one, of each type, alone and over a join."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random, randrange
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from cdc_views.errors import UnequalRows
from cdc_views.store.files import data_files
from cdc_views.store.warehouse import Warehouse
from cdc_views.testing import Change, Delete, Insert, Update, ViewHarness

DDL: Final = [
    "CREATE TABLE products (id bigint PRIMARY KEY, price numeric(12, 2), wide numeric(38, 2), n integer, day date,"
    " at timestamptz, kind text)",
    "CREATE TABLE items (id bigint PRIMARY KEY, product_id bigint)",
]
COLUMNS: Final = ("price", "wide", "n", "day", "at")
EXTREMES: Final = ", ".join(f"max({name}) AS most_{name}, min({name}) AS least_{name}" for name in COLUMNS)
VIEWS: Final = {
    "all_rows": f"SELECT count(*) AS c, {EXTREMES} FROM products",
    "some_rows": f"SELECT {EXTREMES} FROM products WHERE kind = 'a'",
    "joined": f"SELECT count(*) AS c, {EXTREMES} FROM items i JOIN products p ON p.id = i.product_id",
}
SIZE: Final = 60
SEED: Final = randrange(2**32)


@pytest.fixture
def h(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[ViewHarness]:
    monkeypatch.setattr(data_files, "ROW_GROUP", 4)
    with ViewHarness(DDL, spark, partitions=1) as harness:
        for name, sql in VIEWS.items():
            assert harness.create_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}").strategy == "ADD"
        yield harness


def product(key: int, number: int | None, kind: str) -> dict[str, Any]:
    """A product whose columns have all one order: that of the number."""
    values: dict[str, Any] = dict.fromkeys(COLUMNS)
    if number is not None:
        values = {
            "price": Decimal(number).scaleb(-2),
            "wide": Decimal(10**30 * number).scaleb(-2),
            "n": number,
            "day": date(2026, 1, 1) + timedelta(days=number),
            "at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number),
        }
    return {"id": key, "kind": kind, **values}


def filled(chance: Random) -> Iterator[Change]:
    """Products with numbers of both signs, some twice, some NULL; each but every third has an item."""
    for key in range(SIZE):
        number = chance.choice([None, *range(-SIZE, SIZE)])
        yield Insert("products", product(key, number, chance.choice("aab")))
        if key % 3:
            yield Insert("items", {"id": key, "product_id": key})


def emptied(h: ViewHarness, chance: Random) -> Iterator[list[Change]]:
    """Epochs that take the product with the largest or the smallest number away, or its number, or only its item."""
    rows = {int(row[0]): row[3] for row in h.rows("public.products")}
    items = {int(row[0]) for row in h.rows("public.items")}
    while numbers := {key: number for key, number in rows.items() if number is not None}:
        extreme = chance.choice([max, min])(numbers.values())
        changes: list[Change] = []
        for key in (key for key, number in numbers.items() if number == extreme):
            kind = chance.choice(["delete", "update", "item"] if key in items else ["delete", "update"])
            if kind == "item":
                changes.append(Delete("items", {"id": key}))
                items.remove(key)
            elif kind == "update":
                changes.append(Update("products", {"id": key}, dict.fromkeys(COLUMNS)))
                rows[key] = None
            else:
                changes.append(Delete("products", {"id": key}))
                del rows[key]
        yield changes


def ways(h: ViewHarness) -> set[str]:
    return {str(h.records[-1].detail["ways"]["view"].get(view, "add")) for view in VIEWS}


def check(h: ViewHarness, seed: int, epochs: int) -> None:
    chance = Random(seed)
    h.apply(filled(chance))
    h.verify()
    for _, changes in zip(range(epochs), emptied(h, chance), strict=False):
        h.apply(changes)
        h.verify()
        assert ways(h) == {"add"}, f"seed {seed}"


def test_extremes_follow_while_the_extreme_rows_are_taken_away(h: ViewHarness) -> None:
    check(h, SEED, epochs=15)


def test_control_that_searches_from_the_other_end_is_noticed(h: ViewHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    first_rows = Warehouse.first_rows

    def other_end(*given: Any, is_largest: bool) -> Any:
        return first_rows(*given, is_largest=not is_largest)

    monkeypatch.setattr(Warehouse, "first_rows", other_end)
    with pytest.raises(UnequalRows):
        check(h, SEED, epochs=15)
