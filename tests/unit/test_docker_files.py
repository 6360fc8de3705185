"""What the Docker files say twice, or must not say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from cdc_views.config import load_settings
from cdc_views.demo.data import SIZES
from cdc_views.stack.image_settings import write_settings
from cdc_views.stack.services.kafka import FEATURE

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def bytes_of(limit: str) -> int:
    return int(limit[:-1]) << {"m": 20, "g": 30}[limit[-1]]


def test_demo_project_mirrors_the_tables_of_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in COMPOSE["services"]["engine"]["environment"].items():
        if value is None:  # as in the environment of docker-compose
            continue
        monkeypatch.setenv(name, re.sub(r"\$\{\w+:-(\w+)\}", r"\1", value))
    settings = load_settings(ROOT / "docker/demo")
    assert [table.table for table in settings.source.tables] == list(SIZES)
    assert settings.source.dsn.get_secret_value() == "host=postgres dbname=app user=postgres password='cdc_views'"


def test_services_fit_a_laptop_and_listen_on_the_loopback_only() -> None:
    running = [service for service in COMPOSE["services"].values() if "profiles" not in service]
    assert sum(bytes_of(service["mem_limit"]) for service in running) <= 13 << 29
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_broker_is_formatted_as_that_of_the_native_stack() -> None:
    assert f"-c $settings --feature {FEATURE}\n" in (ROOT / "docker/kafka/start").read_text()


def test_every_archive_comes_from_the_lock() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) - set(re.findall(r" AS (\S+)$", text, re.MULTILINE)) == {
        "debian:bookworm-slim"
    }
    assert not re.search(r"\b(curl|wget|ADD)\b", text)


def test_settings_of_the_images_let_the_host_and_other_containers_in(tmp_path: Path) -> None:
    write_settings(tmp_path / "settings")
    read = {file.name: file.read_text() for file in (tmp_path / "settings").iterdir()}
    assert "listen_addresses = '*'" in read["postgresql.conf"]
    assert "wal_level = 'logical'" in read["postgresql.conf"]
    assert "scram-sha-256" in read["initdb.options"].splitlines()
    assert "listeners=PLAINTEXT://:9092,HOST://:19092" in read["server.properties"]
    assert "exactly.once.source.support=enabled" in read["worker.properties"]
    assert "-XX:+ExitOnOutOfMemoryError" in read["java.options"].splitlines()
