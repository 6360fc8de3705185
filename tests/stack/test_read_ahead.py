"""Tables that are read while the initial snapshot goes on: on real services, with another table that holds it up."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.fix_kafka import CaptureOf
from tests.fix_postgres import Database
from tests.fix_project import ACCOUNTS, Project, projects
from tests.logged import messages
from tests.waiting import wait_for

LIMIT_S = 120
ROWS = 30_000  # of which Debezium takes some while, after the slot was made
RUN = ("--set", "log.bulk_offsets=1000", "run", "--until-caught-up")


@pytest.fixture
def project(tmp_path: Path, database: Database, capture: CaptureOf, spark: SparkSession) -> Iterator[Project]:
    """A ready project of two tables, the first of which is long."""
    database.execute(
        *ACCOUNTS, "CREATE TABLE later (id int PRIMARY KEY)", "INSERT INTO later VALUES (1)",
        f"INSERT INTO accounts SELECT n, 'eve', n FROM generate_series(1000, {ROWS + 999}) n",
    )  # fmt: skip
    with projects(tmp_path, database, capture("public.accounts", "public.later"), spark) as made:
        made.fix()
        yield made


@contextmanager
def held_up(project: Project) -> Iterator[None]:
    """The snapshot, which is about to begin, does not get past the first table.

    The making of the slot would wait for the end of the lock's transaction.
    """
    slot = project.capture.settings.source.slot
    made = f"SELECT 1 FROM pg_replication_slots WHERE slot_name = '{slot}' AND confirmed_flush_lsn IS NOT NULL"
    wait_for(lambda: project.database.execute(made), LIMIT_S)
    with project.database.connect() as connection, connection.transaction():
        connection.execute("LOCK TABLE later IN ACCESS EXCLUSIVE MODE NOWAIT")
        yield


def rows_ahead(project: Project) -> int:
    """Rows in data files of `accounts`, whether an epoch names them or not."""
    files = (project.warehouse / "mirrors/public/accounts").glob("*/*.parquet")
    return sum(map(rows_in, files))


def rows_in(file: Path) -> int:
    """None in one that is being written."""
    with suppress(pa.ArrowInvalid):
        return int(pq.read_metadata(file).num_rows)
    return 0


def test_tables_are_read_while_the_snapshot_goes_on(project: Project) -> None:
    with project.start(*RUN) as process:
        with held_up(project):
            wait_for(lambda: rows_ahead(project) >= ROWS, LIMIT_S)
            # In the log behind the snapshot, of rows that were read.
            project.database.execute(
                "UPDATE accounts SET balance = -1 WHERE id % 1000 = 7", "DELETE FROM accounts WHERE id % 1000 = 8",
                "UPDATE accounts SET id = id + 1000000 WHERE id % 1000 = 9",
                "INSERT INTO accounts VALUES (10, 'new', 3)",
            )  # fmt: skip
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    project.assert_equal_to_postgres()
    # Not always the last piece: a line is a second after the one before, unless all that is there was read.
    line = r"^reading ahead: public.accounts: (\d+) of (\d+) offsets, \d+ a second(?:, \d+ s left)?$"
    said = "\n".join(messages(err))
    ahead = re.findall(line, said, re.MULTILINE)
    assert ahead, err
    assert all(0 <= int(done) <= int(total) for done, total in ahead)
    assert any(int(done) for done, _ in ahead), err
    # Without a rate where all rows were there when they were counted first.
    line = rf"^snapshot: . tables done, (\d+)(?: of about {ROWS})? rows(?:, \d+ a second.*)?$"
    snapshot = re.findall(line, said, re.MULTILINE)
    assert snapshot, err
    assert max(map(int, snapshot)) >= ROWS
    read = re.search(r"^reading: public.accounts: (\d+) of \1 offsets", said, re.MULTILINE)
    assert read, err
    assert 0 < int(read[1]) < ROWS / 2, "read again"


@pytest.mark.proves(
    wrong="The engine is killed while it reads tables before the initial snapshot is complete",
    seen="no error",
    do="start the engine again; it reads the tables again, and upkeep removes the files of the first attempt",
)
@pytest.mark.nightly
def test_kill_while_tables_are_read_ahead_leaves_files_that_no_epoch_takes(project: Project) -> None:
    with project.start(*RUN, CDC_VIEWS_FAULT="read_ahead.after_piece:kill") as killed, held_up(project):
        _, err = killed.communicate(timeout=LIMIT_S)
    assert killed.returncode == -signal.SIGKILL, err
    left = rows_ahead(project)
    assert left
    wait_for(lambda: not project.processes(), LIMIT_S)
    done = project.here(*RUN)
    assert done.returncode == 0, done.stderr
    project.assert_equal_to_postgres()
    assert rows_ahead(project) >= left + ROWS
