"""Records as Debezium writes them, for the tests of the fold."""

from __future__ import annotations

from typing import Any

import orjson

from cdc_views.base.names import TableName
from cdc_views.log.kafka.record import Order, Record
from cdc_views.source.catalog import ReplicaIdentity, SourceColumn, SourceTable

PLACEHOLDER = "__cdc_views_unavailable_0123456789abcdef0123456789abcdef"


def table(identity: ReplicaIdentity = "default", *extra: SourceColumn) -> SourceTable:
    """id (key), n, and a text that can be stored out of line."""
    columns = (
        SourceColumn("id", 1, "int8", -1, None, True, False),
        SourceColumn("n", 2, "int4", -1, None, False, False),
        SourceColumn("body", 3, "text", -1, None, False, True),
        *extra,
    )
    return SourceTable(TableName("public", "t"), 1, columns, ("id",), False, identity, PLACEHOLDER)


class Topic:
    """Makes records of a topic, with the next offset of their partition and a growing order."""

    def __init__(self) -> None:
        self._offsets: dict[int, int] = {}
        self._lsn = 100

    def write(
        self,
        op: str | None,
        key: int,
        after: dict[str, Any] | None = None,
        *,
        partition: int = 0,
        before: dict[str, Any] | None = None,
        order: Order | None = None,
        **headers: int,
    ) -> Record:
        """A record; `op` None is a tombstone, `oldkey` and `newkey` are headers."""
        offset = self._offsets.get(partition, 0)
        self._offsets[partition] = offset + 1
        value = None if op is None else {"op": op, "before": before, "after": after}
        named = {f"__debezium.{name}": orjson.dumps({"id": other}) for name, other in headers.items()}
        return Record("app.public.t", partition, offset, 0, {"id": key}, value, named, order or self.order())

    def order(self) -> Order:
        """The order of a next change."""
        self._lsn += 8
        return Order(self._lsn - 50, self._lsn)

    def change_of_key(self, old: int, new: int, after: dict[str, Any], partition: int = 0) -> list[Record]:
        """The delete of the old key, its tombstone, and the create of the new one, in `partition`."""
        order = self.order()
        return [
            self.write("d", old, order=order, newkey=new),
            self.write(None, old, order=order, newkey=new),
            self.write("c", new, after, partition=partition, order=order, oldkey=old),
        ]


def row(key: int, n: int | None, body: str | None) -> dict[str, Any]:
    """The columns of `table()`."""
    return {"id": key, "n": n, "body": body}
