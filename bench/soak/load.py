"""Endless transactions, and for each writer the number up to which they are certainly committed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from typing import Any, Final

import psycopg
from psycopg import errors

from cdc_views.testing.postgres.shadow import connect_for_queries

WRITERS: Final = 3
SHELVES: Final = 24
SHELVES_AT_ONCE: Final = 6
TABLES: Final = (
    "accounts", "savings", "items", "notes", "orders", "clock", *(f"shelf_{number + 1}" for number in range(SHELVES)),
)  # fmt: skip

_RETRY: Final = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation)
_AWAY_S: Final = 0.1
_LARGE: Final = 3000  # rows; more than an epoch commits without Spark
_LARGE_EVERY: Final = 800
_LONG_EVERY: Final = 300
_LONG_S: Final = 1.5
_EVERYWHERE_EVERY: Final = 100
_BURST_EVERY: Final = 700
_BURST: Final = 150  # transactions without a pause

Connection = psycopg.Connection[Any]


class Load:
    """Writers that run until `stop`. `rate` is the transactions per second of all of them."""

    def __init__(self, dsn: str, rate: float, seed: int) -> None:
        self._writers = [_Writer(dsn, number, rate / WRITERS, Random(f"{seed}/{number}")) for number in range(WRITERS)]

    def start(self) -> None:
        """Start the writers."""
        for writer in self._writers:
            writer.start()

    def committed(self) -> dict[int, int]:
        """By writer: the last transaction whose commit Postgres has confirmed."""
        return {writer.number: writer.committed for writer in self._writers}

    def stop(self) -> None:
        """End after the running transactions. Raises the error of a failed writer."""
        for writer in self._writers:
            writer.stopped.set()
        for writer in self._writers:
            writer.join()
        for writer in self._writers:
            if writer.failure is not None:
                raise writer.failure


class _Writer(threading.Thread):
    def __init__(self, dsn: str, number: int, rate: float, random: Random) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self.number = number
        self.committed = 0
        self.stopped = threading.Event()
        self.failure: BaseException | None = None
        self._dsn = dsn
        self._pause_s = 1 / rate
        self._random = random

    def run(self) -> None:
        try:
            while not self.stopped.is_set():
                with (
                    suppress(psycopg.OperationalError, psycopg.InterfaceError),
                    connect_for_queries(self._dsn) as connection,
                ):
                    self._write(connection)
                time.sleep(_AWAY_S)
        except BaseException as error:  # raised again by stop, in the main thread
            self.failure = error

    def _write(self, connection: Connection) -> None:
        connection.execute("INSERT INTO clock VALUES (%s, 0) ON CONFLICT DO NOTHING", (self.number,))
        # If the connection is lost during a commit, its outcome is unknown.
        row: Any = connection.execute("SELECT n FROM clock WHERE writer = %s", (self.number,)).fetchone()
        self.committed = row[0]
        while not self.stopped.is_set():
            n = self.committed + 1
            if n % _BURST_EVERY >= _BURST:
                self.stopped.wait(self._random.expovariate(1 / self._pause_s))
            with suppress(*_RETRY):
                with connection.transaction():
                    self._transact(connection, n)
                self.committed = n

    def _transact(self, connection: Connection, n: int) -> None:
        random = self._random
        if n % _LARGE_EVERY == 0:
            _insert_many(connection, random)
        if n % _EVERYWHERE_EVERY == 0:
            _change_all_tables(connection, random)
        for change in random.sample(_CHANGES, random.randint(1, 4)):
            change(connection, random)
        connection.execute("UPDATE clock SET n = %s WHERE writer = %s", (n, self.number))
        if n % _LONG_EVERY == 0:
            time.sleep(_LONG_S)


def _transfer(connection: Connection, random: Random) -> None:
    amount = random.randint(1, 500) / 100
    for table, by in (("accounts", -amount), ("savings", amount)):
        query = f"UPDATE {table} SET balance = balance + %s WHERE id = %s"
        connection.execute(query.encode(), (by, random.randint(1, 200)))


def _item(connection: Connection, random: Random) -> None:
    place = (random.randrange(10), f"sku {random.randint(1, 400)}")
    other = random.randint(1, 400)
    connection.execute(
        *random.choice([
            ("INSERT INTO items VALUES (%s, %s, %s, '{a,b}') ON CONFLICT DO NOTHING", (*place, other)),
            ("DELETE FROM items WHERE (shop, sku) = (%s, %s)", place),
            ("UPDATE items SET price = price + 1 WHERE shop = %s", (place[0],)),
            ("UPDATE items SET sku = %s WHERE (shop, sku) = (%s, %s)", (f"sku {other}", *place)),  # a change of key
        ])
    )  # fmt: skip


def _note(connection: Connection, random: Random) -> None:
    key = random.randint(1, 60)
    body = "SELECT string_agg(md5(%s::text || h), '') FROM generate_series(1, 128) h"
    connection.execute(
        *random.choice([
            ("UPDATE notes SET seen = seen + 1 WHERE id = %s", (key,)),  # does not change the out-of-line value
            ("UPDATE notes SET seen = seen + 1 WHERE id = %s", (key,)),
            (f"INSERT INTO notes VALUES (%s, ({body}), 0) ON CONFLICT (id) DO UPDATE SET body = EXCLUDED.body",
             (key, random.random())),
            ("DELETE FROM notes WHERE id = %s", (key,)),
            ("UPDATE notes SET id = %s WHERE id = %s", (random.randint(1, 60), key)),
        ])
    )  # fmt: skip


def _order(connection: Connection, random: Random) -> None:
    connection.execute(
        "INSERT INTO orders (account_id, amount) VALUES (%s, %s)", (random.randint(1, 200), random.randint(1, 999))
    )
    connection.execute("DELETE FROM orders WHERE id = (SELECT min(id) FROM orders)")


def _insert_many(connection: Connection, random: Random) -> None:
    connection.execute(
        "INSERT INTO orders (account_id, amount) SELECT 1 + g %% 200, %s FROM generate_series(1, %s) g",
        (random.randint(1, 999), _LARGE),
    )
    connection.execute("DELETE FROM orders WHERE id < (SELECT max(id) - %s FROM orders)", (_LARGE,))


def _change_all_tables(connection: Connection, random: Random) -> None:
    for change in (_transfer, _item, _note, _order):
        change(connection, random)
    _stock_shelves(range(1, SHELVES + 1), connection, random)


def _shelf(connection: Connection, random: Random) -> None:
    _stock_shelves(random.sample(range(1, SHELVES + 1), SHELVES_AT_ONCE), connection, random)


def _stock_shelves(shelves: Iterable[int], connection: Connection, random: Random) -> None:
    for shelf in shelves:
        row, delete, put = random.randint(1, 120), f"DELETE FROM shelf_{shelf}", f"INSERT INTO shelf_{shelf}"
        if random.random() < 0.2:
            connection.execute(f"{delete} WHERE id = %s".encode(), (row,))
            continue
        upsert = "ON CONFLICT (id) DO UPDATE SET kept = EXCLUDED.kept, changed = EXCLUDED.changed"
        query = f"{put} VALUES (%s, %s, clock_timestamp()) {upsert}"
        connection.execute(query.encode(), (row, str(random.random())))


_CHANGES: Final[list[Callable[[Connection, Random], None]]] = [
    _transfer,
    _transfer,
    _item,
    _note,
    _order,
    _shelf,
    _shelf,
]
