"""Tables of a given size, in which groups do not grow with the size, and a small change that fits every size.

Row number i of a table belongs to row i of the others: a join value, a group, a day or a category has the same few rows
at every size. With a hot key, one user has every order and follows everyone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from cdc_views.testing import Change, Delete, Insert, Update
from tests.view_shapes.tables import TABLES

# The small change is in the rows up to number 121, and in rows that belong to them: user i has orders 2i - 1 and 2i.
LEAST_SIZE: Final = 256
NEW: Final = 10_000_000  # the number of a new row
_BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)


def inserts(size: int, *, first: int = 1, is_hot: bool = False) -> Iterator[Change]:
    """The rows of all tables from number `first` to `size`: one of each number, or two."""
    for i in range(first, size + 1):
        time = _BEGIN + timedelta(hours=3 * i)
        user = 1 if is_hot else (i + 1) // 2
        yield Insert("users", {"id": i, "name": f"n{i // 3}", "country": f"c{i // 8}", "manager_id": i // 4 * 4})
        for followee in (i, i + 1):
            follower = 1 if is_hot and followee == i else i + 1
            yield Insert("follows", {"follower_id": follower, "followee_id": followee, "muted": i % 3 == 0})
        yield Insert("posts", {"id": i, "author_id": (i + 1) // 2, "body": f"w{i} b", "tags": ["x", f"t{i}"],
                               "created_at": time})  # fmt: skip
        yield Insert("orders", {"id": i, "user_id": user, "status": ("open", "paid")[i % 2], "ordered_at": time,
                                "note": f"note {i}"})  # fmt: skip
        for line in (1, 2):
            yield Insert("order_items", {"order_id": i, "line": line, "product_id": i, "quantity": line + 1,
                                         "unit_price": Decimal(i)})  # fmt: skip
            yield Insert("prices", {"product_id": i, "since": time - timedelta(days=line), "price": Decimal(line)})
        yield Insert("products", {"id": i, "sku": f"s{i}", "name": f"n{i // 3}", "category_id": i // 8,
                                  "price": Decimal(i), "weight": float(i // 8)})  # fmt: skip
        yield Insert("categories", {"id": i, "parent_id": None if i % 4 == 0 else i // 4 * 4, "name": f"n{i}"})
        yield Insert("events", {"id": i, "user_id": i // 4, "kind": ("click", "view")[i % 2],
                                "at": time + timedelta(minutes=i % 3)})  # fmt: skip
        yield Insert("accounts", {"id": i, "balance": i})
        yield Insert("savings", {"id": i + 1, "balance": i})


def small_change() -> Iterator[Change]:
    """A few changes of each table but `categories`; the average price stays what it is."""
    time = _BEGIN + timedelta(hours=300)
    yield Update("users", {"id": 100}, {"name": "renamed"})
    yield Update("users", {"id": 110}, {"country": "c2"})
    yield Delete("users", {"id": 120})
    yield Insert("users", {"id": NEW, "name": "new", "country": "c3", "manager_id": 4})
    yield Update("follows", {"follower_id": 101, "followee_id": 100}, {"muted": None})
    yield Delete("follows", {"follower_id": 111, "followee_id": 111})
    yield Insert("follows", {"follower_id": 121, "followee_id": 20, "muted": True})
    yield Update("posts", {"id": 100}, {"body": "other words"})
    yield Delete("posts", {"id": 110})
    yield Insert("posts", {"id": NEW, "author_id": 40, "body": "new", "tags": [], "created_at": time})
    yield Update("orders", {"id": 100}, {"status": "paid"})
    yield Update("orders", {"id": 110}, {"user_id": 7})
    yield Delete("orders", {"id": 120})
    yield Insert("orders", {"id": NEW, "user_id": 9, "status": "open", "ordered_at": time, "note": None})
    yield Update("order_items", {"order_id": 100, "line": 1}, {"quantity": 9})
    yield Delete("order_items", {"order_id": 110, "line": 2})
    yield Insert("order_items", {"order_id": NEW, "line": 1, "product_id": 5, "quantity": 2, "unit_price": 3})
    yield Update("products", {"id": 100}, {"price": Decimal("100.5")})
    yield Update("products", {"id": 110}, {"price": Decimal("109.5"), "name": "renamed"})
    yield Update("events", {"id": 100}, {"kind": "scroll"})
    yield Delete("events", {"id": 110})
    yield Insert("events", {"id": NEW, "user_id": 20, "kind": "click", "at": time})
    yield Update("accounts", {"id": 100}, {"balance": 1})
    yield Delete("savings", {"id": 110})
    yield Update("prices", {"product_id": 100, "since": _BEGIN + timedelta(hours=300 - 24)}, {"price": Decimal(7)})


def largest_price() -> Iterator[Change]:
    """A product with the largest price of all, and an item with it. The reversal removes them."""
    yield Insert("products", {"id": NEW, "sku": "dear", "name": "dear", "category_id": 1,
                              "price": Decimal(9_000_000), "weight": 1.0})  # fmt: skip
    yield Insert("order_items", {"order_id": 100, "line": 9, "product_id": NEW, "quantity": 1, "unit_price": 1})


def hot_change() -> Iterator[Change]:
    """One more order with an item for the hot user, and one more post for the hot follower."""
    time = _BEGIN + timedelta(days=10_000)
    yield Insert("orders", {"id": NEW, "user_id": 1, "status": "open", "ordered_at": time, "note": None})
    yield Insert("order_items", {"order_id": NEW, "line": 1, "product_id": 5, "quantity": 2, "unit_price": 3})
    yield Insert("posts", {"id": NEW, "author_id": 40, "body": "new", "tags": [], "created_at": time})


def reversal(changes: Iterable[Change], *, is_hot: bool = False) -> Iterator[Change]:
    """The changes that undo those of some rows with numbers up to LEAST_SIZE. They change no key."""
    originals = {_place(insert.table, insert.row): insert.row for insert in _first_rows(is_hot)}
    for change in reversed(list(changes)):
        named = change.row if isinstance(change, Insert) else change.old
        key = {name: named[name] for name in TABLES[change.table].key}
        if isinstance(change, Insert):
            yield Delete(change.table, key)
        elif isinstance(change, Delete):
            yield Insert(change.table, originals[_place(change.table, key)])
        else:
            original = originals[_place(change.table, key)]
            yield Update(change.table, key, {name: original[name] for name in change.new})


def _first_rows(is_hot: bool) -> Iterator[Insert]:
    return (change for change in inserts(LEAST_SIZE, is_hot=is_hot) if isinstance(change, Insert))


def _place(table: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return table, *(row[name] for name in TABLES[table].key)


def changes_without_effect() -> Iterator[Change]:
    """A change of a table that no view but a recursive one reads, and updates that change nothing."""
    yield Update("categories", {"id": 100}, {"name": "renamed"})
    yield Update("users", {"id": 101}, {"id": 101})
    yield Update("orders", {"id": 101}, {"user_id": 51})
