"""What Debezium 3.7 leaves out where it begins again, and that the engine sees it before anything is published."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from cdc_views.base.names import TableName
from cdc_views.log.cuts.ranges import read_pieces
from cdc_views.log.debezium.connector import connector_config
from cdc_views.log.debezium.placeholder import read_placeholder
from cdc_views.log.kafka.record import Record, parse_records
from cdc_views.log.kafka.topics import admin_client, begin_offsets, end_offsets
from cdc_views.log.log import Log
from tests.fix_kafka import CaptureOf, resume_connector
from tests.fix_postgres import Database
from tests.fix_project import ACCOUNTS, Project, projects
from tests.waiting import wait_for

LIMIT_S: Final = 120
STOPS: Final = 30
ROWS: Final = 2000
ONE_BY_ONE: Final = {"max.batch.size": "1", "max.queue.size": "2"}
# Two rows fill a page, and so a record of the WAL.
WIDE: Final = ("ALTER TABLE accounts ALTER holder TYPE text", "ALTER TABLE accounts ALTER holder SET STORAGE PLAIN")
COPY: Final = (
    "COPY accounts FROM PROGRAM "
    f"$$seq 10 {ROWS + 9} | awk -v OFS='\\t' '{{ s = sprintf(\"%3000s\", $1); print $1, s, 1 }}'$$"
)
IsLost = Callable[[list[Record]], bool]


class Leaving:
    """A connector that is stopped in a transaction again and again, until it has left it where it loses rows."""

    def __init__(self, project: Project, database: Database, log: Log) -> None:
        self._connect, self._settings = project.capture.connect, project.capture.settings
        self._name, self._database = self._settings.log.connector, database
        self._topic = TableName("public", "accounts")
        self._log = log

    def records(self) -> list[Record]:
        """What the table's topic has, in the order of the WAL."""
        partitions = self._log.partitions_of([self._topic])
        admin = admin_client(self._settings.log)
        begin, end = begin_offsets(admin, partitions), end_offsets(admin, partitions, committed=True)
        found = [
            record
            for raw in read_pieces(self._settings.log, begin, end)
            for record in parse_records(raw)
            if record.order is not None
        ]
        return sorted(found, key=lambda record: (record.order.commit or 0, record.order.lsn or 0, record.timestamp_ms))

    def leave(self, is_lost: IsLost, statement: str) -> None:
        """Run the statement, and leave the connector so; it runs again afterwards, until it has come to the end."""
        self._configure(ONE_BY_ONE)
        self._known = len(self.records())
        self._database.execute(statement)
        for _ in range(STOPS):
            wait_for(lambda: len(self.records()) > self._known, LIMIT_S)
            self._stop()
            found = self.records()
            self._known = len(found)
            if is_lost(found):
                self._configure({})
                return
            resume_connector(self._connect, self._name)
        raise AssertionError(f"never left so in {STOPS} stops, with {self._known} records")

    def _configure(self, settings: dict[str, str]) -> None:
        """Let it run with these settings besides; a task that is not stopped goes on for a while with those it has."""
        self._stop()
        self._connect.put_connector(
            self._name, connector_config(self._settings, read_placeholder(self._settings.log)) | settings
        )
        resume_connector(self._connect, self._name)
        self._connect.wait_running(self._name)

    def _stop(self) -> None:
        self._connect.stop_connector(self._name)
        wait_for(lambda: self._connect.task_state(self._name).state == "STOPPED", LIMIT_S)


def is_first_of_its_page(records: list[Record]) -> bool:
    """Whether of the last page with a row in the log there is one."""
    last = records[-1].order
    return [record.order for record in records].count(last) == 1


def is_first_half(records: list[Record]) -> bool:
    """Whether of the last change of key only the delete is in the log."""
    last = records[-1].order
    return [record.value["op"] for record in records if record.order == last and record.value] == ["d"]


LOSSES: Final[Sequence[tuple[str, IsLost]]] = (
    # Its rows are not told apart from those of a later transaction at once.
    (f"BEGIN; SAVEPOINT one; {COPY}; COMMIT", is_first_of_its_page),
    ("UPDATE accounts SET id = id + 100000", is_first_half),
)


@pytest.fixture
def wide(tmp_path: Path, database: Database, capture: CaptureOf, spark: SparkSession) -> Iterator[Project]:
    """A ready project of a table of which two rows fill a page, caught up."""
    database.execute(*ACCOUNTS, *WIDE)
    with projects(tmp_path, database, capture("public.accounts"), spark) as made:
        made.fix()
        made.catch_up()
        yield made


@pytest.mark.proves(
    wrong=(
        "The connector stops after the first row of a page of a COPY, or between the two halves of a primary-key "
        "update, and Debezium 3.7 skips the rest"
    ),
    seen="`RowsLost` before any of it is published",
    do="run `cdc-views rebuild TABLE --from snapshot --swap`",
)
@pytest.mark.parametrize("losses", [LOSSES[:1], pytest.param(LOSSES, marks=pytest.mark.nightly)], ids=["one", "all"])
def test_rows_that_the_connector_omits_stop_the_engine_until_they_are_rebuilt(
    wide: Project, database: Database, losses: Sequence[tuple[str, IsLost]]
) -> None:
    for statement, is_lost in losses:
        published = wide.published()
        with closing(wide.capture.detached_log()) as log:
            Leaving(wide, database, log).leave(is_lost, statement)
        refused = wide.here("run", "--until-caught-up")
        assert "RowsLost" in refused.stderr, refused.stderr
        assert refused.returncode == 1
        assert wide.published() == published
        rebuilt = wide.here("rebuild", "public.accounts", "--from", "snapshot", "--swap")
        assert rebuilt.returncode == 0, rebuilt.stderr
        wide.assert_equal_to_postgres()
