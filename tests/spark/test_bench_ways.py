"""The benchmark of the two ways takes both, and they give the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.ways import measure_ways


@pytest.mark.nightly
def test_ways_are_measured_on_equal_tables(spark: SparkSession, tmp_path: Path) -> None:
    figures = measure_ways(spark, tmp_path, 2_000, [50], [20], samples=1)
    assert figures.pop("equal")
    assert set(figures) == {f"{each}_ms" for each in
                            ("commit_50_direct", "commit_50_spark", "lookup_20_index", "lookup_20_spark")}  # fmt: skip
    assert min(figures.values()) > 0
