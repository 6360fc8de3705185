"""A view of kind `cache` while its tables change, read as a user reads it."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

import cdc_views
from cdc_views.testing import Delete, Insert, Update, ViewHarness

DDL: Final = (
    "CREATE TABLE products (id bigint PRIMARY KEY, name text)",
    "CREATE TABLE items (product_id bigint, line bigint, pieces int, PRIMARY KEY (product_id, line))",
)
VIEW: Final = """
CREATE MATERIALIZED VIEW stock WITH (kind = 'cache', key = 'product_id') AS
SELECT p.id AS product_id, named_struct('name', p.name, 'pieces', coalesce(i.pieces, 0)) AS document
FROM products p LEFT JOIN (SELECT product_id, sum(pieces) AS pieces FROM items GROUP BY product_id) i
  ON i.product_id = p.id
"""


def test_cache_has_the_document_of_each_key_after_every_change(spark: SparkSession) -> None:
    with ViewHarness(DDL, spark, partitions=1) as h:
        assert h.create_view(VIEW).strategy == "KEYS"
        h.apply(Insert("products", {"id": number, "name": f"n{number}"}) for number in (1, 2, 3))
        cache = cdc_views.open(h.warehouse).cache("stock")

        def documents() -> list[object]:
            h.verify()
            return [row.document for row in cache.get_many([1, 2, 3, 4])]

        etag = cache.get(1).etag
        first = [{"name": f"n{number}", "pieces": 0} for number in (1, 2, 3)]
        assert documents() == [*first, None]
        h.apply([Insert("items", {"product_id": 2, "line": 1, "pieces": 5})])
        assert documents() == [first[0], {"name": "n2", "pieces": 5}, first[2], None]
        h.apply([Update("products", {"id": 2}, {"name": "new"}), Delete("products", {"id": 3})])
        h.apply([Insert("products", {"id": 4, "name": "n4"}), Delete("items", {"product_id": 2, "line": 1})])
        assert documents() == [first[0], {"name": "new", "pieces": 0}, None, {"name": "n4", "pieces": 0}]
        assert cache.get(1).etag == etag
