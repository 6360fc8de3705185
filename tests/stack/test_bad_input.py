"""What a user meets who gives something that cannot be used: a name, a hint, an exit status, and nothing changed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from cdc_views.base.rendering import FOR_SQL_OF_USERS
from cdc_views.cli import consent
from cdc_views.cli.main import main
from cdc_views.errors import NothingPublished
from cdc_views.source.catalog import read_identity
from cdc_views.source.checks.fixes import fix_source
from cdc_views.source.checks.preflight import check_source
from cdc_views.source.connection import connect
from cdc_views.stack.pins import pins
from cdc_views.store.control.control_log import ControlLog
from tests.fix_disk import SmallDisk
from tests.fix_project import ACCOUNTS, BALANCES, Project, assert_refused, files_below

FEW_PAGES = 1000
CHECK_FIX = '"cdc-views check --fix" fixes what can be fixed'


@pytest.fixture
def prepared(project: Project) -> Project:
    """Postgres is as a run wants it; nothing else is made yet."""
    fix_source(project.capture.settings, check_source(project.capture.settings))
    return project


@pytest.mark.parametrize(("part", "value"), [("password", "wrong-secret"), ("port", "1"), ("dbname", "nowhere")])
def test_run_with_a_wrong_dsn_is_refused_without_its_password(project: Project, part: str, value: str) -> None:
    dsn = psycopg.conninfo.make_conninfo(project.database.dsn, **{part: value})
    project.configure(dsn)
    shown = assert_refused(project, "SourceUnreachable", 2, "", "run")
    assert str(psycopg.conninfo.conninfo_to_dict(dsn)["password"]) not in shown


def test_run_on_a_server_without_logical_wal_is_refused(project: Project, not_logical: str) -> None:
    with connect(not_logical, pinned=FOR_SQL_OF_USERS) as connection:
        for statement in ACCOUNTS:
            connection.execute(statement.encode())
    project.configure(not_logical)
    shown = assert_refused(project, "PreflightFailed", 2, "ALTER SYSTEM SET wal_level = 'logical'", "run")
    assert 'server setting wal_level: is "replica", wanted "logical"' in shown


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("", "has no primary key"),
        (", ADD PRIMARY KEY (id) DEFERRABLE", "deferrable primary key"),
    ],
)
def test_run_of_a_table_whose_key_cannot_be_used_is_refused(prepared: Project, change: str, problem: str) -> None:
    prepared.database.execute(f"ALTER TABLE accounts DROP CONSTRAINT accounts_pkey{change}")
    shown = assert_refused(prepared, "PreflightFailed", 2, CHECK_FIX, "run")
    assert '"public.accounts"' in shown
    assert problem in shown


@pytest.mark.proves(
    wrong="A captured column has a type or a name that a mirror cannot have",
    seen="`PreflightFailed` with the column and the reason",
    do="exclude the column (`source.exclude_columns`), or change its type; [types.md](types.md) lists the types",
)
@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ("place varbit(8)", 'column "place" has type "varbit", whose leading zeros Debezium drops'),
        ('"a place" int', 'column "a place" has a character that Delta does not allow in a name'),
    ],
)
def test_run_of_a_column_that_no_mirror_can_have_is_refused(prepared: Project, column: str, problem: str) -> None:
    prepared.database.execute(f"ALTER TABLE accounts ADD COLUMN {column}")
    shown = assert_refused(prepared, "PreflightFailed", 2, "", "run")
    assert problem in shown


@pytest.fixture
def poor_dsn(prepared: Project) -> Iterator[str]:
    """The DSN of a role that may only connect."""
    role = f"{prepared.database.name}_poor"
    prepared.database.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'poor-secret'")
    yield prepared.database.as_role(role, "poor-secret")
    prepared.database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


@pytest.mark.proves(
    wrong="The role of `source.dsn` lacks rights",
    seen="`PreflightFailed` with each missing right",
    do="let a DBA run the script of `cdc-views check --print-sql`",
)
def test_run_by_a_role_without_rights_is_refused(prepared: Project, poor_dsn: str) -> None:
    prepared.configure(poor_dsn)
    shown = assert_refused(prepared, "PreflightFailed", 2, "REPLICATION", "run")
    assert "may not replicate" in shown
    assert "the role may not read it" in shown
    assert "poor-secret" not in shown


def written(project: Project) -> list[tuple[object, ...]]:
    """What `check --fix` writes to a source."""
    return project.database.execute(
        "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = 'cdc_views'), (SELECT count(*) FROM pg_publication),"
        " (SELECT array_agg(relreplident) FROM pg_class WHERE relname = 'accounts'),"
        " (SELECT count(*) FROM pg_trigger), (SELECT count(*) FROM pg_constraint),"
        " (SELECT count(*) FROM pg_event_trigger)"
    )


def test_check_fix_by_a_role_without_rights_is_refused(project: Project) -> None:
    role, before = f"{project.database.name}_poor", written(project)
    project.database.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'poor-secret'")
    project.configure(project.database.as_role(role, "poor-secret"))
    shown = assert_refused(project, "PreflightFailed", 2, "REPLICATION", "check", "--fix", "--yes")
    project.database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
    assert "may not replicate" in shown
    assert written(project) == before


def add_refused_column(project: Project) -> None:
    project.database.execute("ALTER TABLE accounts ADD flags varbit(8)")


def add_infinite_interval(project: Project) -> None:
    project.database.execute("ALTER TABLE accounts ADD span interval DEFAULT 'infinity'")


def break_view(project: Project) -> None:
    project.view(BALANCES.replace("FROM accounts", "FROM acounts"))


def order_by_a_text(project: Project) -> None:
    project.database.execute("ALTER TABLE accounts ADD worth numeric")
    project.view("CREATE MATERIALIZED VIEW most AS SELECT max(worth) AS most FROM accounts", "most")


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (add_refused_column, 'column "flags" has type "varbit"'),
        (add_infinite_interval, 'column "span" holds values that cannot be mirrored'),
        (break_view, "balances.sql:3:6"),
        (order_by_a_text, 'column "worth" of "public.accounts" is numeric in Postgres and text here'),
    ],
)
def test_check_fix_writes_nothing_while_something_else_is_wrong(
    project: Project, spoil: Callable[[Project], None], problem: str
) -> None:
    project.database.execute("ALTER TABLE accounts REPLICA IDENTITY DEFAULT", "ALTER TABLE accounts ADD note text")
    spoil(project)
    before = written(project)
    shown = assert_refused(project, "PreflightFailed", 2, "nothing was written", "check", "--fix", "--yes")
    assert problem in shown
    assert written(project) == before
    if spoil not in (add_infinite_interval, order_by_a_text):  # which only --fix looks for while others remain
        assert problem in project.here("check").stdout


@pytest.mark.parametrize(
    "setting",
    [
        "log.connect_url=http://127.0.0.1:1",
        # Kafka's client waits for half a minute.
        pytest.param("log.bootstrap_servers=127.0.0.1:1", marks=pytest.mark.nightly),
    ],
)
def test_check_fix_without_kafka_or_connect_writes_nothing(project: Project, setting: str) -> None:
    before = written(project)
    assert_refused(project, "PreflightFailed", 2, "nothing was written", "--set", setting, "check", "--fix", "--yes")
    assert written(project) == before


@pytest.mark.proves(
    wrong="A command that asks before it changes something is run by a script",
    seen="`NotConfirmed`; nothing was changed",
    do="read the SQL that `check --fix` shows, then add `--yes`",
)
def test_check_fix_shows_its_sql_and_runs_nothing_without_an_answer(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROJECT_DSN", project.dsn)
    arguments, before = ["-C", str(project.folder), "check", "--fix"], written(project)
    shown = CliRunner().invoke(main, arguments, input="y\n")  # which is no terminal
    assert (shown.exit_code, written(project)) == (2, before)
    assert "NotConfirmed: not confirmed, since there is no terminal" in shown.stderr
    assert "SET lock_timeout = '5s';\n" in shown.stderr
    assert "-- publication: publication " in shown.stderr
    assert "CREATE PUBLICATION " in shown.stderr
    monkeypatch.setattr(consent, "has_terminal", lambda: True)
    shown = CliRunner().invoke(main, arguments, input="n\n")
    assert (shown.exit_code, written(project)) == (1, before)
    assert "Aborted!" in shown.stderr
    shown = CliRunner().invoke(main, arguments, input="y\n")
    assert shown.exit_code == 0, shown.stderr
    assert written(project) != before


def test_check_fix_of_a_table_in_use_ends_soon_and_names_it(project: Project) -> None:
    project.database.execute("ALTER TABLE accounts ADD note text", "ALTER TABLE accounts REPLICA IDENTITY DEFAULT")
    with project.database.connect() as other, other.transaction():
        other.execute("SELECT FROM accounts")
        done = project.here("check", "--fix", "--yes")
    assert done.returncode == 2, done.stderr
    assert 'PreflightFailed: table "public.accounts": replica identity' in done.stderr
    assert "not locked within 5 s" in done.stderr
    assert "fixed: service tables: " in done.stderr
    assert project.here("check", "--fix", "--yes").returncode == 0


@pytest.mark.proves(
    wrong="A view file has a typo, an unknown option, or a query that cannot be kept exactly",
    seen="`BadView` or `UnsupportedView` with file, line and column; nothing was created",
    do="fix the view file; [views.md](views.md) lists what views may contain",
)
@pytest.mark.parametrize(
    ("right", "wrong", "error", "place"),
    [
        ("FROM accounts", "FROM acounts", "BadView", "3:6"),
        (" AS\n", " WITH (kind = 'sqll') AS\n", "BadView", "1:"),
        (" AS\n", " WITH (knid = 'sql') AS\n", "BadView", "1:"),
        ("GROUP BY", "GROUP BY (", "BadView", ""),
        ("sum(balance)", "rand()", "UnsupportedView", "2:26"),
    ],
)
def test_run_with_a_typo_in_a_view_is_refused_before_anything_is_made(
    prepared: Project, right: str, wrong: str, error: str, place: str
) -> None:
    prepared.view(BALANCES.replace(right, wrong))
    shown = assert_refused(prepared, error, 2, "", "run")
    assert f"{error}: {prepared.folder}/views/balances.sql:{place}" in shown


@pytest.mark.parametrize("command", [("run",), ("check", "--fix", "--yes")])
def test_command_without_a_folder_for_its_warehouse_is_refused_before_anything_is_written(
    project: Project, command: tuple[str, ...]
) -> None:
    before = written(project)
    project.warehouse.write_text("")
    assert_refused(project, "WarehouseUnusable", 1, "something else is in its place", *command)
    assert written(project) == before


@pytest.mark.proves(
    wrong="A table is added to `source.tables` of an existing warehouse",
    seen="`BadConfig` with the table; nothing was created",
    do="run `cdc-views reset`, which takes the table in, or remove it from `source.tables`",
)
def test_run_of_a_table_that_its_warehouse_lacks_is_refused_before_anything_is_made(prepared: Project) -> None:
    with prepared.database.connect() as connection:
        facts = asdict(read_identity(connection)) | {"slot": prepared.capture.settings.source.slot}
    detail = {"source": {**facts, "topics": {}, "tables": {}}}
    ControlLog.open(prepared.warehouse, "another engine").take_over("generation", detail)
    shown = assert_refused(prepared, "BadConfig", 2, "", "run")
    assert 'table "public.accounts" was not in this project when its warehouse was created' in shown
    assert "nothing was written" in assert_refused(prepared, "PreflightFailed", 2, "", "check", "--fix", "--yes")


def test_run_with_an_unknown_column_in_a_view_is_refused_by_spark(prepared: Project) -> None:
    prepared.capture.start()
    prepared.view(BALANCES.replace("sum(balance)", "sum(blance)"))
    before = prepared.world()
    done = prepared.here("run", "--once")
    assert done.returncode == 2, done.stderr
    assert f"BadView: {prepared.folder}/views/balances.sql:2:" in done.stderr
    assert "blance" in done.stderr
    assert "\nhint: " in done.stderr
    assert "Traceback" not in done.stderr
    after = prepared.world()
    assert (after.topics, after.slots, after.connectors) == (before.topics, before.slots, before.connectors)
    with pytest.raises(NothingPublished):
        prepared.published()


@pytest.mark.proves(
    wrong="A port of the local stack belongs to another process",
    seen="`PortInUse` with the port; nothing was started",
    do="stop that process, or choose another port (`cdc-views up --port NAME=PORT`)",
)
@pytest.mark.parametrize("name", ["postgres", "kafka", "connect"])
def test_up_with_a_port_in_use_is_refused(project: Project, state_folder: Path, name: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        wanted = ("up", "--port", f"{name}={port}")
        shown = assert_refused(project, "PortInUse", 1, "stop that process", *wanted, CDC_VIEWS_STATE=str(state_folder))
    assert f"port {port} for {name} belongs to another process" in shown
    assert set(files_below(state_folder)) == {"lock"}


@pytest.mark.proves(
    wrong="Java is missing or too old",
    seen="`JavaMissing`",
    do="install Java 17 or later",
)
@pytest.mark.parametrize("name", ["run", "up"])
def test_command_without_java_is_refused(prepared: Project, state_folder: Path, tmp_path: Path, name: str) -> None:
    nowhere = {"PATH": str(tmp_path), "JAVA_HOME": "", "CDC_VIEWS_STATE": str(state_folder)}
    shown = assert_refused(prepared, "JavaMissing", 2, "install Java 17 or later", name, **nowhere)
    assert "no java on PATH" in shown
    assert files_below(state_folder) == {}


@pytest.mark.proves(
    wrong="A pinned file cannot be downloaded, or has another checksum",
    seen="`DownloadFailed`; the file was not kept",
    do="try again; check the mirror or proxy that serves the files",
)
@pytest.mark.parametrize("name", ["run", "up"])
def test_command_with_a_broken_download_is_refused(
    prepared: Project, state_folder: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "files").mkdir()
    for pin in pins():
        (tmp_path / "files" / pin.file_name).write_bytes(b"broken")
    broken = {"CDC_VIEWS_FILES": str(tmp_path / "files"), "CDC_VIEWS_CACHE": str(state_folder / "cache"),
              "CDC_VIEWS_STATE": str(state_folder / "state")}  # fmt: skip
    shown = assert_refused(prepared, "DownloadFailed", 1, "the file was not kept", name, **broken)
    assert "is not the pinned file: found 6 bytes" in shown
    assert set(files_below(state_folder)) <= {"cache/lock", "state/lock"}


def test_run_on_a_full_disk_goes_on_once_there_is_space(prepared: Project, small_disk: SmallDisk) -> None:
    small_disk.fill(FEW_PAGES)
    (small_disk.folder / "warehouse").mkdir()
    prepared.warehouse.symlink_to(small_disk.folder / "warehouse")
    prepared.database.execute(
        "ALTER TABLE accounts ALTER holder TYPE varchar(640)",
        "INSERT INTO accounts SELECT g, (SELECT string_agg(md5(g::text || p), '') FROM generate_series(1, 20) p), g"
        " FROM generate_series(10, 20000) g",
    )
    run = ("--set", "log.bulk_offsets=1000", "run", "--until-caught-up")  # so that Spark's tasks write the rows
    full = prepared.here(*run)
    assert full.returncode == 1, full.stderr
    assert "DiskFull: no space left on the device of " in full.stderr
    assert "\nhint: free some space" in full.stderr
    with pytest.raises(NothingPublished):
        prepared.published()
    small_disk.free()
    again = prepared.here(*run)
    assert again.returncode == 0, again.stderr
    prepared.assert_equal_to_postgres()
