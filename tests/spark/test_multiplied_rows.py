"""Time windows that slide make several rows of one, in whatever clause they are."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from cdc_views.testing import Delete, Insert, Update, ViewHarness

TABLES: Final = (
    "CREATE TABLE t (id int PRIMARY KEY, x int, at timestamptz)",
    "CREATE TABLE u (uid int PRIMARY KEY, x int, y int)",
)
SLIDING: Final = "window(at, '1 hour', '30 minutes').start"
LARGEST: Final = "(SELECT max(y) FROM u WHERE u.x = t.x)"
VIEWS: Final = {
    "selected": f"SELECT id, {SLIDING} AS s FROM t",
    "in_where": f"SELECT id FROM t WHERE {SLIDING} > TIMESTAMP '2024-01-01'",
    "joined": f"SELECT u.uid, w.s FROM u JOIN (SELECT id, {SLIDING} AS s FROM t) w ON w.id = u.x",
    # Spark wants both subqueries to be one expression.
    "grouped_by_a_subquery": f"SELECT {LARGEST} AS m, x, count(*) AS n FROM t GROUP BY {LARGEST}, x",
    "grouped_by_its_name": f"SELECT {LARGEST} AS m, x, count(*) AS n FROM t GROUP BY m, x",
}


def test_views_follow_each_change_and_none_fails(spark: SparkSession) -> None:
    with ViewHarness(TABLES, spark, partitions=1) as h:
        strategies = {
            name: h.create_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}").strategy for name, sql in VIEWS.items()
        }
        assert strategies == {**dict.fromkeys(VIEWS, "KEYS"), "grouped_by_a_subquery": "FULL"}
        h.apply(
            [
                Insert("t", {"id": 1, "x": 1, "at": "2024-03-31T00:40:00+00"}),
                Insert("t", {"id": 2, "x": 1, "at": None}),
                Insert("u", {"uid": 1, "x": 1, "y": 2}),
            ]
        )
        h.verify()
        assert len(h.rows("selected")) == 2
        h.apply([Update("t", {"id": 2}, {"at": "2024-03-31T00:50:00+00"}), Insert("u", {"uid": 2, "x": 2, "y": 3})])
        h.verify()
        h.apply([Update("t", {"id": 1}, {"at": "2024-03-31T01:50:00+00"}), Update("u", {"uid": 2}, {"x": 1})])
        h.verify()
        h.apply([Delete("t", {"id": 2})])
        h.verify()
        assert h.rows("in_where") == [(1,), (1,)]
