"""A warehouse with an hour behind it, for the page: a mirror, a view of each kind, and one that has failed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from cdc_views.base.lsn import Lsn
from cdc_views.store.control import ControlLog, ControlRecord, KeptView, TableVersion, TakeoverDetail
from cdc_views.store.warehouse import TableSpec
from cdc_views.testing.hand_clock import HandClock
from tests.unit.published import Published
from tests.unit.search.test_search_reading import Posts
from tests.unit.test_reading_timeline import NEWEST, timeline_spec

MINUTES = 60
ORDERS = TableSpec(
    "public.orders",
    "mirrors/public/orders/a",
    pa.schema([("id", pa.int64()), ("user_id", pa.int64()), ("status", pa.string()), ("amount", pa.decimal128(12, 2)),
               ("ordered_at", pa.timestamp("us", tz="UTC"))]),
    ("id",),
)  # fmt: skip
ORDER_TOTALS = TableSpec(
    "order_totals", "views/order_totals/a",
    pa.schema([("user_id", pa.int64()), ("orders", pa.int64()), ("amount", pa.decimal128(18, 2))]), ("user_id",),
)  # fmt: skip
HOME_TIMELINE = timeline_spec(NEWEST, name="home_timeline", author=pa.string())
PRODUCT_CACHE = TableSpec(
    "product_cache", "views/product_cache/a", pa.schema([("product_id", pa.int64()), ("document", pa.string())]),
    ("product_id",), kind={"kind": "cache"},
)  # fmt: skip
POST_ALERTS = TableSpec(
    "post_alerts", "views/post_alerts/a",
    pa.schema([("search_id", pa.int64()), ("post_id", pa.int64()), ("error", pa.string())]), ("search_id", "post_id"),
    kind={"kind": "saved_searches"},
)  # fmt: skip
FOLDERS = TableSpec(
    "folders", "views/folders/a", pa.schema([("folder", pa.string()), ("files", pa.int64())]), ("folder",)
)
ODD = TableSpec('Odd "name".', "views/odd/a", pa.schema([("x", pa.int64())]), ("x",))
MEMBER_OF_OBJECT = TableSpec("constructor", "views/constructor/a", pa.schema([("x", pa.int64())]), ("x",))
DAILY_SALES = TableSpec(
    "daily_sales", "views/daily_sales/a", pa.schema([("day", pa.date32()), ("average", pa.float64())]), ("day",)
)
HOSTILE = '<img src=x onerror="document.title=1">'
AUTHORS = ("ada", "bob", "carol", "dan")
TEXTS = (
    "Delta tables, exactly once", "How the log is read up to a marker", "A delta of rivers",
    "Views that follow their tables", f"{HOSTILE} is shown as text", "Honey and bread, no tea",
)  # fmt: skip
FAILURE = "DIVIDE_BY_ZERO: division by zero"
STRATEGIES = {
    "order_totals": "ADD", "post_search": "KEYS", "home_timeline": "PATCH", "product_cache": "KEYS",
    "post_alerts": "KEYS", "folders": "ADD", "daily_sales": "FULL",
}  # fmt: skip


SELECT = """SELECT user_id, count(*) AS orders, sum(amount) AS amount
FROM orders  -- cancelled ones, too
GROUP BY user_id"""


def takeover() -> TakeoverDetail:
    """What the engine has recorded of the views."""
    totals = KeptView(
        definition=SELECT, sql=SELECT.replace("orders  --", "public.orders  --"), strategy="ADD",
        reason="the totals over changed rows are added to the stored ones", key=("user_id",),
        key_reason="the columns of GROUP BY", inputs=("public.orders",),
        steps=("group the rows by user_id; one row for each (user_id)", "  read public.orders; one row for each (id)"),
        lookups=("a change of public.orders changes the totals of its (user_id)",),
    )  # fmt: skip
    daily = KeptView(
        definition="SELECT 1 / 0", sql="SELECT 1 / 0", strategy="FULL", reason="there is nothing to look up", key=(),
        key_reason="at most one row", inputs=("order_totals",),
    )  # fmt: skip
    return TakeoverDetail(
        views=dict.fromkeys(STRATEGIES, "h"), strategies=STRATEGIES, kept={"order_totals": totals, "daily_sales": daily}
    )


class Hour(Published):
    """Publishes with a clock of its own, a minute for each epoch, and says what the epoch has cost."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.clock = HandClock(datetime.now(UTC) - timedelta(minutes=MINUTES))
        self.control = ControlLog.open(root, "engine", self.clock)
        self.control.take_over(generation="g", detail=takeover().json_fields())
        self.random = random.Random(7)

    def publish(self, kind: Any = "publish", detail: Mapping[str, Any] | None = None, **statuses: str) -> ControlRecord:
        """Publish what was written, as of up to a second ago."""
        self.epoch = self.control.new_epoch()
        tables = {name: replace(each, status=statuses.get(name, each.status))
                  for name, each in self.tables.items()}  # fmt: skip
        return self.control.append(
            kind=kind, epoch=self.epoch, attempt=self.control.new_attempt(), generation=self.generation,
            position=Lsn(0x16B0000 + self.epoch * 0x1A40), complete_to=Lsn(0x16B0000 + self.epoch * 0x1A40),
            committed_at=self.clock.now() - timedelta(seconds=self.random.uniform(0.2, 0.9)), tables=tables,
            detail=self.costs() if detail is None else detail,
        )  # fmt: skip

    def costs(self) -> dict[str, Any]:
        """The detail of an epoch: now and then one with many changes."""
        changes = self.random.randint(5, 60) * (6 if self.epoch % 17 == 5 else 1)
        work = {
            name: {"keys_looked_up": changes, "rows_found": changes * 4, "rows_recomputed": changes * 2,
                   "rows_written": changes, "milliseconds": self.random.randint(20, 60) + changes}
            for name in STRATEGIES if name != "daily_sales"
        }  # fmt: skip
        return {
            "changes": {"public.orders": changes}, "view_work": work,
            "ways": {"view": {name: STRATEGIES[name].lower() for name in work}},
            "stage_ms": {"cut": 40, "deltas": 12, "mirrors": 25, "views": 90 + changes},
            "failures": {"daily_sales": FAILURE},
        }  # fmt: skip


class Shop:
    """The shop, which goes on with `order`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._posts = Posts(root, name="post_search")
        self.hour = self._posts.published = Hour(root)
        at = datetime(2026, 11, 26, 8, tzinfo=UTC)
        self.hour.write(ORDER_TOTALS, [(user, user % 5, Decimal(user * 17) / 4) for user in range(1, 301)])
        self.hour.write(HOME_TIMELINE, [(user, post, at + timedelta(minutes=post), AUTHORS[post % 4])
                                        for user in (1, 2) for post in range(1, 46)])  # fmt: skip
        self.hour.write(PRODUCT_CACHE, [(n, f'{{"sku": "P-{n:04}", "price": "{n}.50", "stock": {n * 3}}}')
                                        for n in range(1, 41)])  # fmt: skip
        self.hour.write(POST_ALERTS, [(1, post, None) for post in range(1, 4)])
        self.hour.write(FOLDERS, [(".", 3), ("..", 4), ("a/b", 5)])
        self.hour.write(ODD, [(1,)])
        self.hour.write(MEMBER_OF_OBJECT, [(1,)])
        self.hour.write(DAILY_SALES, [(at.date(), 12.5)])
        self.hour.tables["daily_sales"] = TableVersion(DAILY_SALES.path, 1, "failed", "view")
        self.hour.write(ORDERS, [(n, n % 300 + 1, "paid", Decimal(n) / 4, at) for n in range(1, 401)])
        documents = [(n, TEXTS[n % len(TEXTS)], f"{TEXTS[(n + 1) % len(TEXTS)]}, part {n}.", AUTHORS[n % 4],
                      at + timedelta(hours=n)) for n in range(1, 31)]  # fmt: skip
        self._posts.put(documents)  # type: ignore[arg-type]
        for _ in range(MINUTES - 1):
            self.hour.clock.advance(60)
            self.hour.publish()
        self.hour.clock.advance((datetime.now(UTC) - self.hour.clock.now()).total_seconds())
        self.hour.publish()

    def order(self, number: int, amount: str) -> None:
        """Publish an order."""
        self.hour.write(ORDERS, [(number, 1, HOSTILE, Decimal(amount), datetime.now(UTC))])
        self.hour.clock.advance((datetime.now(UTC) - self.hour.clock.now()).total_seconds())
        self.hour.publish()
