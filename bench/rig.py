"""The base of every run: Postgres, Kafka and Connect, a new database, its topics, and a scratch folder."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg
import yaml
from psycopg import sql
from psycopg.conninfo import make_conninfo

from bench import database
from bench.database import ALERTS, Contents
from bench.load import DSN_VARIABLE
from cdc_views.base.service_schema import HEARTBEAT
from cdc_views.config import FILE_NAME, Settings, load_settings
from cdc_views.demo.programs import Program
from cdc_views.demo.project import VIEWS
from cdc_views.engine.capture.readiness import fix, require_ready
from cdc_views.engine.capture.start import forget_capture, start_capture
from cdc_views.errors import NotRunning
from cdc_views.host.waiting import wait_until
from cdc_views.log.cuts.markers import read_marker
from cdc_views.log.debezium.connect import ConnectClient
from cdc_views.log.debezium.snapshot import wait_snapshot
from cdc_views.log.kafka.reader import Reader
from cdc_views.log.kafka.record import TopicPartition, parse_records
from cdc_views.log.kafka.topics import admin_client, end_offsets, topic_name
from cdc_views.source.connection import connect
from cdc_views.source.service.marker import Marker
from cdc_views.stack.folders import make_shared
from cdc_views.stack.local import Addresses, LocalStack

ROOT: Final = Path(__file__).parent.parent
CAPTURED_LIMIT_S: Final = 3600.0


@dataclass(frozen=True)
class Rig:
    """A database and its topics on a running stack. `folder` belongs to the run and is removed afterwards."""

    stack: LocalStack
    folder: Path
    name: str
    dsn: str
    contents: Contents
    driver_memory: str
    views: Path | None

    @property
    def with_views(self) -> bool:
        """Whether the project has views."""
        return self.views is not None

    def project(self, label: str) -> Path:
        """A new project folder for the same database and topics, with its own empty warehouse."""
        folder = self.folder / label
        folder.mkdir()
        if self.views is not None:
            shutil.copytree(self.views, folder / "views", ignore=shutil.ignore_patterns(f"{ALERTS}.sql"))
        write_project(folder, self.dsn, self.stack.addresses, self.name, self.contents.tables,
                      engine={"driver_memory": self.driver_memory})  # fmt: skip
        return folder

    def settings(self, project: Path) -> Settings:
        """The settings of a project, as every command reads them."""
        return load_settings(project)

    def capture(self) -> float:
        """Fill the topics with the initial snapshot. Returns the seconds from the registration to the end."""
        settings = self.prepare()
        began = time.monotonic()
        start_capture(settings, lambda progress: None)
        return time.monotonic() - began

    def prepare(self) -> Settings:
        """Make the source ready for a capture."""
        settings = self.settings(self.project("capture"))
        fix(settings)
        require_ready(settings)
        return settings

    def watch_capture(self) -> float:
        """Wait for the end of a snapshot that another process starts. Returns the seconds from the registration."""
        log = self.settings(self.folder / "capture").log
        worker = ConnectClient(log.connect_url)
        if not wait_until(lambda: worker.exists(log.connector), CAPTURED_LIMIT_S):
            raise NotRunning(f'connector "{log.connector}" was not registered within {CAPTURED_LIMIT_S:.0f} s')
        began = time.monotonic()
        wait_snapshot(log, lambda progress: None)
        return time.monotonic() - began

    def wait_captured(self) -> None:
        """Wait until everything committed so far is readable from the topics. Raises NotRunning."""
        log = self.settings(self.folder / "capture").log
        heartbeat = TopicPartition(topic_name(log.topic_prefix, HEARTBEAT), 0)
        with connect(self.dsn) as source, closing(Reader(log)) as reader:
            reader.assign(end_offsets(admin_client(log), [heartbeat]))
            marker = Marker(source, self.settings(self.folder / "capture").source, uuid4().hex)
            number, deadline = marker.touch(), time.monotonic() + CAPTURED_LIMIT_S
            while time.monotonic() < deadline:
                for record in parse_records(reader.read(0.2)):
                    arrived = read_marker(record, marker.writer)
                    if arrived is not None and arrived.number >= number:
                        return
        raise NotRunning(f"a marker did not come through the log within {CAPTURED_LIMIT_S:.0f} s")

    def capture_pids(self) -> list[int | None]:
        """The processes of Postgres, Kafka and Connect."""
        return [service.pid for service in self.stack.services]

    def program(self, name: str, folder: Path, *arguments: str) -> Program:
        """A module of this package as a process, with the DSN in its environment."""
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        return Program(name, folder, ["-m", *arguments], {"PYTHONPATH": path, DSN_VARIABLE: self.dsn})

    def forget(self) -> None:
        """Remove the connector, slot, topics and database."""
        if (self.folder / "capture").exists():
            forget_capture(self.settings(self.folder / "capture"))
        drop_database(self.stack, self.name)


def write_project(
    folder: Path, dsn: str, addresses: Addresses, name: str, tables: Iterable[str], **further: Mapping[str, Any]
) -> None:
    """Write the settings of a project whose slot, publication, connector and topics have this name.

    `further` contains settings by section. The DSN goes into a file that only this user can read.
    """
    with open(folder / "dsn", "x", opener=lambda path, flags: os.open(path, flags, 0o600)) as secret:
        secret.write(dsn)
    values: dict[str, dict[str, Any]] = {
        "source": {"dsn": "${file:dsn}", "tables": list(tables), "slot": name, "publication": name},
        "log": {"bootstrap_servers": addresses.bootstrap_servers, "connect_url": addresses.connect_url,
                "connector": name, "topic_prefix": name},
    }  # fmt: skip
    for section, settings in further.items():
        values[section] = {**values.get(section, {}), **settings}
    (folder / FILE_NAME).write_text(yaml.safe_dump(values, sort_keys=False))


def create_database(stack: LocalStack, name: str) -> str:
    """Create an empty database. Returns its DSN."""
    with psycopg.connect(stack.addresses.dsn, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return make_conninfo(stack.addresses.dsn, dbname=name)


def drop_database(stack: LocalStack, name: str) -> None:
    """Drop the database, even if somebody is connected."""
    with psycopg.connect(stack.addresses.dsn, autocommit=True) as server:
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def rig(state: Path | None, rows: int, driver_memory: str, *, with_views: bool = False) -> Iterator[Rig]:
    """A rig with the tables that the load changes, or with the measured ones of the demo and its views.

    `rows` is the number of rows of each large table without views. See `rig_over` for the rest.
    """

    def create(dsn: str) -> Contents:
        return database.create_demo(dsn) if with_views else database.create(dsn, rows)

    with rig_over(state, create, driver_memory, VIEWS if with_views else None) as made:
        yield made


@contextmanager
def rig_over(
    state: Path | None, create: Callable[[str], Contents], driver_memory: str, views: Path | None
) -> Iterator[Rig]:
    """Start the stack of a state folder (None: a temporary one), and create a database on it, with its contents.

    `views` is the folder of view files that every project gets. A stack that was already running keeps running.
    """
    with scratch() as folder, LocalStack(state or folder / "stack") as stack:
        name = f"bench_{uuid4().hex[:10]}"
        dsn = create_database(stack, name)
        made = Rig(stack, folder, name, dsn, create(dsn), driver_memory, views)
        try:
            yield made
        finally:
            made.forget()


@contextmanager
def leftovers(*, keep: bool) -> Iterator[ExitStack]:
    """Clean up at the end what was registered; with `keep`, not after an error."""
    with ExitStack() as made:
        try:
            yield made
        except BaseException:
            if keep:
                made.pop_all()
            raise


@contextmanager
def scratch(*, keep: bool = False) -> Iterator[Path]:
    """A temporary folder below `TMPDIR` that Postgres's user can enter. With `keep` it stays after an error."""
    folder = Path(tempfile.mkdtemp(prefix="cdc-views-bench-"))
    folder.chmod(0o755)
    make_shared(folder)
    with leftovers(keep=keep) as made:
        made.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder
