"""The harness: what it is asked, and that the answers are the engine's."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_views.errors import (
    BadView,
    DuplicateKey,
    NotRunning,
    StrictViewIsFull,
    UnequalRows,
    UnknownView,
    UnsupportedView,
    ViewFailed,
)
from cdc_views.testing import (
    Cost,
    Delete,
    HandClock,
    Insert,
    Update,
    ViewChanges,
    ViewHarness,
    assert_equal,
    same_rows,
)
from cdc_views.testing.histories import RandomHistory, Schema

POINTS_OF_EPOCHS = ("takeover.after_fence", "epoch.after_cut", "epoch.after_intent", "views.after_first_commit",
                    "epoch.before_publish")  # fmt: skip
ORDERS = "CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint, total numeric(12,2))"
USERS = "CREATE TABLE shop.users (id bigserial PRIMARY KEY, name varchar(9) NOT NULL DEFAULT 'nobody')"
TOTALS = "CREATE MATERIALIZED VIEW totals (user_id, total) AS SELECT user_id, sum(total) FROM orders GROUP BY user_id"
RICH = "CREATE MATERIALIZED VIEW rich AS SELECT user_id FROM totals WHERE total > 5"
NAMES = "CREATE MATERIALIZED VIEW names AS SELECT lower(name) AS name FROM shop.users"
FIRST = [
    Insert("orders", {"id": 1, "user_id": 1, "total": 5}),
    Insert("orders", {"id": 2, "user_id": 1, "total": "2.5"}),
    Insert("orders", {"id": 3, "user_id": 2, "total": 1.005}),
]


# Two harnesses without a Spark, one after the other, in a process of their own.
ALONE = """
from cdc_views.testing import Insert, ViewHarness
for key in (1, 2):
    with ViewHarness("CREATE TABLE t (id int PRIMARY KEY)") as h:
        h.create_view("CREATE MATERIALIZED VIEW v AS SELECT id FROM t")
        h.apply([Insert("t", {"id": key})])
        print(h.rows("v"), h.warehouse)
"""


@pytest.fixture
def h(spark: SparkSession) -> Iterator[ViewHarness]:
    with ViewHarness([ORDERS, USERS], spark, clock=HandClock()) as harness:
        yield harness


def rows(*values: Any) -> list[tuple[Any, ...]]:
    return [(user, Decimal(total)) for user, total in values]


def test_example_of_the_docs_runs(spark: SparkSession) -> None:
    text = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len([line for line in blocks[0].splitlines() if line]) <= 11  # ten, and the import
    names: dict[str, Any] = {"spark": spark, "Delete": Delete}
    exec(blocks[0], names)  # uses the Spark that runs already
    names["test_totals_follow_the_orders"]()
    exec(blocks[2], names)
    schema = Schema("bigint", "text", "integer", "smallint", "date")
    changes = (Insert("l", {"id": 1, "j": "a"}), Insert("r", {"id": 1, "part": 1, "j": "a", "n": 7}))
    state = {"l": [{**dict.fromkeys(schema.columns), "id": 1, "j": "a"}],
             "r": [{**dict.fromkeys(schema.columns), "id": 1, "part": 1, "j": "a", "n": 7}]}  # fmt: skip
    names["test_view_survives_every_history"].hypothesis.inner_test(RandomHistory(schema, ((changes,),), (state,)))


@pytest.mark.nightly
def test_harness_without_a_spark_starts_and_stops_its_own() -> None:
    ran = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    (first, warehouse), (second, other) = (line.rsplit(" ", 1) for line in ran.stdout.splitlines())
    assert (first, second) == ("[(1,)]", "[(2,)]")
    assert not Path(warehouse).exists()
    assert not Path(other).exists()


def test_view_equals_its_sql_after_changes(h: ViewHarness) -> None:
    explanation = h.create_view(TOTALS)
    assert (explanation.strategy, explanation.key) == ("KEYS", ("user_id",))
    h.apply(FIRST)
    assert same_rows(h.rows("totals"), rows((1, "7.50"), (2, "1.01")))
    h.apply(
        [
            Update("orders", {"id": 1}, {"user_id": 3}),
            Update("orders", {"id": 2}, {"id": 9}),
            Delete("orders", {"id": 3}),
        ]
    )
    assert_equal(h.rows("totals"), rows((1, "2.50"), (3, "5.00")))
    assert_equal(h.recomputed("totals"), h.rows("totals"))
    assert_equal(h.rows("public.orders"), [(1, 3, Decimal(5)), (9, 1, Decimal("2.5"))])
    h.verify()


def test_views_declared_over_rows_and_views_that_are_there_are_built_together(h: ViewHarness) -> None:
    h.apply(FIRST)
    before = len(h.records)
    for sql in (TOTALS, RICH, NAMES):
        h.create_view(sql)
    assert_equal(h.rows("rich"), [(1,)])
    assert_equal(h.recomputed("rich"), [(1,)])
    assert [record.kind for record in h.records[before:]] == ["intent", "publish"]
    assert h.views == ["totals", "rich", "names"]
    h.apply([Insert("shop.users", {"name": "ADA"}), Insert("shop.users", {})])
    assert_equal(h.rows("names"), [("ada",), ("nobody",)])


def test_changes_are_those_of_the_last_epoch(h: ViewHarness) -> None:
    h.apply(FIRST)
    h.create_view(TOTALS)
    assert_equal(h.changes("totals").inserted, rows((1, "7.50"), (2, "1.01")))
    h.apply([Update("orders", {"id": 1}, {"total": 6})])
    assert h.changes("totals") == ViewChanges(inserted=rows((1, "8.50")), deleted=rows((1, "7.50")))
    h.create_view(NAMES)
    assert h.changes("names") == ViewChanges([], [])
    assert h.changes("totals") == ViewChanges(inserted=rows((1, "8.50")), deleted=rows((1, "7.50")))
    h.apply([Insert("shop.users", {})])
    assert h.changes("totals") == ViewChanges([], [])


def test_hidden_columns_of_a_view_without_a_key_are_not_shown(h: ViewHarness) -> None:
    assert h.create_view(NAMES).key is None
    h.apply([Insert("shop.users", {}), Insert("shop.users", {}), Insert("shop.users", {"name": "x"})])
    assert_equal(h.rows("names"), [("nobody",), ("nobody",), ("x",)])
    h.apply([Delete("shop.users", {"id": 1})])
    assert h.changes("names") == ViewChanges([], [("nobody",)])
    h.create_view("CREATE MATERIALIZED VIEW again AS SELECT * FROM names")
    h.create_view("CREATE MATERIALIZED VIEW joined AS SELECT * FROM names NATURAL JOIN again")
    assert_equal(h.rows("again"), [("nobody",), ("x",)])
    assert_equal(h.rows("joined"), [("nobody",), ("x",)])
    h.verify()


def test_rows_that_tie_are_ordered_by_their_key(h: ViewHarness) -> None:
    views = {
        "numbered": "SELECT id, row_number() OVER w AS n, lag(id) OVER w AS b FROM orders"
                    " WINDOW w AS (ORDER BY user_id)",
        "top": "SELECT total FROM orders ORDER BY user_id DESC LIMIT 2",
        "listed": "SELECT listagg(string(id), ',') WITHIN GROUP (ORDER BY user_id) AS ids FROM orders",
        "summed": "SELECT id, sum(id) OVER (ORDER BY user_id ROWS 1 PRECEDING) AS s FROM orders",
    }  # fmt: skip
    for name, sql in views.items():
        shown = h.create_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}").sql
        assert "orders.id" in shown
    for key in (3, 1, 4, 2):  # each in a file of its own
        h.apply([Insert("orders", {"id": key, "user_id": 1, "total": key})])
    assert_equal(h.rows("numbered"), [(1, 1, None), (2, 2, 1), (3, 3, 2), (4, 4, 3)])
    assert_equal(h.rows("top"), [(Decimal(1),), (Decimal(2),)])
    assert_equal(h.rows("listed"), [("1,2,3,4",)])
    assert_equal(h.rows("summed"), [(1, 1), (2, 3), (3, 5), (4, 7)])
    h.verify()


def test_columns_without_a_name_have_those_of_postgres(h: ViewHarness) -> None:
    h.create_view(
        "CREATE MATERIALIZED VIEW counts AS SELECT user_id, count(*), max(total) FROM orders GROUP BY user_id"
    )
    h.create_view("CREATE MATERIALIZED VIEW most AS SELECT max(count) AS n FROM counts")
    h.apply(FIRST)
    assert_equal(h.rows("most"), [(2,)])
    with pytest.raises(BadView, match='column "count" appears twice'):
        h.create_view("CREATE MATERIALIZED VIEW twice AS SELECT count(*), count(id) FROM orders")
    with pytest.raises(BadView, match=r'"count\(1\)" has a character'):
        h.create_view("CREATE MATERIALIZED VIEW c AS SELECT * FROM (SELECT count(*) FROM orders)")


@pytest.mark.parametrize("allow_direct", [True, False])
def test_cost_is_what_was_read_and_written(spark: SparkSession, allow_direct: bool) -> None:
    with ViewHarness(ORDERS, spark, allow_direct=allow_direct) as h:
        h.apply(FIRST)
        h.create_view(TOTALS)
        h.apply([Update("orders", {"id": 3}, {"user_id": 4})])
        cost = h.cost("totals")
        # The driver reads the order before and after its change, the orders of both users, and the stored rows of both.
        # Spark reads all orders and all stored rows, and its MERGE some of them again.
        assert (cost.rows_read, cost.files_read) == (12, 6) if allow_direct else cost.rows_read >= 7
        assert cost.files_read >= 4
        assert cost.rows_written == 1
        assert cost.commits == 1
        assert cost.rows_found >= cost.rows_recomputed >= 1 if allow_direct else cost.rows_found >= 3
        recorded = h.records[-1].detail["view_work"]["totals"]
        for counter in ("keys_looked_up", "rows_found", "rows_recomputed", "rows_written", "commits"):
            assert recorded[counter] == getattr(cost, counter)
        assert cost.jobs == 1 if allow_direct else cost.jobs > 1
        way = "direct" if allow_direct else "spark"
        assert h.records[-1].detail["ways"] == {"commit": {"public.orders": way, "totals": way}} | (
            {"lookup": {"public.orders": "index", "totals": "index"}, "view": {"totals": "keys"}}
            if allow_direct
            else {"read": {"public.orders": "spark"}, "diff": {"totals": "spark"}, "view": {"totals": "full"}}
        )


def test_view_that_an_epoch_does_not_touch_costs_nothing(h: ViewHarness) -> None:
    h.create_view(NAMES.replace("SELECT", "SELECT id,"))
    assert h.cost("names").jobs == 1
    h.apply(FIRST)
    assert h.cost("names") == Cost()


def test_view_that_cannot_be_kept_is_refused_at_once(h: ViewHarness) -> None:
    with pytest.raises(UnsupportedView, match=r"late\.sql:1:41: now"):
        h.create_view("CREATE MATERIALIZED VIEW late AS SELECT now() AS n FROM orders")
    with pytest.raises(UnsupportedView, match=r"r\.sql:1:38: uuid\(\) returns"):
        h.create_view("CREATE MATERIALIZED VIEW r AS SELECT `uuid`() AS n FROM orders")
    with pytest.raises(UnsupportedView, match="map"):
        h.create_view("CREATE MATERIALIZED VIEW m AS SELECT map(id, 1) AS m FROM orders")
    with pytest.raises(BadView, match="unknown table"):
        h.create_view("CREATE MATERIALIZED VIEW v AS SELECT 1 AS one FROM nowhere")
    with pytest.raises(StrictViewIsFull, match="a window over all rows"):
        h.create_view("CREATE MATERIALIZED VIEW r WITH (strict) AS SELECT rank() OVER (ORDER BY id) AS n FROM orders")
    with pytest.raises(BadView, match="form"):
        h.create_view("SELECT 1")
    with pytest.raises(BadView, match=r'odd\.sql:1:\d+: .*column "a b" has a character'):
        h.create_view("CREATE MATERIALIZED VIEW odd AS SELECT id AS `a b` FROM orders")
    for deep in ("(" * 2500 + "id" + " + 1)" * 2500, "id" + " + 1" * 20_000):
        with pytest.raises(BadView, match=r"deep\.sql:1:\d+: .*too (deeply|complex)"):
            h.create_view(f"CREATE MATERIALIZED VIEW deep AS SELECT {deep} AS d FROM orders")
    assert h.views == []
    h.apply(FIRST)  # goes on as if they had never been asked for
    h.create_view(TOTALS)
    assert len(h.rows("totals")) == 2


def test_view_is_dropped_and_declared_again(h: ViewHarness) -> None:
    h.create_view(TOTALS)
    h.create_view(RICH)
    with pytest.raises(BadView, match="is already defined in"):
        h.create_view(TOTALS)
    with pytest.raises(BadView, match='read by view "rich"'):
        h.drop_view("totals")
    h.apply(FIRST)
    h.drop_view("rich")
    with pytest.raises(UnknownView):
        h.rows("rich")
    h.apply([Delete("orders", {"id": 1})])
    h.create_view(RICH)
    assert h.rows("rich") == []
    h.drop_view("rich")
    h.create_view(RICH)  # the same again before any epoch has missed it
    assert h.changes("rich") == ViewChanges([], [])
    h.verify()


def test_view_whose_query_fails_says_so_and_comes_back(h: ViewHarness) -> None:
    h.create_view("CREATE MATERIALIZED VIEW shares AS SELECT id, 10 / total AS share FROM orders")
    h.apply([Insert("orders", {"id": 1, "total": 0})])
    with pytest.raises(ViewFailed, match="DIVIDE_BY_ZERO"):
        h.rows("shares")
    h.apply([Update("orders", {"id": 1}, {"total": 4})])
    assert_equal(h.rows("shares"), [(1, Decimal("2.5"))])


def test_refused_change_leaves_everything_as_it_was(h: ViewHarness) -> None:
    h.create_view(TOTALS)
    h.apply(FIRST)
    with pytest.raises(DuplicateKey):
        h.apply([Delete("orders", {"id": 2}), Insert("orders", {"id": 1})])
    h.apply([])
    assert_equal(h.rows("totals"), rows((1, "7.50"), (2, "1.01")))


def test_verify_names_the_view_and_the_rows(h: ViewHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    h.create_view(TOTALS)
    h.apply(FIRST)
    monkeypatch.setattr(h, "rows", lambda name: rows((1, "7.50"), (2, "1.02")))
    with pytest.raises(UnequalRows, match=r'view "totals": 1 too many, 1 missing(.|\n)*1\.02(.|\n)*1\.01'):
        h.verify()


@pytest.mark.parametrize("point", POINTS_OF_EPOCHS)
def test_crash_at_any_point_loses_nothing(h: ViewHarness, point: str) -> None:
    h.create_view(TOTALS)
    h.create_view(RICH)
    h.apply(FIRST)
    if point.startswith("takeover"):
        with h.crash_at(point):
            h.restart()
    else:
        with h.crash_at(point):
            h.apply([Update("orders", {"id": 3}, {"user_id": 1}), Insert("shop.users", {})])
        with pytest.raises(NotRunning):
            h.rows("totals")
    h.restart()
    if point.startswith("takeover"):
        assert_equal(h.rows("totals"), rows((1, "7.50"), (2, "1.01")))
    else:
        assert h.rows("totals") == h.changes("totals").inserted == rows((1, "8.51"))
    h.verify()


def test_position_without_changes_is_published_once_an_interval(h: ViewHarness) -> None:
    assert isinstance(h.clock, HandClock)
    h.apply(FIRST)
    assert h.run_epoch(idle_interval_s=5) is None
    h.clock.advance(4.9)
    assert h.run_epoch(idle_interval_s=5) is None
    h.clock.advance(0.1)
    record = h.run_epoch(idle_interval_s=5)
    assert record is not None
    assert record.published_at == h.clock.now()


@pytest.mark.parametrize("allow_direct", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_views_read_tables_of_any_name(spark: SparkSession, allow_direct: bool) -> None:
    names = ['"my.schema"."Order Items"', '"say ""hi""/[x]%2F"', '"a`b:*?#"', '"ünï 😀"']
    tables = [f"CREATE TABLE {name} (id int PRIMARY KEY, n int)" for name in names]
    sql = (
        "SELECT `Order Items`.id, q.n + x.n + u.n AS n FROM `my.schema`.`Order Items`"
        ' JOIN `say "hi"/[x]%2F` AS q USING (id) JOIN public.`a``b:*?#` x ON x.id = q.id JOIN `ÜNÏ 😀` u ON u.id = x.id'
    )
    with ViewHarness(tables, spark, allow_direct=allow_direct) as harness:
        harness.create_view(f"CREATE MATERIALIZED VIEW sums AS {sql}")
        harness.apply([Insert(name, {"id": 1, "n": 10**place}) for place, name in enumerate(names)])
        harness.apply([Update(names[0], {"id": 1}, {"n": 5})])
        assert harness.rows("sums") == [(1, 1110)]
        harness.verify()
