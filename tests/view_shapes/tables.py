"""The tables that all shapes read: their columns, and for each column the few values that random rows have.

There are so few values that joins match, groups have several rows, and orders tie. Two things are not in the list of
shapes: `products.weight`, as a group of 0.0 and -0.0 needs a float, and `prices`, the history that shape 49 reads. No
column has NaN, which a mirror refuses; a view computes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

_NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
# Two events of one session window, two that a third joins, and two days.
_MINUTES: Final = (0, 4, 25, 50, 55, 80, 24 * 60)
_TIMES: Final = tuple(_NOON + timedelta(minutes=minutes) for minutes in _MINUTES)
_NAMES: Final = ("ada", "Ada", "bo", "")
_MONEY: Final = (Decimal("0.00"), Decimal("1.50"), Decimal("-2.05"), Decimal("10.00"))
_TEXTS: Final = ("a b a", "b", "", "A c")
_TAGS: Final[tuple[list[str | None], ...]] = ([], ["x"], ["x", "y", "x"], [None, "y"])


@dataclass(frozen=True)
class Column:
    """A column: its type in Postgres, and the values of random rows. Columns that are not in a key may be NULL, too."""

    type_name: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """A table: its columns by name, and the names of its key columns."""

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, Column]

    @property
    def ddl(self) -> str:
        """The statement that creates the table in Postgres."""
        columns = ", ".join(f'"{name}" {column.type_name}' for name, column in self.columns.items())
        return f"CREATE TABLE {self.name} ({columns}, PRIMARY KEY ({', '.join(self.key)}))"


_ID: Final = Column("bigint", (1, 2, 3, 4, 5))
_MORE_IDS: Final = Column("bigint", tuple(range(1, 9)))
_TWO_IDS: Final = Column("bigint", (1, 2))
_TIME: Final = Column("timestamptz", _TIMES)
_PRICE: Final = Column("numeric(12,2)", _MONEY)
_BALANCE: Final = Column("bigint", (0, 10, -10))


TABLES: Final[Mapping[str, Table]] = {
    table.name: table
    for table in (
        Table(
            "users",
            ("id",),
            {
                "id": _ID,
                "name": Column("text", _NAMES),
                "country": Column("text", ("NL", "DE")),
                "manager_id": _ID,
            },
        ),
        Table(
            "follows",
            ("follower_id", "followee_id"),
            {"follower_id": _ID, "followee_id": _ID, "muted": Column("boolean", (True, False))},
        ),
        Table(
            "posts",
            ("id",),
            {
                "id": _MORE_IDS,
                "author_id": _ID,
                "body": Column("text", _TEXTS),
                "tags": Column("text[]", _TAGS),
                "created_at": _TIME,
            },
        ),
        Table(
            "orders",
            ("id",),
            {
                "id": _MORE_IDS,
                "user_id": _ID,
                "status": Column("text", ("open", "paid")),
                "ordered_at": _TIME,
                "note": Column("text", _TEXTS),
            },
        ),
        Table(
            "order_items",
            ("order_id", "line"),
            {
                "order_id": _MORE_IDS,
                "line": Column("integer", (1, 2)),
                "product_id": _ID,
                "quantity": Column("integer", (0, 1, 2)),
                "unit_price": _PRICE,
            },
        ),
        Table(
            "products",
            ("id",),
            {
                "id": _ID,
                "sku": Column("text", ("s1", "s2")),
                "name": Column("text", _NAMES),
                "category_id": _TWO_IDS,
                "price": _PRICE,
                "weight": Column("double precision", (0.0, -0.0, 1.5)),
            },
        ),
        Table("categories", ("id",), {"id": _ID, "parent_id": _ID, "name": Column("text", _NAMES)}),
        Table(
            "events",
            ("id",),
            {"id": _MORE_IDS, "user_id": _TWO_IDS, "kind": Column("text", ("click", "view")), "at": _TIME},
        ),
        Table("accounts", ("id",), {"id": _ID, "balance": _BALANCE}),
        Table("savings", ("id",), {"id": _ID, "balance": _BALANCE}),
        Table("prices", ("product_id", "since"), {"product_id": _ID, "since": _TIME, "price": _PRICE}),
    )
}
DDL: Final = tuple(table.ddl for table in TABLES.values())
