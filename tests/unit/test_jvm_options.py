"""How the JVMs of Spark, Kafka and Connect are started, without starting them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdc_views.config import EngineSettings
from cdc_views.engine.spark.settings import configuration, spark_archive
from cdc_views.stack.services import jvm
from cdc_views.stack.services.connect import Connect
from cdc_views.stack.services.kafka import Kafka


def java_options(jars: list[Path]) -> str:
    settings = EngineSettings(spark_conf={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
    return configuration(settings, jars)["spark.driver.extraJavaOptions"]


def test_archive_of_classes_is_used_where_there_is_one_for_these_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDC_VIEWS_CACHE", str(tmp_path))
    one, other = [tmp_path / "a.jar"], [tmp_path / "b.jar"]
    for [jar] in (one, other):
        jar.touch()
    assert "SharedArchiveFile" not in java_options(one)
    spark_archive(one).parent.mkdir()
    spark_archive(one).touch()
    assert f"-XX:SharedArchiveFile={spark_archive(one)}" in java_options(one)
    assert java_options(one).endswith("-XX:TieredStopAtLevel=1")
    assert "SharedArchiveFile" not in java_options(other)
    os.utime(one[0], (1, 1))  # another file now: the JVM would refuse it
    assert "SharedArchiveFile" not in java_options(one)


def test_archive_of_a_service_is_used_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_VIEWS_CACHE", str(tmp_path))
    monkeypatch.setattr(jvm, "kafka_jars", lambda: [tmp_path / "kafka.jar"])

    def command(main: str) -> str:
        return " ".join(jvm.java(main, logging=tmp_path / "log4j2.properties", short_lived=False))

    assert "SharedArchiveFile" not in command(Kafka.main)
    archive = jvm.service_archive(Kafka.main)
    archive.parent.mkdir()
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive} " in command(Kafka.main)
    assert f"-XX:SharedArchiveFile={archive} " in command("kafka.tools.StorageTool")
    assert "SharedArchiveFile" not in command(Connect.main)


def test_properties_have_other_characters_as_java_reads_them(tmp_path: Path) -> None:
    jvm.write_properties(tmp_path / "p", {"log.dirs": "/home/rené/数\U0001f600\\x", "port": 1})
    text = (tmp_path / "p").read_bytes()
    assert text == rb"log.dirs=/home/ren\u00e9/\u6570\ud83d\ude00\\x" + b"\nport=1\n"
