"""Kind `timeline`: for each owner, the first rows of a SELECT in an order, such as the newest posts for a user.

    CREATE MATERIALIZED VIEW home_timeline
    WITH (kind = 'timeline', owner = 'user_id', order = 'created_at DESC, post_id DESC', limit = 100)
    AS SELECT f.follower_id AS user_id, p.id AS post_id, p.created_at FROM follows f JOIN posts p ON ...

is maintained as

    SELECT user_id, post_id, created_at FROM (
    SELECT f.follower_id AS user_id, p.id AS post_id, p.created_at FROM follows f JOIN posts p ON ...
    ) AS entries (user_id, post_id, created_at)
    QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY created_at DESC NULLS LAST, post_id DESC NULLS LAST) <= 100

The order must be total, so that every entry has one place. The columns of the key that are neither the owner nor in
`order` follow it, ascending. plan/facts/order.py appends them to the text, `record` to what readers get; both are the
same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

from cdc_views.views.kinds.kind import Kind, Options, ProvenKey
from cdc_views.views.kinds.options import Option, Ordered, column, order, whole_number
from cdc_views.views.quoting import quoted_name

# The stored rows of an owner are read as a whole.
_MOST: Final = 10_000


@dataclass(frozen=True)
class TimelineRecord:
    """What readers of a timeline need: `order` is total among the entries of an owner."""

    owner: str
    order: tuple[Ordered, ...]
    limit: int

    def as_json(self) -> dict[str, Any]:
        """Return values of JSON, from which `parse` gives the record again."""
        return {"owner": self.owner, "order": [asdict(each) for each in self.order], "limit": self.limit}

    @classmethod
    def parse(cls, kind: Mapping[str, Any]) -> Self:
        """Read the setting of a table."""
        return cls(kind["owner"], tuple(Ordered(**each) for each in kind["order"]), kind["limit"])


class TimelineKind(Kind):
    """The first rows of each owner."""

    name: ClassVar[str] = "timeline"
    options: ClassVar[Mapping[str, Option]] = MappingProxyType(
        {
            "owner": Option(column, is_required=True),
            "order": Option(order, is_required=True),
            "limit": Option(whole_number(1, _MOST), default=100),
        }
    )

    def around(self, options: Options, columns: Sequence[str] | None) -> tuple[str, str]:
        """The first rows of each owner, over the rows of the SELECT."""
        values = options.values
        names = ", ".join(map(quoted_name, columns or ()))
        alias = f" ({names})" if names else ""
        ordered = ", ".join(map(_written, values["order"]))
        window = f"PARTITION BY {quoted_name(values['owner'])} ORDER BY {ordered}"
        return (
            f"SELECT {names or '*'} FROM (\n",
            f") AS entries{alias}\nQUALIFY row_number() OVER ({window}) <= {values['limit']}",
        )

    def key(self, options: Options, proven: ProvenKey) -> tuple[str, ...] | None:
        """The owner, whose entries are read together, and the rest of the proven key."""
        owner = options.values["owner"]
        if proven.columns is not None:
            owner = options.spelled("owner", owner, proven.columns)
            for each in options.values["order"]:
                options.spelled("order", each.column, proven.columns)
        if proven.key is None:
            options.refuse(
                "order",
                f"the entries of a timeline need a key, so that each has its place: {proven.reason}",
                hint="select the keys of the tables, unchanged",
            )
        return (owner, *(name for name in proven.key if name.lower() != owner.lower()))

    def record(self, options: Options, types: Mapping[str, str], key: tuple[str, ...] | None) -> Mapping[str, Any]:
        """The owner and the total order."""
        owner = options.spelled("owner", options.values["owner"], list(types))
        given = [
            Ordered(options.spelled("order", each.column, list(types)), each.descends, each.nulls_first)
            for each in options.values["order"]
        ]
        known = {owner, *(each.column for each in given)}
        total = (*given, *(Ordered(name) for name in key or () if name not in known))
        for option, name in (("owner", owner), *(("order", each.column) for each in total)):
            options.require_flat(option, f'column "{name}"', types[name])
        return TimelineRecord(owner, total, options.values["limit"]).as_json()


def _written(ordered: Ordered) -> str:
    direction = "DESC" if ordered.descends else "ASC"
    return f"{quoted_name(ordered.column)} {direction} NULLS {'FIRST' if ordered.nulls_first else 'LAST'}"
