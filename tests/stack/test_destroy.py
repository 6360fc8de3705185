"""`destroy`: what the product made in Postgres, Kafka and Connect is gone, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from psycopg import sql
from pydantic import SecretStr

from cdc_views.cli import consent
from cdc_views.cli.main import main
from cdc_views.config import LogSettings, Settings, SourceSettings
from cdc_views.engine.capture.start import start_capture
from cdc_views.engine.service.destroy import destroy
from cdc_views.errors import BadConfig, PreflightFailed
from cdc_views.source import removal
from cdc_views.source.checks.fixes import fix_source
from cdc_views.source.checks.preflight import check_source
from cdc_views.source.connection import connect
from cdc_views.source.removal import remove_from_source
from cdc_views.source.service.marker import Marker
from cdc_views.stack.services.postgres import Postgres
from tests.fix_postgres import Database, new_database
from tests.fix_project import ACCOUNTS, Project

# What Postgres keeps about a relation's rows, and hints that it never takes back.
UNSTABLE = ("relpages", "reltuples", "relallvisible", "relallfrozen", "relfrozenxid", "relminmxid", "relhastriggers",
            "relhassubclass", "relhasindex", "relhasrules")  # fmt: skip
TABLES = (
    "CREATE TABLE orders (id int PRIMARY KEY, note text, span interval)",
    "CREATE TABLE events (id int, at date, note text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)",
    "CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
    "CREATE TABLE codes (code text NOT NULL, note text, id int PRIMARY KEY)",
    "CREATE UNIQUE INDEX codes_code ON codes (code)",
    "ALTER TABLE codes REPLICA IDENTITY USING INDEX codes_code",
    "CREATE FUNCTION mine() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    "CREATE TRIGGER mine AFTER TRUNCATE ON orders FOR EACH STATEMENT EXECUTE FUNCTION mine()",
    "ALTER TABLE orders ADD CONSTRAINT cdcviews CHECK (id > 0)",
    "CREATE PUBLICATION everything FOR ALL TABLES",
)


def schema_of(database: Database) -> dict[str, set[str]]:
    """Every row of every catalog: more than `pg_dump --schema-only` writes, and no client of the server's version."""
    catalogs = database.execute(
        "SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind = 'r'"
        " AND NOT c.relisshared AND c.relname NOT LIKE 'pg_statistic%'"
    )
    unstable = ", ".join(f"'{name}'" for name in UNSTABLE)
    with database.connect() as connection:
        return {
            name: {
                row
                for (row,) in connection.execute(
                    sql.SQL(f"SELECT (to_jsonb(c) - ARRAY[{unstable}])::text FROM {{}} c").format(sql.Identifier(name))
                )
            }
            for (name,) in catalogs
        }


def settings(database: Database, project: str, *tables: str) -> Settings:
    """Settings of a project whose log is nowhere."""
    source = {"dsn": SecretStr(database.dsn), "tables": tables, "slot": project, "publication": project}
    return Settings(
        source=SourceSettings.model_validate(source),
        log=LogSettings(bootstrap_servers="nowhere:1", connect_url="http://nowhere:1"),
    )


def fix(database: Database, project: str, *tables: str) -> None:
    """Prepare the source for a project, as `check --fix` does, and write a marker."""
    of = settings(database, project, *tables)
    fix_source(of, check_source(of))
    with database.connect() as connection:
        Marker(connection, of.source, "writer").touch()


def remove(database: Database, project: str) -> Sequence[str]:
    """Remove a project from the source; returns the lines that `destroy` prints."""
    with database.connect() as connection:
        return [str(each) for each in remove_from_source(connection, project, [project])]


@pytest.fixture
def tables(database: Database) -> Database:
    """A database with tables of its owner's making."""
    database.execute(*TABLES)
    return database


def test_removal_leaves_the_catalog_as_it_was_before_fix(tables: Database) -> None:
    before = schema_of(tables)
    fix(tables, "one", "orders", "events", "codes")
    assert schema_of(tables) != before
    removed = remove(tables, "one")
    assert schema_of(tables) == before
    assert {
        'removed schema "cdc_views"', 'removed publication "one"',
        'removed trigger "cdc_views_truncate" on "public.orders"',
        'removed replica identity FULL of "public.codes", which is USING INDEX "codes_code" again',
    } <= set(removed)  # fmt: skip
    assert remove(tables, "one") == []


def test_removal_of_one_of_two_projects_leaves_what_the_other_needs(tables: Database) -> None:
    fix(tables, "one", "orders")
    between = schema_of(tables)
    fix(tables, "two", "orders", "codes")
    remove(tables, "two")
    assert [f for f in check_source(settings(tables, "one", "orders")) if f.severity == "error"] == []
    assert tables.execute("SELECT id FROM cdc_views.heartbeat") == [("marker one",)]
    assert schema_of(tables) == between


def test_removal_by_a_role_that_may_not_removes_nothing(tables: Database) -> None:
    fix(tables, "one", "orders")
    role = f"{tables.name}_guest"
    tables.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'guest'", f"GRANT USAGE ON SCHEMA cdc_views TO {role}",
                   f"GRANT SELECT, DELETE ON ALL TABLES IN SCHEMA cdc_views TO {role}")  # fmt: skip
    before = schema_of(tables)
    with (
        connect(tables.as_role(role, "guest")) as connection,
        pytest.raises(PreflightFailed, match="may not remove this from the source"),
    ):
        remove_from_source(connection, "one", ["one"])
    assert schema_of(tables) == before
    tables.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_removal_blocks_the_application_for_a_few_seconds_at_most(
    tables: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "LOCK_TIMEOUT_S", 1)
    fix(tables, "one", "orders", "events", "codes")
    before = schema_of(tables)
    with tables.connect() as report, report.transaction():
        report.execute("SELECT count(*) FROM orders")
        with pytest.raises(PreflightFailed, match="not locked within 1 s: other sessions use them"):
            remove(tables, "one")
        assert schema_of(tables) == before
    remove(tables, "one")
    assert "cdc_views" not in str(schema_of(tables))


def test_removal_of_a_project_of_before_identities_were_recorded_says_so(tables: Database) -> None:
    fix(tables, "one", "orders")
    tables.execute("DROP TABLE cdc_views.former_identities")
    assert any(line.startswith('kept: replica identity of "public.orders"') for line in remove(tables, "one"))


def test_destroy_removes_what_is_in_postgres_kafka_and_connect(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROJECT_DSN", project.dsn)
    before, world = schema_of(project.database), project.world()
    project.capture.start()
    assert project.world() != world
    monkeypatch.setattr(consent, "has_terminal", lambda: True)
    done = CliRunner().invoke(main, ["-C", str(project.folder), "destroy"], input="n\n")
    assert (done.exit_code, project.world().slots) == (1, world.slots | {project.database.name})
    done = CliRunner().invoke(main, ["-C", str(project.folder), "destroy", "--yes"])
    assert done.exit_code == 0, done.output
    assert f'removed connector "{project.database.name}" and its stored offsets' in done.stdout
    assert project.world() == world
    assert schema_of(project.database) == before
    assert project.capture.connect.stored_commit(project.database.name, project.database.name) is None


@pytest.mark.proves(
    wrong="Two projects have the same `log.connector`, or the same topics and slot, in one Connect, Kafka or Postgres",
    seen="`BadConfig` at the start of the second; `destroy` and `reset` of it keep what is the other's, and say so",
    do="give it a `log.connector`, a `log.topic_prefix` and a `source.slot` of its own",
)
def test_project_with_the_names_of_another_is_refused_and_removes_nothing_of_it(
    project: Project, postgres: Postgres, tmp_path: Path
) -> None:
    project.capture.start()
    ours, world = project.capture.settings, project.world()
    with new_database(postgres.dsn) as database:
        database.execute(*ACCOUNTS)
        source = ours.source.model_copy(update={"dsn": SecretStr(database.dsn)})
        theirs = ours.model_copy(update={"source": source, "warehouse": tmp_path / "theirs"})
        theirs.warehouse.mkdir()
        fix_source(theirs, [each for each in check_source(theirs) if each.severity == "error"])
        with pytest.raises(BadConfig, match=f'"{ours.log.connector}" is that of another project: database.dbname is'):
            start_capture(theirs, lambda progress: None)
        told: list[str] = []
        assert destroy(theirs, told.append) == []
        kept = [line.partition(", which is that of another project")[0] for line in told if " another project" in line]
        assert [line.split('"')[0] for line in kept] == ["kept: connector ", "kept: replication slot ", "kept: topics "]
    assert project.world() == world
    project.capture.connect.wait_running(ours.log.connector)


def test_slot_that_was_there_before_the_first_start_is_refused_until_it_is_removed(
    project: Project, tmp_path: Path
) -> None:
    settings = project.capture.settings.model_copy(update={"warehouse": tmp_path})
    fix_source(settings, check_source(settings))
    project.database.execute(f"SELECT pg_create_logical_replication_slot('{settings.source.slot}', 'pgoutput')")
    with pytest.raises(BadConfig, match=f'slot "{settings.source.slot}" exists, and connector "[^"]*", which would'):
        start_capture(settings, lambda progress: None)
    assert destroy(settings, lambda line: None) == []
    fix_source(settings, check_source(settings))
    start_capture(settings, lambda progress: None)
