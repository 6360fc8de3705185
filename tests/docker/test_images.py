"""Each image alone: what it is for, who runs in it, and how it stops."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import requests
from confluent_kafka import Consumer, Producer
from docker.models.containers import Container
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from cdc_views.stack.pins import pins
from docker import DockerClient
from tests.fix_ports import free_port
from tests.waiting import wait_for

# The first test waits for the images to be built.
pytestmark = pytest.mark.timeout(1800)

HEALTHY_LIMIT_S = 120
STOPPED_BY_SIGTERM = 143


@contextmanager
def running(container: DockerContainer) -> Iterator[Container]:
    """The container, healthy by its image's own check."""
    with container:
        wrapped = container.get_wrapped_container()

        def is_healthy() -> bool:
            wrapped.reload()
            assert wrapped.status == "running", wrapped.logs().decode()
            return bool(wrapped.health == "healthy")

        wait_for(is_healthy, HEALTHY_LIMIT_S)
        yield wrapped


def stopped(container: Container) -> tuple[int, str]:
    """Exit status and log of a container after a polite stop."""
    container.stop(timeout=30)
    container.reload()
    return container.attrs["State"]["ExitCode"], container.logs().decode()


def user_of(container: Container) -> str:
    return str(container.exec_run(["id", "-un"]).output.decode().strip())


def test_postgres_decodes_its_wal_and_stops_in_good_order(images: None) -> None:
    password = secrets.token_urlsafe(12)
    image = DockerContainer("cdc-views/postgres").with_env("POSTGRES_PASSWORD", password).with_exposed_ports(5432)
    with running(image) as container:
        dsn = f"postgresql://postgres:{password}@127.0.0.1:{image.get_exposed_port(5432)}/app"
        with psycopg.connect(dsn) as connection:
            shown = connection.execute("SELECT current_setting('wal_level'), current_setting('server_version')")
            version = next(pin.revision for pin in pins() if pin.group == "postgres")
            assert shown.fetchone() == ("logical", version.removesuffix(".0"))
        assert user_of(container) == "postgres"
        assert password not in str(container.exec_run(["cat", "/proc/1/environ"]).output)
        status, log = stopped(container)
    assert status == 0
    assert "database system is shut down" in log


def test_postgres_without_a_password_says_so(client: DockerClient, images: None) -> None:
    container = client.containers.run("cdc-views/postgres", detach=True)
    try:
        assert container.wait(timeout=60)["StatusCode"] != 0
        assert "POSTGRES_PASSWORD: is to be the password of the user postgres" in container.logs().decode()
    finally:
        container.remove(force=True, v=True)


@pytest.mark.nightly
def test_kafka_is_written_and_read_from_the_host(images: None) -> None:
    port = free_port()
    image = DockerContainer("cdc-views/kafka").with_env("KAFKA_HOST_ADDRESS", f"127.0.0.1:{port}")
    with running(image.with_bind_ports(19092, port)) as container:
        address = {"bootstrap.servers": f"127.0.0.1:{port}"}
        consumer = Consumer({**address, "group.id": "g", "auto.offset.reset": "earliest"})
        try:
            assert container.exec_run(["healthy"]).exit_code == 0
            metadata = consumer.list_topics(timeout=30)
            assert [broker.port for broker in metadata.brokers.values()] == [port]
            assert Producer(address).list_topics(timeout=30).cluster_id == metadata.cluster_id
        finally:
            consumer.close()
        assert user_of(container) == "kafka"
        status, log = stopped(container)
    assert status == STOPPED_BY_SIGTERM
    assert "shut down completed" in log


@pytest.mark.nightly
def test_connect_has_debezium_and_works_exactly_once(images: None) -> None:
    with Network() as network:
        kafka = DockerContainer("cdc-views/kafka").with_network(network).with_network_aliases("kafka")
        connect = DockerContainer("cdc-views/connect").with_network(network).with_exposed_ports(8083)
        with running(kafka), running(connect) as container:
            url = f"http://127.0.0.1:{connect.get_exposed_port(8083)}"
            plugins = {plugin["class"]: plugin["version"] for plugin in requests.get(f"{url}/connector-plugins").json()}
            version = next(pin.revision for pin in pins() if pin.group == "debezium")
            assert plugins["io.debezium.connector.postgresql.PostgresConnector"] == version
            assert user_of(container) == "connect"
            settings = container.exec_run(["cat", "/tmp/worker.properties"]).output.decode()
            assert "exactly.once.source.support=enabled" in settings
            status, _ = stopped(container)
    assert status == STOPPED_BY_SIGTERM


@pytest.mark.parametrize(
    ("arguments", "status", "shown"),
    [
        (["--version"], 0, "cdc-views, version"),
        (["run"], 2, 'no "cdc-views.yaml" in "."'),
        (["status", "--published-within", "60"], 2, 'no "cdc-views.yaml" in "."'),
    ],
)
def test_cdc_views_is_the_command_line(
    client: DockerClient, images: None, arguments: list[str], status: int, shown: str
) -> None:
    container = client.containers.run("cdc-views/cdc-views", arguments, detach=True)
    try:
        assert container.wait(timeout=60)["StatusCode"] == status
        assert shown in container.logs().decode()
    finally:
        container.remove(force=True, v=True)


@pytest.mark.parametrize("service", ["postgres", "kafka", "connect", "cdc-views"])
def test_image_runs_as_a_plain_user_and_holds_no_secret(client: DockerClient, images: None, service: str) -> None:
    image = client.images.get(f"cdc-views/{service}")
    assert image.attrs["Config"]["User"] not in ("", "root", "0")
    assert image.attrs["Config"]["Healthcheck"]["Test"]
    assert not [entry for entry in image.attrs["Config"]["Env"] if "PASSWORD" in entry or "DSN" in entry]


def test_user_of_the_image_writes_to_a_new_volume_below_a_project_of_the_host(
    client: DockerClient, images: None, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)  # as a project is; pytest makes it for its own user alone
    volume = client.volumes.create()
    mounted = {str(tmp_path): {"bind": "/project"}, volume.name: {"bind": "/project/warehouse"}}
    try:
        client.containers.run(
            "cdc-views/cdc-views", ["/project/warehouse/file"], entrypoint="touch", volumes=mounted, remove=True
        )  # raises ContainerError if it fails
    finally:
        volume.remove(force=True)
