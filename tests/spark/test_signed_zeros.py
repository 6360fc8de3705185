"""-0.0 equals 0.0, but it is another value: a view has the one that its table has, and a view above it shows it."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_views.store.warehouse import TableSpec
from cdc_views.testing import Insert, Update, ViewHarness

full: Final = import_module("cdc_views.engine.views.strategies.full")  # the package has a function of that name
TABLE: Final = "CREATE TABLE t (id int PRIMARY KEY, x int, f double precision)"
VIEWS: Final = {
    "by_key": ("SELECT id, f FROM t", "f"),
    "bag": ("SELECT f FROM t", "f"),
    "in_a_struct": ("SELECT id, named_struct('x', x, 'l', array(f)) AS s FROM t", "s.l[0]"),
    "first_rows": ("SELECT id, x, f FROM t ORDER BY x DESC, id LIMIT 3", "f"),
}


def test_zero_whose_sign_changes_is_stored(spark: SparkSession) -> None:
    with ViewHarness(TABLE, spark, partitions=1) as h:
        for name, (below, shown) in VIEWS.items():
            h.create_view(f"CREATE MATERIALIZED VIEW {name} AS {below}")
            h.create_view(f"CREATE MATERIALIZED VIEW {name}_shown AS SELECT CAST({shown} AS STRING) AS s FROM {name}")
        h.apply([Insert("t", {"id": 1, "x": 1, "f": 0.0}), Insert("t", {"id": 2, "x": 2, "f": 1.5})])
        assert all(sorted(h.rows(f"{name}_shown")) == [("0.0",), ("1.5",)] for name in VIEWS)
        for zero in (-0.0, 0.0):
            h.apply([Update("t", {"id": 1}, {"f": zero})])
            assert {name: h.rows(name) for name in h.views if str(zero) not in str(h.rows(name))} == {}
        h.verify()


def test_difference_by_spark_has_the_zero_of_the_other_sign(spark: SparkSession) -> None:
    schema = pa.schema([("id", pa.int32()), ("f", pa.float64()), ("l", pa.list_(pa.float64()))])
    spec = TableSpec("v", "v", schema, ("id",))
    value = "CASE id WHEN 0 THEN {}D WHEN 1 THEN 1.5D ELSE DOUBLE('NaN') END AS f"
    new, old = (
        spark.range(3).selectExpr("CAST(id AS INT) AS id", value.format(zero)).selectExpr("*", "array(f) AS l")
        for zero in ("-0.0", "0.0")
    )
    assert str([row.f for row in full._difference(new, old, spec).collect()]) == "[-0.0]"
    assert full._difference(old, old, spec).collect() == []
