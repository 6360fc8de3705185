"""The SQL of `check --print-sql` lets a role that has no other rights run connector and engine.

A superuser runs it, or, as in a managed service, the owner of the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql
from pydantic import SecretStr
from pyspark.sql import SparkSession

from cdc_views.base.names import TableName
from cdc_views.base.rendering import FOR_SQL_OF_USERS
from cdc_views.config import Settings
from cdc_views.engine.capture.readiness import require_ready
from cdc_views.engine.capture.start import begin_capture, resume_capture
from cdc_views.engine.service.engine import Engine
from cdc_views.engine.service.target import current_target
from cdc_views.errors import SchemaChanged, UnknownTable
from cdc_views.source.checks.dba_script import dba_script
from cdc_views.source.checks.preflight import check_source
from cdc_views.source.connection import connect
from cdc_views.store.control.control_log import last_published
from cdc_views.store.reading import read_table
from tests.fix_kafka import CaptureOf
from tests.fix_postgres import Database

ORDERS = TableName("My shop", 'order"s $cdc_views$')
TABLES = (ORDERS, TableName("public", "days"))
PASSWORD = "a password"


@dataclass(frozen=True)
class Site:
    """A database whose tables belong to `owner`, who is no superuser; `reader` has no right but to connect."""

    database: Database
    owner: str
    reader: str

    def as_owner(self, *statements: str) -> None:
        """Run statements as the owner."""
        with connect(self.database.as_role(self.owner, PASSWORD), pinned=FOR_SQL_OF_USERS) as connection:
            for statement in statements:
                connection.execute(sql.SQL(statement))

    @property
    def reader_dsn(self) -> str:
        """The DSN of connector and engine."""
        return self.database.as_role(self.reader, PASSWORD)


@pytest.fixture
def site(database: Database) -> Iterator[Site]:
    """Such a database; the roles are gone afterwards."""
    made = Site(database, f"{database.name} owner", f"{database.name} reader")
    database.execute(
        f"CREATE ROLE \"{made.owner}\" LOGIN PASSWORD '{PASSWORD}'",
        f'GRANT CREATE ON DATABASE {database.name} TO "{made.owner}"',
        f'GRANT CREATE ON SCHEMA public TO "{made.owner}"',
        "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_control_system() FROM PUBLIC",
    )  # fmt: skip
    made.as_owner(
        'CREATE SCHEMA "My shop"',
        'CREATE TABLE "My shop"."order""s $cdc_views$" (id int PRIMARY KEY, note text)',
        "CREATE TABLE days (id int PRIMARY KEY, span interval)",
        """INSERT INTO "My shop"."order""s $cdc_views$" VALUES (1, 'one'), (2, 'two')""",
        "INSERT INTO days VALUES (1, '1 day')",
    )
    yield made
    for role in (made.owner, made.reader):
        if database.execute(f"SELECT FROM pg_roles WHERE rolname = '{role}'"):
            database.execute(f'DROP OWNED BY "{role}" CASCADE', f'DROP ROLE "{role}"')


@dataclass
class Project:
    """Runs of the engine in this process, as the reader."""

    settings: Settings
    spark: SparkSession

    def run(self) -> None:
        """What `run --until-caught-up` does."""
        require_ready(self.settings)
        if self.settings.warehouse.exists():
            resume_capture(self.settings)
        else:
            begin_capture(self.settings, lambda progress: None, lambda error: None)
        with Engine(self.settings, self.spark) as engine:
            engine.run(until=current_target(self.settings))
            engine.require_none_stopped()

    def rows(self, name: TableName) -> list[tuple[Any, ...]]:
        """The published rows of a mirror."""
        table = last_published(self.settings.warehouse).tables[str(name)]
        rows = read_table(self.settings.warehouse, table.path, table.version)
        columns = [column for column in rows.column_names if not column.startswith("_cv_")]
        return sorted(tuple(row.values()) for row in rows.select(columns).to_pylist())


@pytest.fixture
def project(site: Site, capture: CaptureOf, spark: SparkSession, tmp_path: Path) -> Project:
    """A project of the reader on the stack's own worker."""
    (tmp_path / "views").mkdir()
    settings = capture(*TABLES, dsn=site.reader_dsn).settings
    folders = {"warehouse": tmp_path / "warehouse", "views": tmp_path / "views"}
    return Project(settings.model_copy(update=folders), spark)


def printed(project: Project, site: Site) -> str:
    """The script for the reader as a superuser prints it."""
    admin = project.settings.source.model_copy(update={"dsn": SecretStr(site.database.dsn)})
    return dba_script(project.settings.model_copy(update={"source": admin}), site.reader)


def assert_runs_until_ddl(project: Project, site: Site) -> None:
    """The reader's engine publishes the snapshot, then changes, and then stops at a change of a table."""
    project.run()
    assert project.rows(ORDERS) == [(1, "one"), (2, "two")]
    site.as_owner("""UPDATE "My shop"."order""s $cdc_views$" SET note = 'uno' WHERE id = 1""", "DELETE FROM days")
    project.run()
    assert (project.rows(ORDERS), project.rows(TABLES[1])) == ([(1, "uno"), (2, "two")], [])
    site.as_owner('ALTER TABLE "My shop"."order""s $cdc_views$" ALTER note TYPE int USING length(note)')
    with pytest.raises(SchemaChanged):
        project.run()


def test_engine_of_a_role_without_rights_runs_after_a_superuser_ran_the_script(site: Site, project: Project) -> None:
    script = printed(project, site)
    site.database.execute(script)
    site.database.execute(f"ALTER ROLE \"{site.reader}\" PASSWORD '{PASSWORD}'", script)
    assert check_source(project.settings) == [f for f in check_source(project.settings) if f.severity == "info"]
    assert_runs_until_ddl(project, site)
    assert site.database.execute("SELECT 1 FROM cdc_views.ddl WHERE command LIKE 'ALTER TABLE (rewrite)'")
    superuser, replicates = site.database.execute(
        f"SELECT rolsuper, rolreplication FROM pg_roles WHERE rolname = '{site.reader}'"
    )[0]
    assert (superuser, replicates) == (False, True)


def test_engine_of_a_role_without_rights_runs_after_the_owner_ran_the_script_of_a_managed_service(
    site: Site, project: Project
) -> None:
    """Where nobody may create event triggers, markers see what these would have recorded."""
    site.database.execute(
        f"CREATE ROLE \"{site.reader}\" LOGIN REPLICATION PASSWORD '{PASSWORD}'",
        f'GRANT EXECUTE ON FUNCTION pg_catalog.pg_control_system() TO "{site.reader}"',
    )
    # As the reader itself can print it, before it may do anything.
    site.as_owner(dba_script(project.settings))
    assert [f.problem for f in check_source(project.settings) if f.severity == "error"] == []
    assert site.database.execute("SELECT 1 FROM pg_event_trigger WHERE evtname LIKE 'cdc_views%'") == []
    assert_runs_until_ddl(project, site)
    assert site.database.execute("SELECT command FROM cdc_views.ddl WHERE command <> 'START OF CAPTURE'") == []


def test_script_names_what_it_does_not_do(site: Site, project: Project) -> None:
    site.as_owner("ALTER TABLE days DROP CONSTRAINT days_pkey")
    assert '-- NOT DONE by this script: table "public.days": has no primary key: ' in printed(project, site)
    site.as_owner("DROP TABLE days")
    with pytest.raises(UnknownTable, match=r"public\.days"):
        printed(project, site)


def test_script_drops_a_check_again_where_values_do_not_hold(site: Site, project: Project) -> None:
    site.as_owner("INSERT INTO days VALUES (2, 'infinity')")
    warnings: list[str | None] = []
    with site.database.connect() as connection:
        connection.add_notice_handler(lambda notice: warnings.append(notice.message_primary))
        connection.execute(sql.SQL(printed(project, site)))
    assert any("holds values that cannot be mirrored" in str(warning) for warning in warnings)
    site.as_owner("UPDATE days SET id = 3 WHERE id = 2")  # of a row that the CHECK would refuse
