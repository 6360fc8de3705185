"""The transactions of the workload, by kind. Each does everything its kind says, or raises WrongRowsError."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any, Final

from cdc_views.demo.traffic.ledger import Transaction
from cdc_views.demo.traffic.values import (
    ASSIGNMENTS,
    BESIDE_THE_TEXT,
    Assignment,
    day,
    decimal,
    document,
    long_text,
    maybe,
    moment,
    phrase,
    search,
    tags,
    word,
)
from cdc_views.demo.traffic.vocabulary import LONG_TEXT_BYTES

KEYS: Final = {
    "users": ("id",),
    "follows": ("follower_id", "followee_id"),
    "posts": ("id",),
    "searches": ("id",),
    "products": ("id",),
    "orders": ("id",),
    "order_items": ("order_id", "line"),
    "accounts": ("id",),
    "savings": ("id",),
}
LONG_TEXTS: Final = {"posts": "body", "products": "description"}
BANK: Final = ("accounts", "savings")

# Keys are drawn from slightly more than the initial rows, so that new rows are drawn, too.
_HIGHEST: Final = {
    "users": 5_100,
    "follows": 5_100,
    "posts": 12_500,
    "searches": 26,
    "products": 2_050,
    "orders": 20_500,
    "order_items": 20_500,
    "accounts": 1_600,
    "savings": 1_600,
}

Key = tuple[Any, ...]


class WrongRowsError(Exception):
    """The drawn rows do not allow this kind of transaction; other rows will."""


@dataclass(frozen=True)
class TransactionKind:
    """A kind of transaction: `row_changes` is how many it makes on average."""

    run: Callable[[Transaction, Random, int], None]
    row_changes: float
    weight: int
    wanted: bool = False
    rolls_back: bool = False
    repeatable_read: bool = False


def _matches(table: str) -> str:
    return " AND ".join(f"{column} = %s" for column in KEYS[table])


def _draw(tx: Transaction, random: Random, table: str, condition: str = "true") -> Key:
    """The key of a random row, which is now locked. Skips rows that another transaction has locked."""
    key = ", ".join(KEYS[table])
    query = (
        f"SELECT {key} FROM {table} WHERE {KEYS[table][0]} >= %s AND {condition} "
        f"ORDER BY {key} LIMIT 1 FOR UPDATE SKIP LOCKED"
    )
    found = tx.row(query, (random.randint(1, _HIGHEST[table]),))
    if found is None:
        raise WrongRowsError
    return found


def _update(tx: Transaction, random: Random, table: str, key: Key, assignments: tuple[Assignment, ...]) -> None:
    assignment, values = random.choice(assignments)
    _require_one(tx.change("UPDATE", table, f"SET {assignment} WHERE {_matches(table)}", (*values(random), *key)))


def _require_one(count: int) -> None:
    if count != 1:
        raise WrongRowsError


def _out_of_line(tx: Transaction, table: str, key: Key) -> int:
    """Where the TOAST table has the long text of the row."""
    text = LONG_TEXTS[table]
    found = tx.row(f"SELECT pg_column_toast_chunk_id({text})::bigint FROM {table} WHERE {_matches(table)}", key)
    if found is None or found[0] is None:
        raise WrongRowsError
    return int(found[0])


def _draw_long(tx: Transaction, random: Random, table: str) -> Key:
    condition = f"octet_length({LONG_TEXTS[table]}) > {LONG_TEXT_BYTES}"
    for below in (_HIGHEST[table], 1):
        key = ", ".join(KEYS[table])
        found = tx.row(
            f"SELECT {key} FROM {table} WHERE {condition} AND id >= %s ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
            (random.randint(1, below),),
        )
        if found is not None:
            return found
    raise WrongRowsError


def unchanged_toast_update(tx: Transaction, random: Random, number: int) -> None:
    """Update other columns of a row with a long text, and check that the text is not moved."""
    table = ("products", "posts")[number % 2]
    key = _draw_long(tx, random, table)
    place = _out_of_line(tx, table, key)
    _update(tx, random, table, key, BESIDE_THE_TEXT[table])
    if _out_of_line(tx, table, key) != place:
        raise WrongRowsError


def key_change(tx: Transaction, random: Random, number: int) -> None:
    """Change a key; every other time that of a product with a long text, which the event then lacks."""
    if number % 2:
        table, key = "products", _draw_long(tx, random, "products")
        _out_of_line(tx, table, key)
    else:
        table = list(KEYS)[number // 2 % len(KEYS)]
        key = _draw(tx, random, table)
    if table == "follows":
        new: Key = (key[0], random.randint(1, _HIGHEST["users"]))
    elif table == "order_items":
        new = (key[0], key[1] + random.randint(1, 50))
    else:
        new = (tx.new_id(table),)
    if new == key:
        raise WrongRowsError
    assignments = ", ".join(f"{column} = %s" for column in KEYS[table])
    _require_one(tx.change("UPDATE", table, f"SET {assignments} WHERE {_matches(table)}", (*new, *key)))


def delete_reinsert(tx: Transaction, random: Random, number: int) -> None:
    """Delete a row and insert it again with the same key, either unchanged or with another value."""
    table = list(KEYS)[number % len(KEYS)]
    key = _draw(tx, random, table)
    row = tx.row(f"SELECT to_jsonb(t)::text FROM {table} t WHERE {_matches(table)}", key)
    if row is None:
        raise WrongRowsError
    _require_one(tx.change("DELETE FROM", table, f"WHERE {_matches(table)}", key))
    _require_one(tx.change("INSERT INTO", table, f"SELECT * FROM jsonb_populate_record(NULL::{table}, %s::jsonb)", row))
    if random.random() < 0.5:
        _update(tx, random, table, key, ASSIGNMENTS[table])


def rollback(tx: Transaction, random: Random, _number: int) -> None:
    """Insert, update and delete. The worker then rolls everything back."""
    _insert(tx, random, "posts")
    _update_any(tx, random, "products")
    key = _draw_long(tx, random, "posts")
    tx.change("DELETE FROM", "posts", f"WHERE {_matches('posts')}", key)


def three_table_transaction(tx: Transaction, random: Random, number: int) -> None:
    """Create an order with items from the stock; every fourth time cancel an order instead."""
    if number % 4 == 3:
        return _cancel_order(tx, random)
    order = tx.new_id("orders")
    tx.insert("orders", "id, user_id, status, note, ordered_at", _order(random, order))
    for line in range(1, random.randint(2, 4)):
        (product,) = _draw(tx, random, "products")
        quantity = random.randint(1, 4)
        _require_one(tx.change("UPDATE", "products", "SET stock = stock - %s WHERE id = %s", (quantity, product)))
        price = decimal(random, 500, 2)
        tx.insert(
            "order_items", "order_id, line, product_id, quantity, unit_price", (order, line, product, quantity, price)
        )
    return None


def _cancel_order(tx: Transaction, random: Random) -> None:
    (order, _) = _draw(tx, random, "order_items")
    restock = "SET stock = stock + i.quantity FROM order_items i WHERE i.order_id = %s AND i.product_id = products.id"
    if not tx.change("UPDATE", "products", restock, (order,)):
        raise WrongRowsError
    tx.change("DELETE FROM", "order_items", "WHERE order_id = %s", (order,))
    _require_one(tx.change("DELETE FROM", "orders", "WHERE id = %s", (order,)))


def fifty_updates(tx: Transaction, random: Random, number: int) -> None:
    """Update one row fifty times; sometimes a row of the bank, or one with a long text."""
    table = ("posts", "users", "products", "accounts")[number % 4]
    key = _draw_long(tx, random, table) if table in LONG_TEXTS and random.random() < 0.5 else _draw(tx, random, table)
    for _ in range(50):
        _update(tx, random, table, key, ASSIGNMENTS[table])


def bank_transfer(tx: Transaction, random: Random, _number: int) -> None:
    """Move money from one row to another, mostly between the two tables."""
    source, target = random.choice((BANK, BANK[::-1], ("accounts", "accounts")))
    (payer,), (payee,) = _draw(tx, random, source, "balance > 0"), _draw(tx, random, target)
    if (source, payer) == (target, payee):
        raise WrongRowsError
    balance = _balance(tx, source, payer)
    amount = balance if random.random() < 0.05 else min(balance, decimal(random, 300, 2))
    _require_one(tx.change("UPDATE", source, "SET balance = balance - %s WHERE id = %s", (amount, payer)))
    _require_one(tx.change("UPDATE", target, "SET balance = balance + %s WHERE id = %s", (amount, payee)))


def _balance(tx: Transaction, table: str, number: int) -> Decimal:
    found = tx.row(f"SELECT balance FROM {table} WHERE id = %s", (number,))
    if found is None:
        raise WrongRowsError
    return Decimal(found[0])


def bank_replacement(tx: Transaction, random: Random, number: int) -> None:
    """Close an account, and open another one with its money."""
    table = BANK[number % 2]
    (closed,) = _draw(tx, random, table)
    balance = _balance(tx, table, closed)
    _require_one(tx.change("DELETE FROM", table, "WHERE id = %s", (closed,)))
    if table == "accounts":
        tx.insert(table, "owner, balance, opened_on", (word(random), balance, maybe(random, day)))
    else:
        tx.insert(table, "account_id, balance, interest", (None, balance, maybe(random, lambda r: decimal(r, 9, 4))))


def insert(tx: Transaction, random: Random, _number: int) -> None:
    """Insert a few rows into one table."""
    table = random.choice(("users", "follows", "follows", "posts", "posts", "posts", "products"))
    for _ in range(random.randint(1, 5)):
        _insert(tx, random, table)


def _insert(tx: Transaction, random: Random, table: str) -> None:
    if table == "users":
        values = (phrase(random, 3), maybe(random, word), False, maybe(random, document), moment(random))
        tx.insert(table, "name, country, verified, settings, joined_at", values)
    elif table == "follows":
        pair = random.sample(range(1, _HIGHEST["users"]), 2)
        tx.insert(table, "follower_id, followee_id, muted, since", (*pair, False, moment(random)),
                  "ON CONFLICT DO NOTHING")  # fmt: skip
    elif table == "posts":
        body = long_text(random) if random.random() < 0.02 else phrase(random, 9)
        author = random.randint(1, _HIGHEST["users"])
        post = (author, body, maybe(random, tags), 0, maybe(random, document), moment(random))
        tx.insert(table, "author_id, body, tags, likes, meta, created_at", post)
    elif table == "searches":
        tx.insert(table, "user_id, query", (random.randint(1, _HIGHEST["users"]), search(random)))
    else:
        text = long_text(random) if random.random() < 0.1 else maybe(random, lambda r: phrase(r, 12))
        product = (word(random), phrase(random, 4), text, decimal(random, 500, 2), random.randrange(100), False)
        tx.insert(table, "sku, name, description, price, stock, discontinued", product)


def _order(random: Random, number: int) -> tuple[Any, ...]:
    return (number, random.randint(1, _HIGHEST["users"]), "new", maybe(random, lambda r: phrase(r, 5)), moment(random))


def update(tx: Transaction, random: Random, _number: int) -> None:
    """Update a few rows of one table, one by one. All tables but the saved searches get their turn."""
    table = random.choice([table for table in KEYS if table != "searches"])
    for _ in range(random.randint(1, 5)):
        _update_any(tx, random, table)


def _update_any(tx: Transaction, random: Random, table: str) -> None:
    _update(tx, random, table, _draw(tx, random, table), ASSIGNMENTS[table])


def update_many(tx: Transaction, random: Random, _number: int) -> None:
    """Update several rows with one statement."""
    low = random.randint(1, _HIGHEST["posts"])
    tx.change("UPDATE", "posts", "SET likes = likes + 1 WHERE id BETWEEN %s AND %s", (low, low + 9))


def delete(tx: Transaction, random: Random, _number: int) -> None:
    """Delete one or two rows of a table, but never of the bank."""
    table = random.choice(("users", "follows", "follows", "posts", "posts", "products", "order_items"))
    for _ in range(random.randint(1, 2)):
        _require_one(tx.change("DELETE FROM", table, f"WHERE {_matches(table)}", _draw(tx, random, table)))


def saved_search(tx: Transaction, random: Random, number: int) -> None:
    """Save a search, change one, or delete one. As many are deleted as are saved."""
    if number % 4 == 0:
        return _insert(tx, random, "searches")
    key = _draw(tx, random, "searches")
    if number % 4 == 2:
        return _require_one(tx.change("DELETE FROM", "searches", f"WHERE {_matches('searches')}", key))
    return _update(tx, random, "searches", key, ASSIGNMENTS["searches"])


def savepoint(tx: Transaction, random: Random, _number: int) -> None:
    """Keep one update between changes that are rolled back to a savepoint."""
    with tx.undone():
        _insert(tx, random, "products")
        _update_any(tx, random, "posts")
    _update_any(tx, random, "posts")
    with tx.undone():
        _update_any(tx, random, "posts")


# Every run contains the `wanted` kinds at least LEAST times each; the others fill the rest.
KINDS: Final = {
    "unchanged_toast_update": TransactionKind(unchanged_toast_update, 1, 8, wanted=True),
    "key_change": TransactionKind(key_change, 1, 4, wanted=True),
    "delete_reinsert": TransactionKind(delete_reinsert, 2.5, 4, wanted=True),
    "rollback": TransactionKind(rollback, 0, 3, wanted=True, rolls_back=True),
    "three_table_transaction": TransactionKind(three_table_transaction, 5, 20, wanted=True),
    "fifty_updates": TransactionKind(fifty_updates, 50, 1, wanted=True),
    "bank_transfer": TransactionKind(bank_transfer, 2, 30, wanted=True, repeatable_read=True),
    "bank_replacement": TransactionKind(bank_replacement, 2, 3),
    "insert": TransactionKind(insert, 3, 20),
    "update": TransactionKind(update, 3, 30),
    "update_many": TransactionKind(update_many, 10, 2),
    "delete": TransactionKind(delete, 1.5, 12),
    "saved_search": TransactionKind(saved_search, 1, 1),
    "savepoint": TransactionKind(savepoint, 1, 2),
}
LEAST: Final = 20
