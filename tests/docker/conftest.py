"""Docker for these tests: they are skipped where it is absent, which in CI is a failure (tests/conftest.py)."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import warnings
from collections.abc import Iterator

import pytest
from docker.errors import DockerException

import docker
from docker import DockerClient

# Its image cannot be had everywhere, and each fixture removes what it made.
os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"

from tests.docker.system import ROOT, System, compose_command

BUILD_LIMIT_S = 900


@pytest.fixture(scope="session")
def client() -> Iterator[DockerClient]:
    """The daemon's client."""
    absent = ""
    # The library does not close the socket of a daemon that is not there.
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        try:
            client = docker.from_env(timeout=120)
            client.ping()
        except DockerException as error:
            absent = str(error)
        gc.collect()
    if absent:
        pytest.skip(f"Docker is absent: {absent}")
    if not shutil.which("docker-compose") and not shutil.which("docker"):
        pytest.skip("neither docker-compose nor docker is on PATH")
    yield client
    client.close()


@pytest.fixture(scope="session")
def images(client: DockerClient) -> None:
    """The images of docker-compose.yml, built once; what has not changed comes from Docker's cache."""
    done = subprocess.run(
        [*compose_command(), "build"], cwd=ROOT, capture_output=True, text=True, timeout=BUILD_LIMIT_S
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture(scope="module")
def system(client: DockerClient, images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """The whole of docker-compose.yml, started by the README's lines and healthy; nothing of it is left afterwards."""
    system = System(client, tmp_path_factory.mktemp("compose"))
    try:
        system.paste_readme()
        system.wait_healthy()
        yield system
    finally:
        system.stop()
    assert system.leftovers() == []
