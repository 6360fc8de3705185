"""ADD with Spark: the demo's total over random transfers, NULL sums, ranges of types, and crashes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

import cdc_views.demo
from cdc_views.errors import UnsupportedView, ViewFailed
from cdc_views.testing import Change, Delete, Insert, Update, ViewHarness, assert_equal
from tests.seed import SEED, drawn

NAMES: Final = ("accounts", "savings")
DDL: Final = [
    *(f"CREATE TABLE {name} (id bigint PRIMARY KEY, balance numeric(18, 2), tags text[])" for name in NAMES),
    "CREATE TABLE t (id bigint PRIMARY KEY, d numeric(4, 2), n bigint, x double precision)",
]
BANK: Final = (Path(cdc_views.demo.__file__).parent / "views" / "bank_total.sql").read_text()


@pytest.fixture
def h(spark: SparkSession) -> Iterator[ViewHarness]:
    with ViewHarness(DDL, spark, partitions=1) as harness:
        yield harness


def created(h: ViewHarness, sql: str) -> None:
    """Declare and build a view "v", which must be maintained by ADD."""
    explanation = h.create_view(f"CREATE MATERIALIZED VIEW v AS {sql}")
    assert explanation.strategy == "ADD", explanation.reason
    h.run_epoch()


def way(h: ViewHarness, view: str = "v") -> str:
    """How a view was maintained in the last epoch."""
    return str(h.records[-1].detail["ways"]["view"][view])


def applied(h: ViewHarness, *changes: Change, view: str = "v") -> tuple[str, list[tuple[Any, ...]]]:
    """Apply changes in one epoch; returns how the view was maintained, and its rows."""
    h.apply(changes)
    h.verify()
    return way(h, view), h.rows(view)


def t(key: int, **columns: object) -> Insert:
    return Insert("t", {"id": key, "d": None, "n": None, "x": None, **columns})


# ---- the demo's total


class Bank:
    """Money in two tables, and transfers between them."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.balances: dict[tuple[str, int], Decimal | None] = {}

    def opened(self) -> Iterable[Change]:
        for name in NAMES:
            for key in range(1, 6):
                self.balances[name, key] = Decimal(self.chance.randint(0, 10_000)).scaleb(-2)
                yield Insert(name, {"id": key, "balance": self.balances[name, key], "tags": ["a", None]})

    def transfer(self) -> Iterable[Change]:
        places = self.chance.sample(sorted(self.balances), 2)
        amount = Decimal(self.chance.randint(-5_000, 5_000)).scaleb(-2)
        for (name, key), change in zip(places, (amount, -amount), strict=True):
            balance = (self.balances[name, key] or Decimal()) + change
            self.balances[name, key] = balance
            yield Update(name, {"id": key}, {"balance": balance})

    def opening_or_closing(self) -> Iterable[Change]:
        name, key = self.chance.choice(sorted(self.balances))
        if len(self.balances) > 4 and self.chance.random() < 0.5:
            del self.balances[name, key]
            yield Delete(name, {"id": key})
        else:
            new = max(number for _, number in self.balances) + 1
            self.balances[name, new] = self.chance.choice([None, Decimal("12.34")])
            yield Insert(name, {"id": new, "balance": self.balances[name, new], "tags": None})

    def totals(self) -> tuple[Decimal, int]:
        return sum((each for each in self.balances.values() if each is not None), Decimal()), len(self.balances)


def test_total_of_the_demo_follows_random_transfers_by_the_changed_rows(h: ViewHarness) -> None:
    bank = Bank(Random(SEED))
    assert h.create_view(BANK).strategy == "ADD"
    h.apply(bank.opened())
    for _ in range(6):
        before = h.records[-1].tables["bank_total"].version
        h.apply(bank.transfer())
        assert h.records[-1].tables["bank_total"].version == before, f"a transfer commits nothing; seed {SEED}"
        assert way(h, "bank_total") == "add"
        h.apply([*bank.transfer(), *bank.opening_or_closing()])
        assert (way(h, "bank_total"), h.rows("bank_total")) == ("add", [bank.totals()]), f"seed {SEED}"
    h.verify()


@pytest.mark.parametrize("point", drawn(1, ["views.after_first_commit", "epoch.after_mirrors", "epoch.before_publish"]))
def test_crash_adds_no_change_twice(h: ViewHarness, point: str) -> None:
    bank = Bank(Random(SEED))
    h.create_view(BANK)
    h.apply(bank.opened())
    with h.crash_at(point):
        h.apply(bank.opening_or_closing())
    h.restart()
    assert_equal(h.rows("bank_total"), [bank.totals()])
    h.apply(bank.opening_or_closing())
    assert_equal(h.rows("bank_total"), [bank.totals()])
    h.verify()


def test_first_epoch_runs_the_whole_query(h: ViewHarness) -> None:
    h.apply([t(1, d=Decimal("1.00"))])
    created(h, "SELECT sum(d) AS s FROM t")
    assert (way(h), h.rows("v")) == ("full", [(Decimal("1.00"),)])


# ---- NULL


def test_sum_over_no_value_is_null_and_not_zero(h: ViewHarness) -> None:
    created(h, "SELECT sum(d) AS s, count(d) AS n FROM t")
    assert applied(h, t(1)) == ("add", [(None, 0)])
    assert applied(h, t(2, d=Decimal("1.50"))) == ("add", [(Decimal("1.50"), 1)])
    assert applied(h, Delete("t", {"id": 2})) == ("add", [(None, 0)])
    assert applied(h, t(3, d=Decimal("0.00"))) == ("add", [(Decimal("0.00"), 1)])


def test_sum_that_may_be_null_or_zero_runs_the_whole_query(h: ViewHarness) -> None:
    created(h, "SELECT sum(n) AS s FROM t")
    assert applied(h, t(1, n=5), t(2, n=0)) == ("add", [(5,)])
    assert applied(h, Delete("t", {"id": 1})) == ("full", [(0,)])
    assert applied(h, Delete("t", {"id": 2})) == ("full", [(None,)])


# ---- ranges


def test_total_beyond_the_type_fails_as_its_query_does_and_recovers(h: ViewHarness) -> None:
    created(h, "SELECT CAST(sum(d) AS DECIMAL(4, 2)) AS s FROM t")
    assert applied(h, t(1, d=Decimal("60.00"))) == ("add", [(Decimal("60.00"),)])
    h.apply([t(2, d=Decimal("60.00"))])
    with pytest.raises(ViewFailed, match="NUMERIC_VALUE_OUT_OF_RANGE"):
        h.rows("v")
    assert applied(h, Delete("t", {"id": 1})) == ("full", [(Decimal("60.00"),)])
    assert applied(h, Delete("t", {"id": 2}), t(3)) == ("full", [(None,)])


def test_changes_beyond_the_type_whose_total_is_not_run_the_whole_query(h: ViewHarness) -> None:
    created(h, "SELECT CAST(sum(d) AS DECIMAL(4, 2)) AS s FROM t")
    applied(h, t(1, d=Decimal("-60.00")), t(2, d=Decimal("99.00")))
    changes = [Insert("t", {"id": key, "d": Decimal("30.00"), "n": None, "x": None}) for key in (3, 4)]
    moved = [Update("t", {"id": 1}, {"d": Decimal("-99.00")}), Update("t", {"id": 2}, {"d": Decimal("99.50")})]
    assert applied(h, *changes, *moved) == ("add", [(Decimal("60.50"),)])
    many = [Insert("t", {"id": key, "d": Decimal("50.00"), "n": None, "x": None}) for key in range(5, 8)]
    less = [Delete("t", {"id": key}) for key in (2, 3, 4)]
    assert applied(h, *many, *less) == ("failed+full", [(Decimal("51.00"),)])


def test_sum_of_whole_numbers_beyond_their_type_fails_although_the_column_holds_it(h: ViewHarness) -> None:
    created(h, "SELECT CAST(sum(n) AS DECIMAL(38, 0)) AS s FROM t")
    assert applied(h, t(1, n=2**63 - 1)) == ("add", [(Decimal(2**63 - 1),)])
    h.apply([t(2, n=1)])
    with pytest.raises(ViewFailed, match="ARITHMETIC_OVERFLOW"):
        h.rows("v")


# ---- other rows than those of tables and inner joins

ROWS: Final = {
    "left join": "accounts a LEFT JOIN savings s ON s.id = a.id",
    "in": "accounts a WHERE id NOT IN (SELECT id FROM savings)",
    "exists": "accounts a WHERE EXISTS (SELECT 1 FROM savings s WHERE s.id = a.id AND s.balance < a.balance)",
    "distinct": "(SELECT DISTINCT balance FROM accounts UNION ALL SELECT balance FROM savings) a",
    "groups": "(SELECT id, max(balance) AS balance FROM (SELECT * FROM accounts UNION ALL SELECT * FROM savings) q "
    "GROUP BY id) a",
    "tags": "accounts a LEFT JOIN savings s ON s.id = a.id LATERAL VIEW explode_outer(a.tags) e AS tag",
}


@pytest.mark.parametrize("name", drawn(2, list(ROWS)))
def test_total_over_other_rows_follows_random_transfers(h: ViewHarness, name: str) -> None:
    bank = Bank(Random(f"{SEED} {name}"))
    created(h, f"SELECT count(*) AS n, sum(a.balance) AS s, count(a.balance) AS m FROM {ROWS[name]}")
    h.apply(bank.opened())
    for _ in range(4):
        way_, _ = applied(h, *bank.transfer(), *bank.opening_or_closing())
        assert way_ == "add", f"seed {SEED}"


def test_total_over_a_left_join_is_added_once_after_a_crash(h: ViewHarness) -> None:
    bank = Bank(Random(SEED))
    created(h, f"SELECT count(*) AS n, count(DISTINCT a.balance) AS different FROM {ROWS['left join']}")
    h.apply(bank.opened())
    with h.crash_at("views.after_first_commit"):
        h.apply([Insert("accounts", {"id": 100, "balance": Decimal("1.00"), "tags": None})])
    h.restart()
    h.verify()
    assert applied(h, *bank.opening_or_closing())[0] == "add"


# ---- other views


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(CAST(x AS DECIMAL(18, 2)) / 2) + 1 AS s FROM t AS q(id, d, n, x)",
        "SELECT count(d, n) AS s FROM t",
        "SELECT try_sum(n) AS s FROM t",
        "SELECT count(m) AS s FROM (SELECT try_sum(n) AS m FROM t) q",
        "SELECT count(m) AS s FROM (SELECT any(n > 0) AS m FROM t) q",
        "SELECT count(m) AS s FROM (SELECT try_sum(n) AS r, r AS m FROM t) q",
    ],
)
def test_other_aggregate_is_computed_in_full(h: ViewHarness, sql: str) -> None:
    assert h.create_view(f"CREATE MATERIALIZED VIEW v AS {sql}").strategy == "FULL"
    assert applied(h, t(1, n=1, d=Decimal("1.00"), x=0.5), t(2))[0] == "full"


@pytest.mark.parametrize("sql", ["sum(x)", "CAST(sum(x) AS DECIMAL(18, 2))"])
def test_sum_of_floats_is_refused(h: ViewHarness, sql: str) -> None:
    with pytest.raises(UnsupportedView, match="floating-point"):
        h.create_view(f"CREATE MATERIALIZED VIEW v AS SELECT {sql} AS s FROM t")


def test_view_of_exploded_arrays_over_another_view_is_added(h: ViewHarness) -> None:
    h.create_view("CREATE MATERIALIZED VIEW tagged AS SELECT id, tags, balance FROM accounts WHERE balance > 1")
    created(
        h,
        "SELECT count(tag) AS tags, count(*) AS n, CAST(sum(balance) AS DECIMAL(20, 2)) AS s"
        " FROM (SELECT explode(tags) AS tag, balance FROM tagged UNION ALL"
        " SELECT tag, balance FROM savings LATERAL VIEW explode_outer(tags) e AS tag) q",
    )
    rows = [Insert(name, {"id": key, "balance": Decimal(key), "tags": ["a", None]}) for name in NAMES for key in (1, 2)]
    assert applied(h, *rows) == ("add", [(3, 6, Decimal(10))])
    change = Update("accounts", {"id": 2}, {"tags": ["a", "b", "c"]}), Update("savings", {"id": 1}, {"tags": None})
    assert applied(h, *change) == ("add", [(4, 6, Decimal("11.00"))])


@pytest.mark.parametrize("sets", ["WITH ROLLUP", "WITH CUBE", "GROUPING SETS ((d, n), (n), ())"])
def test_sets_behind_their_columns_are_added(h: ViewHarness, sets: str) -> None:
    created(h, f"SELECT n, d, grouping_id() AS level, count(*) AS rows FROM t GROUP BY n, d {sets}")
    for key in range(4):
        assert applied(h, t(2 * key, n=key % 2), t(2 * key + 1, n=key % 2, d=Decimal(1)))[0] == "add"
    assert applied(h, Update("t", {"id": 1}, {"n": None}), Delete("t", {"id": 2}))[0] == "add"
    assert applied(h, *(Delete("t", {"id": key}) for key in (0, 1, 3, 4, 5, 6, 7))) == ("add", [])
