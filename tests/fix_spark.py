"""One Spark session per test run, and a warehouse per test."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc_views.config import INTERPRETED, SHORT_LIVED, EngineSettings
from cdc_views.engine.spark.session import start_session
from cdc_views.store.warehouse import Warehouse


@pytest.fixture(scope="session")
def delta_jars() -> list[Path]:
    """Delta's jars from the cache, fetched if they are not there yet."""
    if folder := os.environ.get("CDC_VIEWS_TEST_JARS"):
        return sorted(Path(folder).glob("*.jar"))
    return list(importlib.import_module("cdc_views.stack.fetch").delta_jars())


@pytest.fixture(scope="session")
def spark(delta_jars: list[Path]) -> Iterator[SparkSession]:
    """The session of all Spark tests; tests must not change its settings."""
    session = start_session(EngineSettings(spark_conf=SHORT_LIVED | INTERPRETED), delta_jars)
    yield session
    session.stop()


@pytest.fixture
def warehouse(tmp_path: Path, spark: SparkSession) -> Warehouse:
    """An empty warehouse below `tmp_path`."""
    return Warehouse(tmp_path, spark)
