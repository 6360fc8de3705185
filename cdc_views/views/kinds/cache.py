"""Kind `cache`: a table that is read by its key, row by row.

    CREATE MATERIALIZED VIEW product_cache WITH (kind = 'cache', key = 'product_id') AS
    SELECT p.id AS product_id, p.name, p.price FROM products p

is maintained as it is written. The key must be proven to identify a row, because a read by it returns one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from cdc_views.views.kinds.kind import Kind, Options, ProvenKey
from cdc_views.views.kinds.options import Option, columns


class CacheKind(Kind):
    """Rows by key."""

    name: ClassVar[str] = "cache"
    options: ClassVar[Mapping[str, Option]] = MappingProxyType({"key": Option(columns, is_required=True)})

    def key(self, options: Options, proven: ProvenKey) -> tuple[str, ...] | None:
        """The columns of the option, which must have those of the proven key among them."""
        given = self._given(options, proven.columns)
        if proven.key is None:
            options.refuse(
                "key",
                f"the key of a cache must be proven to identify a row: {proven.reason}",
                hint="docs/views.md says of what queries the key is known, such as GROUP BY its columns",
            )
        names = {name.lower() for name in given}
        if missing := [name for name in proven.key if name.lower() not in names]:
            options.refuse(
                "key",
                f"rows with the same ({', '.join(given)}) may differ in {', '.join(missing)}",
                hint=f"write key = '{', '.join(proven.key)}', which identifies a row, or GROUP BY {', '.join(given)}",
            )
        return given

    def record(self, options: Options, types: Mapping[str, str], key: tuple[str, ...] | None) -> Mapping[str, Any]:
        """Nothing: the key is a setting of every table."""
        for name in self._given(options, list(types)):
            options.require_flat("key", f'key column "{name}"', types[name])
        return {}

    @staticmethod
    def _given(options: Options, known: tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
        """The columns of the option, as the view spells them if that is known."""
        given: tuple[str, ...] = options.values["key"]
        if known is not None:
            given = tuple(options.spelled("key", name, known) for name in given)
        if len({name.lower() for name in given}) != len(given):
            options.refuse("key", "a column of the key appears twice")
        return given
