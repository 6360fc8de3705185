"""How the JVM of Spark is started, without starting it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdc_views.config import EngineSettings
from cdc_views.engine.spark.session import _configuration, class_archive


def java_options(jars: list[Path]) -> str:
    settings = EngineSettings(spark_conf={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
    return _configuration(settings, jars)["spark.driver.extraJavaOptions"]


def test_archive_of_classes_is_used_where_there_is_one_for_these_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDC_VIEWS_CACHE", str(tmp_path))
    one, other = [tmp_path / "a.jar"], [tmp_path / "b.jar"]
    for [jar] in (one, other):
        jar.touch()
    assert "SharedArchiveFile" not in java_options(one)
    class_archive(one).parent.mkdir()
    class_archive(one).touch()
    assert f"-XX:SharedArchiveFile={class_archive(one)}" in java_options(one)
    assert java_options(one).endswith("-XX:TieredStopAtLevel=1")
    assert "SharedArchiveFile" not in java_options(other)
    os.utime(one[0], (1, 1))  # written anew: the JVM would refuse it
    assert "SharedArchiveFile" not in java_options(one)
