"""A total over all rows has one row, and none while its HAVING does not hold: that row goes and comes back."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from cdc_views.testing import Delete, Insert, ViewHarness

TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, v bigint, s text, f double precision)"
VIEWS = {
    "in_full": "SELECT max(s) AS m, count(*) AS n FROM t HAVING n > 1",
    "of_floats": "SELECT max(f) AS m, count(*) AS n FROM t HAVING n > 1",
    "stored": "SELECT sum(v) AS m, count(*) AS n FROM t HAVING n > 1",
}
OPTIONS = {"vectors": "", "plain": " WITH (layout = 'plain')"}
ALL = [f"CREATE MATERIALIZED VIEW {name}_{layout}{options} AS {sql}"
       for layout, options in OPTIONS.items() for name, sql in VIEWS.items()]  # fmt: skip


@pytest.mark.parametrize(
    ("views", "allow_direct"),
    [
        pytest.param(ALL, True, id="by the driver"),
        pytest.param(ALL, False, id="by Spark", marks=pytest.mark.nightly),
    ],
)
def test_row_goes_and_comes_back(spark: SparkSession, views: list[str], allow_direct: bool) -> None:
    rows = [Insert("t", {"id": key, "v": key, "s": str(key), "f": float(key)}) for key in (1, 2)]
    with ViewHarness(TABLE, spark, partitions=1, allow_direct=allow_direct) as h:
        for view in views:
            h.create_view(view)
        h.apply(rows)
        assert all(len(h.rows(name)) == 1 for name in h.views)
        h.verify()
        h.apply([Delete("t", {"id": 2})])
        assert all(h.rows(name) == [] for name in h.views)
        assert all(len(h.changes(name).deleted) == 1 for name in h.views)
        h.apply([rows[1]])
        assert all(len(h.rows(name)) == 1 for name in h.views)
        h.verify()
        h.apply([Delete("t", {"id": 1}), Delete("t", {"id": 2})])
        assert all(h.rows(name) == [] for name in h.views)
