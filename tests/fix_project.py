"""A project folder on the session's stack, the command line in this process or in its own, and what it leaves behind.

A command in its own process starts a JVM, which takes 10 to 19 s of processor time. So a test whose subject is the
outcome of a command calls `Project.here`; `Project.run` and `Project.start` are for tests of processes: signals, kills,
two commands at the same time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest
import requests
import yaml
from click.testing import CliRunner
from pyspark.sql import SparkSession

from cdc_views.cli.main import INTERRUPTED, main
from cdc_views.config import FILE_NAME, INTERPRETED, SHORT_LIVED, load_settings
from cdc_views.engine.capture.captures import current_settings
from cdc_views.engine.capture.readiness import fix, require_ready
from cdc_views.engine.capture.start import resume_capture
from cdc_views.engine.service.engine import Engine
from cdc_views.engine.service.target import current_target
from cdc_views.log.kafka.topics import admin_client
from cdc_views.store.control.control_log import ControlRecord, last_published, read_control
from cdc_views.store.reading import read_table
from cdc_views.testing.crash import crash_at
from tests.fix_kafka import Capture, CaptureOf
from tests.fix_postgres import Database
from tests.lent_spark import lending
from tests.waiting import wait_for

RUN_LIMIT_S = 180
ACCOUNTS = (
    "CREATE TABLE accounts (id bigint PRIMARY KEY, holder varchar(20) NOT NULL, balance numeric(12,2) NOT NULL)",
    "ALTER TABLE accounts REPLICA IDENTITY FULL",
    "INSERT INTO accounts VALUES (1, 'ada', 100), (2, 'ada', 20), (3, 'bob', 5)",
)
BALANCES = """\
CREATE MATERIALIZED VIEW balances (holder, accounts, total) AS
SELECT holder, count(*), sum(balance)
FROM accounts
GROUP BY holder;
"""
# By hand, in Postgres' SQL: what the mirror and the view are to equal.
SOURCE = {
    "public.accounts": "SELECT id, holder, balance FROM accounts",
    "balances": "SELECT holder, count(*), sum(balance) FROM accounts GROUP BY holder",
}


@dataclass(frozen=True)
class World:
    """What a command that refuses must leave as it was."""

    topics: frozenset[str]
    slots: frozenset[str]
    connectors: frozenset[str]
    files: dict[str, tuple[int, int]]
    processes: frozenset[int]


@dataclass
class Project:
    """A project folder; processes of its commands carry a mark in their environment."""

    folder: Path
    database: Database
    capture: Capture
    spark: SparkSession
    mark: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        self.spark = self.spark.newSession()  # the session's temporary views and settings are not shared
        for name, value in INTERPRETED.items():
            self.spark.conf.set(name, value)

    @property
    def warehouse(self) -> Path:
        """The folder of the Delta tables."""
        return self.folder / "warehouse"

    def configure(self, dsn: str | None = None, toast: str = "full", **engine: object) -> None:
        """Write cdc-views.yaml; the DSN comes from the environment."""
        settings, log = self.capture.settings.source, self.capture.settings.log
        self.dsn = dsn or self.database.dsn
        values = {
            "source": {"dsn": "${env:PROJECT_DSN}", "tables": [str(table) for table in settings.tables],
                       "slot": settings.slot, "publication": settings.publication, "toast": toast},
            "log": {name: getattr(log, name) for name in
                    ("bootstrap_servers", "connect_url", "connector", "topic_prefix", "transaction_timeout_ms",
                     "poll_interval_ms", "offsets_topic")},
            "engine": {"driver_memory": "1g", "idle_epoch_interval_s": 0.5,
                       "spark_conf": {**SHORT_LIVED, **INTERPRETED}, **engine},
        }  # fmt: skip
        (self.folder / FILE_NAME).write_text(yaml.safe_dump(values))

    def view(self, text: str, name: str = "balances") -> None:
        """Write a view file."""
        (self.folder / "views").mkdir(exist_ok=True)
        (self.folder / "views" / f"{name}.sql").write_text(text)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start `cdc-views` in the project."""
        return subprocess.Popen(
            [sys.executable, "-m", "cdc_views.cli.main", "-C", str(self.folder), *arguments],
            env={**os.environ, "PROJECT_DSN": self.dsn, "PROJECT_MARK": self.mark, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `cdc-views` in the project to its end."""
        with self.start(*arguments, **environment) as process:
            try:
                out, err = process.communicate(timeout=RUN_LIMIT_S)
            finally:
                process.kill()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def here(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `cdc-views` in the project to its end, in this process and on the session's Spark.

        An injected fault passes through, for `crash_at`.
        """
        before = signal.getsignal(signal.SIGTERM)
        try:
            with lending(self.spark):
                runner = CliRunner(env={"PROJECT_DSN": self.dsn, **environment})
                done = runner.invoke(main, ["-C", str(self.folder), *arguments], catch_exceptions=False)
        finally:
            signal.signal(signal.SIGTERM, before)
        if done.exit_code == INTERRUPTED:
            raise KeyboardInterrupt  # of the tests, for the command got it in their place
        return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)

    def catch_up(self) -> None:
        """Run `cdc-views run --until-caught-up` in this process."""
        done = self.here("run", "--until-caught-up")
        assert done.returncode == 0, done.stdout + done.stderr

    @contextlib.contextmanager
    def engine(self) -> Iterator[Callable[[], None]]:
        """An engine that goes on in this process; calling what this gives lets it publish all that is committed."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PROJECT_DSN", self.dsn)
            settings = current_settings(load_settings(self.folder))
        require_ready(settings)
        resume_capture(settings)
        with Engine(settings, self.spark) as engine:
            yield lambda: engine.run(until=current_target(settings))

    def processes(self) -> frozenset[int]:
        """Processes that a command of this project has started, the drivers' JVMs among them."""
        return frozenset(marked_processes(self.mark))

    def world(self) -> World:
        """Topics, slots, connectors, files of the project, and processes."""
        log = self.capture.settings.log
        topics = admin_client(log).list_topics(timeout=30).topics
        slots = self.database.execute("SELECT slot_name FROM pg_replication_slots")
        connectors = requests.get(f"{log.connect_url}/connectors", timeout=30).json()
        return World(
            frozenset(topics),
            frozenset(name for (name,) in slots),
            frozenset(connectors),
            files_below(self.folder),
            self.processes(),
        )

    def fix(self) -> None:
        """Do what `cdc-views check --fix` does to the source, in this process."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PROJECT_DSN", self.dsn)
            fix(load_settings(self.folder))

    def published(self) -> ControlRecord:
        """The last published epoch."""
        return last_published(self.warehouse)

    def has_published(self, epochs: int = 1) -> bool:
        """Whether so many epochs are there to be read."""
        return sum(record.kind == "publish" for record in read_control(self.warehouse)) >= epochs

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The published rows of a mirror or view, without hidden columns."""
        table = self.published().tables[name]
        rows = read_table(self.warehouse, table.path, table.version)
        columns = [column for column in rows.column_names if not column.startswith("_cv_")]
        return sorted(tuple(row.values()) for row in rows.select(columns).to_pylist())

    def expected(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a mirror or view as Postgres computes them."""
        return sorted(self.database.execute(SOURCE[name]))

    def assert_equal_to_postgres(self) -> None:
        """The mirror and the view hold what Postgres holds."""
        for name in SOURCE:
            assert self.rows(name) == self.expected(name), name


def marked_processes(mark: str) -> Iterator[int]:
    """Live processes with this mark in the environment that they were started with."""
    for process in psutil.process_iter(["environ"]):
        if (process.info["environ"] or {}).get("PROJECT_MARK") == mark:
            yield process.pid


def files_below(folder: Path) -> dict[str, tuple[int, int]]:
    """Path, size and time of every file, but for locks: whoever asks for one writes its pid."""
    return {
        str(file.relative_to(folder)): (file.stat().st_size, file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
        if file.is_file() and ".lock" not in file.parts
    }


def assert_refused(project: Project, error: str, status: int, hint: str, *arguments: str, **environment: str) -> str:
    """The command ends with this error, hint and status, and the world is as it was; returns stderr."""
    wait_for(lambda: not project.processes(), 60)  # an earlier command's JVM may still be ending
    before = project.world()
    done = project.here(*arguments, **environment)
    assert done.returncode == status, done.stderr
    shown = done.stderr.splitlines()
    assert any(line.startswith(f"{error}: ") for line in shown), done.stderr
    assert shown[-1].startswith("hint: "), done.stderr
    assert hint in shown[-1], done.stderr
    assert "Traceback" not in done.stderr
    assert dataclasses.asdict(project.world()) == dataclasses.asdict(before)
    return done.stderr


def end_at(project: Project, point: str, deed: str, *arguments: str) -> None:
    """Let the command end at a fault point: by a `kill` of its own process, or by a `raise` in this one.

    Both leave the same files. A kill also leaves a JVM that ends by itself, and takes a process with a JVM.
    """
    if deed == "raise":
        with crash_at(point):
            project.here(*arguments)
        return
    killed = project.run(*arguments, CDC_VIEWS_FAULT=f"{point}:kill")
    assert killed.returncode == -signal.SIGKILL, (point, killed.stderr)
    wait_for(lambda: not project.processes(), 60)


@contextlib.contextmanager
def projects(folder: Path, database: Database, capture: Capture, spark: SparkSession) -> Iterator[Project]:
    """Make a project that mirrors `accounts` and keeps `balances`; nothing of it runs, and Postgres is prepared.

    What its commands started is killed afterwards.
    """
    made = Project(folder, database, capture, spark)
    made.configure()
    made.view(BALANCES)
    yield made
    for pid in made.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not made.processes(), 30)


@pytest.fixture
def project(tmp_path: Path, database: Database, capture: CaptureOf, spark: SparkSession) -> Iterator[Project]:
    """A project on the stack's own worker."""
    database.execute(*ACCOUNTS)
    with projects(tmp_path, database, capture("public.accounts"), spark) as made:
        yield made
