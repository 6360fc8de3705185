"""The system of docker-compose.yml, under a name and on ports of a test's own."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import requests
from docker.models.containers import Container
from psycopg.conninfo import make_conninfo
from testcontainers.compose import DockerCompose

from cdc_views.base.lsn import Lsn
from cdc_views.demo.check import require_equal
from cdc_views.demo.figures import changes_of
from cdc_views.store.control.control_log import ControlRecord, read_control
from docker import DockerClient
from tests.fix_ports import free_port
from tests.page_blocks import block
from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]
SERVICES = ("postgres", "kafka", "connect", "engine", "page")

# A service that was killed waits for sessions of its dead self, and for others that restart with growing pauses.
HEALTHY_LIMIT_S = 400
CATCH_UP_LIMIT_S = 600
LINES_LIMIT_S = 600
PROJECT_LABEL = "com.docker.compose.project"
SERVICE_LABEL = "com.docker.compose.service"


def compose_command() -> list[str]:
    """`docker-compose` where it is installed, else the plugin of `docker`."""
    return ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]


def readme_lines() -> str:
    """The lines with which the README starts the system and looks at it."""
    return block("README.md", "docker")


class System(DockerCompose):
    """Its containers, what the host sees of it, and what was committed to it from the host."""

    def __init__(self, client: DockerClient, folder: Path) -> None:
        super().__init__(ROOT, wait=False)
        self._client = client
        self._name = f"cdcviews{uuid4().hex[:8]}"
        self._password = secrets.token_urlsafe(12)
        self._port = free_port()
        self._page = f"http://127.0.0.1:{free_port()}"
        self._token = secrets.token_urlsafe(24)
        self._settings = folder / "env"
        self._settings.write_text(
            f"POSTGRES_PASSWORD={self._password}\nPOSTGRES_PORT={self._port}\n"
            f"KAFKA_PORT={free_port()}\nCONNECT_PORT={free_port()}\n"
            f"HTTP_PORT={self._page.rsplit(':', 1)[1]}\nHTTP_TOKEN={self._token}\n"
            # Their second compiler takes half of the processor that they take in so short a time.
            "JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1\n"
        )
        self.committed = 0
        self.pasted = ("", "")

    @property
    def compose_command_property(self) -> list[str]:
        """What every command begins with."""
        return [*compose_command(), "-p", self._name, "--env-file", str(self._settings)]

    @property
    def dsn(self) -> str:
        """Of the database, from the host."""
        return make_conninfo(host="127.0.0.1", port=self._port, dbname="app", user="postgres", password=self._password)

    @property
    def warehouse_volume(self) -> str:
        """The name of the volume with the Delta tables."""
        return f"{self._name}_warehouse"

    @property
    def warehouse(self) -> Path:
        """Where the host sees that volume; only root may look there."""
        return Path(self._client.volumes.get(self.warehouse_volume).attrs["Mountpoint"])

    def container(self, service: str) -> Container:
        """The one container of a service."""
        return self._containers(f"{SERVICE_LABEL}={service}")[0]

    def kill(self, service: str) -> None:
        """SIGKILL a service's container."""
        self.container(service).kill()

    def start_again(self, service: str) -> None:
        """Start a container that has ended; nobody else does after a kill."""
        self.container(service).start()

    def down(self) -> None:
        """Remove containers and network; the volumes stay."""
        self._run_command([*self.compose_command_property, "down"])

    def wait_healthy(self) -> None:
        """Return when every service is healthy by its own check."""
        wait_for(lambda: all(state == "healthy" for state in self.health().values()), HEALTHY_LIMIT_S, every_s=0.5)

    def health(self) -> dict[str, str]:
        """What Docker says of each service."""
        found = {container.labels[SERVICE_LABEL]: container.health for container in self._containers()}
        return {service: found.get(service, "absent") for service in SERVICES}

    def leftovers(self) -> list[str]:
        """Containers, networks and volumes of this project."""
        label = {"label": f"{PROJECT_LABEL}={self._name}"}
        networks, volumes = self._client.networks.list(filters=label), self._client.volumes.list(filters=label)
        return [str(thing.name) for thing in (*self._containers(), *networks, *volumes)]

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Rows of `cdc-views query` in the engine's container, as in the README."""
        shown, _, _ = self.exec_in_container(["cdc-views", "query", sql, "--json"], "engine")
        return [json.loads(line) for line in shown.splitlines()]

    def paste_readme(self) -> None:
        """Run the README's lines on this system, which does not exist yet; `pasted` has what they print."""
        assert self.leftovers() == []
        command = " ".join(self.compose_command_property)
        docker = f'docker() {{ [ "$1" = compose ] && shift && command {command} "$@"; }}'
        # Read line by line, as from a terminal: "exec" without </dev/null would take the lines after it for its input.
        script = f"set -euo pipefail\n{docker}\n{readme_lines()}"
        done = subprocess.run(
            ["bash", "-s"], input=script, cwd=ROOT, capture_output=True, text=True, timeout=LINES_LIMIT_S
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.pasted = done.stdout, done.stderr

    def get(self, path: str, *, has_token: bool = True) -> requests.Response:
        """What the page's server answers to the host."""
        headers = {"Authorization": f"Bearer {self._token}"} if has_token else {}
        return requests.get(f"{self._page}{path}", headers=headers, timeout=60)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run SQL on Postgres from the host and commit."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def work(self, seed: int, seconds: float = 6, rate: float = 300) -> None:
        """Let the demo's workload commit from the host, and add what it says to `committed`."""
        options = ["--rate", str(rate), "--seconds", str(seconds), "--seed", str(seed)]
        done = subprocess.run(
            [sys.executable, "-m", "cdc_views.demo.workload", "--dsn", self.dsn, *options],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        self.committed += json.loads(done.stdout.splitlines()[-1])["row_changes"]

    def published(self) -> list[ControlRecord]:
        """The published epochs, oldest first."""
        return [record for record in read_control(self.warehouse) if record.kind == "publish"]

    def end_of_wal(self) -> Lsn:
        """A position that holds every commit until now."""
        [(found,)] = self.execute("SELECT pg_current_wal_insert_lsn()::text")
        return Lsn.parse(found)

    def is_behind(self) -> bool:
        """Whether something committed is not published yet."""
        return sum(map(changes_of, self.published())) < self.committed

    def catch_up(self) -> None:
        """Return when everything that was committed until now is published."""
        target = self.end_of_wal()
        wait_for(lambda: (self.published()[-1].complete_to or 0) >= target, CATCH_UP_LIMIT_S, every_s=0.5)

    def assert_equal_to_postgres(self) -> None:
        """Every mirror and view equals Postgres, and each change was taken once."""
        self.catch_up()
        published = self.published()
        require_equal(self.dsn, self.warehouse, published[-1].tables)
        assert sum(map(changes_of, published)) == self.committed

    def _containers(self, *labels: str) -> list[Container]:
        wanted = [f"{PROJECT_LABEL}={self._name}", *labels]
        found: list[Container] = self._client.containers.list(all=True, filters={"label": wanted})
        return found
