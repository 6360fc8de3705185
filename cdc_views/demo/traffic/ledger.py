"""What the workload has committed. Counted per statement, and kept only if the transaction commits."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

Parameters = tuple[Any, ...]


class Transaction:
    """Runs statements and counts the rows they change, as Postgres logs them.

    An UPDATE that sets the same values counts, since Postgres logs it. A change of a key is one change, although
    Debezium writes two events. An INSERT that ON CONFLICT DO NOTHING skips does not count.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self.changes: Counter[tuple[str, str]] = Counter()

    def change(self, statement: str, table: str, rest: str, parameters: Parameters = ()) -> int:
        """Run `statement table rest`, such as `("UPDATE", "posts", "SET likes = 0")`. Returns the rows changed."""
        text = f"{statement} {table} {rest}"
        count = self._connection.execute(text, parameters).rowcount
        self.changes[table, statement.split()[0].lower()] += count
        return count

    def insert(self, table: str, columns: str, parameters: Parameters, rest: str = "") -> int:
        """Insert one row; the other columns take their defaults."""
        places = ", ".join(["%s"] * len(parameters))
        return self.change("INSERT INTO", table, f"({columns}) VALUES ({places}) {rest}", parameters)

    def row(self, query: str, parameters: Parameters = ()) -> tuple[Any, ...] | None:
        """The first row of a query that changes nothing."""
        row: tuple[Any, ...] | None = self._connection.execute(query, parameters).fetchone()
        return row

    def new_id(self, table: str) -> int:
        """A number that no row of the table has ever had."""
        row = self.row("SELECT nextval(pg_get_serial_sequence(%s, 'id'))", (table,))
        assert row is not None
        return int(row[0])

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Roll back the changes of the block to a savepoint."""
        before = self.changes.copy()
        with self._connection.transaction(force_rollback=True):
            yield
        self.changes = before


class Ledger:
    """The totals over all connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.transactions = 0
        self.rolled_back = 0
        self.retried = 0
        self.by_kind: Counter[str] = Counter()
        self.by_table: Counter[str] = Counter()
        self.by_operation: Counter[str] = Counter()

    def committed(self, kind: str, changes: Mapping[tuple[str, str], int]) -> None:
        with self._lock:
            # Postgres logs no commit for a transaction without changes.
            self.transactions += any(changes.values())
            self.by_kind[kind] += 1
            for (table, statement), count in changes.items():
                self.by_table[table] += count
                self.by_operation[statement] += count

    def rolled_back_on_purpose(self, kind: str) -> None:
        with self._lock:
            self.rolled_back += 1
            self.by_kind[kind] += 1

    def retry(self) -> None:
        with self._lock:
            self.retried += 1

    def summary(self, seconds: float) -> dict[str, Any]:
        """The last line of the workload; `row_changes` is the number that Postgres logged for the tables."""
        return {
            "row_changes": sum(self.by_table.values()),
            "transactions": self.transactions,
            "rolled_back": self.rolled_back,
            "retried": self.retried,
            "by_kind": dict(sorted(self.by_kind.items())),
            "by_table": dict(sorted(self.by_table.items())),
            "by_operation": dict(sorted(self.by_operation.items())),
            "seconds": round(seconds, 3),
        }
