from __future__ import annotations

from pathlib import Path

import pytest

from cdc_views.errors import JavaMissing, ServiceKilled
from cdc_views.stack.java import java_command


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only `java` on PATH; a test writes what it answers."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path / "java"


def answering(java: Path, first_line: str) -> None:
    java.write_text(f"#!/bin/sh\necho '{first_line}' >&2\n")
    java.chmod(0o755)


def test_java_command_new_enough_is_found_on_path(java: Path) -> None:
    answering(java, 'openjdk version "21.0.2" 2024-01-16')
    assert java_command() == str(java)


def test_java_command_java_home_wins_over_path(java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(java, 'openjdk version "21"')
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    answering(home / "bin" / "java", 'openjdk version "17"')
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_command() == str(home / "bin" / "java")


@pytest.mark.parametrize("variable", ["JAVA_HOME", "PATH"])
def test_java_command_by_a_relative_path_is_absolute(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    (tmp_path / "jd" / "bin").mkdir(parents=True)
    answering(tmp_path / "jd" / "bin" / "java", 'openjdk version "17"')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "jd" if variable == "JAVA_HOME" else "jd/bin")
    assert java_command() == str(tmp_path / "jd" / "bin" / "java")


@pytest.mark.parametrize(("answer", "version"), [('java version "1.8.0_392"', 8), ('openjdk version "11.0.2"', 11)])
def test_java_command_too_old_names_found_and_wanted(java: Path, answer: str, version: int) -> None:
    answering(java, answer)
    with pytest.raises(JavaMissing, match=f"is Java {version}, wanted 17 or later") as failure:
        java_command()
    assert failure.value.exit_status == 2
    assert failure.value.hint == "install Java 17 or later and set JAVA_HOME or PATH to it"


def test_java_command_that_is_killed_while_it_tells_its_version_can_be_tried_again(java: Path) -> None:
    java.write_text("#!/bin/sh\nkill -KILL $$\n")
    java.chmod(0o755)
    with pytest.raises(ServiceKilled, match="was ended by SIGKILL"):
        java_command()


def test_java_command_nowhere_says_so(java: Path) -> None:
    with pytest.raises(JavaMissing, match="no java on PATH"):
        java_command()


def test_java_command_home_without_java_says_so(java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing, match="which holds no bin/java"):
        java_command()


def test_java_command_stub_without_version_is_no_java(java: Path) -> None:
    answering(java, "The operation could not be completed. Unable to locate a Java Runtime.")
    with pytest.raises(JavaMissing, match="names no version"):
        java_command()
