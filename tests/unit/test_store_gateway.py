"""What a start of Spark's JVM reports when it ends at any of its steps, with a script in place of Java."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc_views.engine.spark import gateway
from cdc_views.engine.spark.gateway import Jvm, start_jvm
from cdc_views.errors import DriverLost, ServiceFailed

# The launcher prints the command of the driver's JVM, which here is this script again.
GOOD_LAUNCHER = r"""printf '\0\n%s\0driver\0' "$0" """
WRITE_PORT = r"""
bytes() { printf "\\$(printf %03o $(($1 / 16777216 % 256)))\\$(printf %03o $(($1 / 65536 % 256)))"
          printf "\\$(printf %03o $(($1 / 256 % 256)))\\$(printf %03o $(($1 % 256)))"; }
{ bytes PORT; bytes 6; printf secret; } > "$_PYSPARK_DRIVER_CONN_INFO_PATH.new"
mv "$_PYSPARK_DRIVER_CONN_INFO_PATH.new" "$_PYSPARK_DRIVER_CONN_INFO_PATH"
"""

Java = Callable[..., str]


@pytest.fixture
def java(tmp_path: Path) -> Java:
    """Makes a `java` of two scripts: of Spark's launcher, and of the driver's JVM."""

    def make(driver: str, launcher: str = GOOD_LAUNCHER) -> str:
        file = tmp_path / "java"
        file.write_text(f'#!/bin/sh\nif [ "$1" = driver ]; then\n{driver}\nelse\n{launcher}\nfi\n')
        file.chmod(0o755)
        return str(file)

    return make


@pytest.fixture
def closed_port() -> int:
    """A port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("launcher", "driver", "signal"),
    [
        ("kill -KILL $$", ":", "SIGKILL"),
        ("kill -TERM $$", ":", "SIGTERM"),
        ("exit 143", ":", "SIGTERM"),
        (f"{GOOD_LAUNCHER}; kill -KILL $$", ":", "SIGKILL"),
        (r"printf '\0\n%s\0dri' java; kill -KILL $$", ":", "SIGKILL"),
        (GOOD_LAUNCHER, "kill -KILL $$", "SIGKILL"),
        (GOOD_LAUNCHER, "kill -SEGV $$", "SIGSEGV"),
        (GOOD_LAUNCHER, "echo WARNING >&2; exit 143", "SIGTERM"),
        (GOOD_LAUNCHER, "exit 137", "SIGKILL"),
    ],
)
def test_process_that_is_killed_before_the_gateway_is_a_lost_driver(
    java: Java, launcher: str, driver: str, signal: str
) -> None:
    with pytest.raises(DriverLost, match=f"was ended by {signal} while it was starting") as error:
        start_jvm(java(driver, launcher), {})
    assert error.value.retryable
    assert error.value.hint


def test_jvm_that_is_killed_after_it_wrote_its_port_is_a_lost_driver(java: Java, closed_port: int) -> None:
    killed = WRITE_PORT.replace("PORT;", f"{closed_port};") + "kill -KILL $$"
    with pytest.raises(DriverLost, match="was ended by SIGKILL"):
        start_jvm(java(killed), {})


def test_jvm_that_lives_without_a_gateway_is_a_failed_start_and_ended(
    java: Java, closed_port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gateway, "_END_LIMIT_S", 0.2)
    living = WRITE_PORT.replace("PORT;", f"{closed_port};") + f"echo $$ > {tmp_path}/pid; exec sleep 600"
    with pytest.raises(ServiceFailed, match="the JVM of Spark did not start"):
        start_jvm(java(living), {})
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


@pytest.mark.parametrize(
    ("launcher", "driver", "says"),
    [
        ("echo Unrecognized option: -XX:Wrong; exit 1", ":", "Unrecognized option: -XX:Wrong"),
        ("echo could not find the main class >&2; exit 1", ":", "could not find the main class"),
        ("echo prints no command", ":", "prints no command"),
        (GOOD_LAUNCHER, "echo Could not reserve enough space for object heap; exit 1", "Could not reserve enough"),
        (GOOD_LAUNCHER, "echo java.lang.OutOfMemoryError >&2; exit 3", "OutOfMemoryError"),
        (GOOD_LAUNCHER, "exit 0", "ended with status 0"),
    ],
)
def test_process_that_ends_by_itself_is_a_failed_start_with_its_output(
    java: Java, launcher: str, driver: str, says: str
) -> None:
    with pytest.raises(ServiceFailed, match=f"the JVM of Spark did not start: .*{says}") as error:
        start_jvm(java(driver, launcher), {})
    assert not error.value.retryable


def test_jvm_that_writes_no_port_in_time_is_a_failed_start(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "START_LIMIT_S", 0.3)
    with pytest.raises(ServiceFailed, match="has no gateway after 0 s"):
        start_jvm(java("exec sleep 600"), {})


def test_java_that_is_not_there_is_a_failed_start(tmp_path: Path) -> None:
    with pytest.raises(ServiceFailed, match=r'"/.*/none" cannot be run: No such file'):
        start_jvm(str(tmp_path / "none"), {})


def test_output_of_a_jvm_that_nobody_ends_is_closed_with_it() -> None:
    with subprocess.Popen(["true"]) as process:
        output = tempfile.TemporaryFile()  # noqa: SIM115  # that Jvm closes it is what is tested
        jvm = Jvm(process, None, output)
        assert not output.closed
        del jvm
    assert output.closed
