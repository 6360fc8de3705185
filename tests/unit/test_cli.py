"""The command line without services: help, settings, errors, and reading a warehouse."""

from __future__ import annotations

import csv
import errno
import importlib
import inspect
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Self, cast
from unittest.mock import MagicMock

import click
import psycopg
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake
from psycopg.pq import TransactionStatus

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName, distinct_names
from cdc_views.cli import consent, output
from cdc_views.cli.main import COMMANDS, main
from cdc_views.cli.readers.view_work import last_epochs
from cdc_views.cli.setup import sql
from cdc_views.config import FILE_NAME, STACK_FILE, load_settings
from cdc_views.demo.programs import Program
from cdc_views.engine.service.holder import ENGINE, LOCK_FOLDER
from cdc_views.engine.service.lock import WarehouseLock, only_run
from cdc_views.engine.service.supervisor import Supervisor
from cdc_views.errors import NotConfirmed, SlotChanged
from cdc_views.host import locations
from cdc_views.host.locations import state_folder
from cdc_views.serve.changes import lines as change_lines
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.watch.status import SHOWN, Status
from cdc_views.store.control.control_log import FOLDER, ControlLog, TableVersion, read_control
from cdc_views.store.delta_log import entry_file, newest_version
from cdc_views.store.warehouse import TableSpec
from cdc_views.views.definition import read_views
from cdc_views.views.kinds.options import Ordered
from cdc_views.views.kinds.timeline import TimelineRecord
from tests.logged import messages
from tests.page_blocks import block
from tests.unit.published import ORDERS, Published

pytestmark = pytest.mark.usefixtures("without_fsync")

ROOT = Path(__file__).parents[2]
SETTINGS = """\
source: {dsn: "postgresql://app:very-secret@nowhere:1/app", tables: [public.orders]}
log: {bootstrap_servers: "nowhere:1", connect_url: "http://nowhere:1"}
"""
MANIFEST = {
    "public.orders": TableVersion("mirrors/orders", 0, "live", "mirror"),
    "totals": TableVersion("views/totals", 0, "live", "view"),
    "ratio": TableVersion("views/ratio", 0, "failed", "view"),
}
WAYS = {"commit": {"public.orders": "direct", "totals": "spark"}, "read": {"public.orders": "driver"}}
# `commits` is missing, as a field that a later version has added.
WORK = {"keys_looked_up": 2, "rows_found": 7, "rows_recomputed": 3, "rows_written": 1, "milliseconds": 61}
LARGE = {"why_full": "large change"}


def command(name: str) -> click.Command:
    found = importlib.import_module(f"cdc_views.cli.{COMMANDS[name]}.{name}")
    return getattr(found, name)  # type: ignore[no-any-return]


def help_lines(command: click.Command) -> list[str]:
    return inspect.cleandoc(command.help or "").splitlines()


def example(name: str) -> list[str]:
    """The words of the command's example."""
    [line] = [line for line in help_lines(command(name)) if line.startswith("Example: ")]
    return shlex.split(line.removeprefix("Example: "))


def cdc_views(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CDC_VIEWS_STATE", str(tmp_path / "no-stack"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without a warehouse."""
    (tmp_path / FILE_NAME).write_text(SETTINGS)
    return tmp_path


@pytest.fixture
def published(project: Path) -> Path:
    """A project with one published epoch (a mirror, a view, a failed view) and an intent above it."""
    warehouse = project / "warehouse"
    orders = pa.table({"id": [1, 2], "_cv_hash": ["a", "b"], "note": ["[bold]x[/y]", None]})
    write_deltalake(str(warehouse / "mirrors/orders"), orders)
    for view in ("totals", "ratio"):
        total = pa.table({"total": pa.array([Decimal("10.50")], pa.decimal128(12, 2))})
        write_deltalake(str(warehouse / "views" / view), total)
    control = ControlLog.open(warehouse, "engine")
    control.take_over()
    control.append(
        kind="publish", epoch=1, attempt=control.new_attempt(), position=Lsn.parse("0/16"), tables=MANIFEST,
        committed_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        detail={"changes": {"public.orders": 2}, "failures": {"ratio": "DIVIDE_BY_ZERO"}, "ways": WAYS,
                "view_work": {"totals": WORK, "ratio": WORK}},
    )  # fmt: skip
    control.append(kind="intent", epoch=2, attempt=control.new_attempt(), position=Lsn.parse("0/20"))
    return project


# Help


@pytest.mark.parametrize("name", COMMANDS)
def test_command_help_begins_with_one_line(name: str) -> None:
    shown = cdc_views(name, "--help")
    first = help_lines(command(name))[0]
    assert shown.exit_code == 0
    assert first.endswith(".")
    assert first in " ".join(shown.stdout.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_command_example_is_a_call_of_it(name: str) -> None:
    program, called, *arguments = example(name)
    assert (program, called) == ("cdc-views", name)
    # Parses and does not run: a wrong option or a missing argument is a UsageError.
    command(name).make_context(name, arguments).close()


def test_list_of_commands_cuts_no_line_off() -> None:
    assert "..." not in CliRunner().invoke(main, ["--help"], terminal_width=100).stdout.partition("Commands:")[2]


def test_group_example_calls_known_commands() -> None:
    line = next(line for line in help_lines(main) if line.startswith("Example: "))
    calls = [shlex.split(part) for part in line.removeprefix("Example: ").split("&&")]
    assert {call[1] for call in calls if call[0] == "cdc-views"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_page_of_commands_has_the_help_line(name: str) -> None:
    first = help_lines(command(name))[0]
    assert f"| `{name}` | {first} |" in (ROOT / "docs" / "cli.md").read_text()


def test_command_that_does_not_exist_is_a_usage_error() -> None:
    shown = cdc_views("frobnicate")
    assert shown.exit_code == 2
    assert "frobnicate" in shown.stderr


def test_sql_command_names_columns_of_one_name_apart() -> None:
    assert distinct_names(["a", "b", "a"]) == ["a", "b", "a_1"]
    assert distinct_names(["a", "a", "a_1"]) == ["a", "a_1", "a_1_1"]


class ScriptedConnection:
    """A connection in one state of a transaction, whose only answer is `rows` or an error."""

    def __init__(self, status: TransactionStatus, rows: Iterator[tuple[object, ...]], error: Exception | None) -> None:
        self.info = SimpleNamespace(transaction_status=status)
        self.called: list[str] = []
        self._rows, self._error = rows, error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.called.append("commit")

    def __getattr__(self, name: str) -> Callable[[], None]:
        return lambda: self.called.append(name)

    def execute(self, _: bytes) -> MagicMock:
        if self._error is not None:
            raise self._error
        cursor = MagicMock(description=[SimpleNamespace(name="a")], nextset=lambda: None)
        cursor.__iter__.return_value = self._rows
        return cursor


def sql_on(
    monkeypatch: pytest.MonkeyPatch,
    project: Path,
    status: TransactionStatus = TransactionStatus.IDLE,
    rows: Iterable[tuple[object, ...]] = (),
    error: Exception | None = None,
) -> tuple[Result, list[str]]:
    connection = ScriptedConnection(status, iter(rows), error)
    monkeypatch.setattr(sql, "connect", lambda dsn, pinned: connection)
    return cdc_views("-C", project, "sql", "SELECT 1"), connection.called


@pytest.mark.parametrize("status", [TransactionStatus.INTRANS, TransactionStatus.INERROR])
def test_transaction_that_sql_leaves_open_is_rolled_back(
    project: Path, monkeypatch: pytest.MonkeyPatch, status: TransactionStatus
) -> None:
    shown, called = sql_on(monkeypatch, project, status)
    assert (shown.exit_code, called[0]) == (1, "rollback")
    assert shown.stderr == "rolled back: the transaction was left open\n"
    assert sql_on(monkeypatch, project)[0].exit_code == 0


def test_value_that_sql_cannot_show_is_a_bad_query_without_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> Iterator[tuple[object, ...]]:
        raise psycopg.DataError("timestamp too large (after year 10K): 'secret'")
        yield ()

    shown, _ = sql_on(monkeypatch, project, rows=rows())
    assert shown.exit_code == 2
    assert shown.stderr.startswith("BadQuery: a value of the answer cannot be shown\nhint: cast ")


def test_copy_from_the_client_ends_sql(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = psycopg.ProgrammingError("COPY cannot be used with this method")
    shown, called = sql_on(monkeypatch, project, TransactionStatus.ACTIVE, error=error)
    assert (shown.exit_code, called[0]) == (2, "close")
    assert "COPY FROM STDIN and COPY TO STDOUT are not supported" in shown.stderr
    shown, _ = sql_on(monkeypatch, project, error=error)
    assert shown.stderr == "BadQuery: COPY cannot be used with this method\n"


def test_dsn_with_a_bad_timeout_is_unreachable(project: Path) -> None:
    shown = cdc_views("-C", project, "--set", "source.dsn=host=nowhere connect_timeout=abc", "sql", "SELECT 1")
    assert shown.exit_code == 2
    assert "SourceUnreachable: cannot connect to " in shown.stderr


@pytest.mark.parametrize("answer", [None, "n\n", "y\n"])
def test_question_is_asked_at_a_terminal_only(monkeypatch: pytest.MonkeyPatch, answer: str | None) -> None:
    @click.command()
    @click.option("--yes", is_flag=True)
    def ask(yes: bool) -> None:
        consent.require_consent("really?", yes=yes)

    monkeypatch.setattr(consent, "has_terminal", lambda: answer is not None)
    shown = CliRunner().invoke(ask, input=answer)
    assert shown.exit_code == (0 if answer == "y\n" else 1)
    assert isinstance(shown.exception, NotConfirmed) is (answer is None)
    assert CliRunner().invoke(ask, ["--yes"]).exit_code == 0


def test_control_characters_of_a_value_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_rows([{"a\x9b": "\x1b[2J\x07x"}], ["a\x9b"], None)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == ["a\\x9b", "\\x1b[2J\\x07x"]


def test_standard_streams_may_be_closed_or_lack_characters(published: Path) -> None:
    command = f"{sys.executable} -m cdc_views.cli.main -C {published}"

    def run(words: str, **environment: str) -> tuple[int, bytes, bytes]:
        done = subprocess.run(f"{command} {words}", shell=True, capture_output=True, env={**os.environ, **environment})
        return done.returncode, done.stdout, done.stderr

    status, _, shown = run("destroy <&-")
    assert (status, shown.partition(b":")[0]) == (2, b"NotConfirmed")
    assert run("epochs --csv >&-")[0] == 0
    assert run("epochs 2>&-")[::2] == (0, b"")
    chinese = "query \"SELECT '\u4e2d' AS x\" --csv"
    assert run(chinese, PYTHONIOENCODING="latin-1")[:2] == (0, b"x\n\\u4e2d\n")


def test_work_goes_on_when_nobody_reads_its_lines() -> None:
    read, write = os.pipe()
    os.close(read)
    script = "from cdc_views.cli.output import tell\ntell('a')\ntell('b')\nraise SystemExit(7)"
    done = subprocess.run([sys.executable, "-c", script], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (7, "")


def test_yes_of_check_without_fix_is_a_usage_error(project: Path) -> None:
    shown = cdc_views("-C", project, "check", "--yes")
    assert shown.exit_code == 2
    assert "--yes is for --fix" in shown.stderr


# init


def test_init_makes_settings_and_a_view_that_are_valid(tmp_path: Path) -> None:
    shown = cdc_views("init", tmp_path / "shop")
    assert shown.exit_code == 0, shown.stderr
    addresses = {"source.dsn": "x", "log.bootstrap_servers": "x", "log.connect_url": "http://x"}
    settings = load_settings(tmp_path / "shop", addresses)
    assert [str(table) for table in settings.source.tables] == ["public.accounts"]
    assert [view.name for view in read_views(settings.views)] == ["balances"]


@pytest.mark.parametrize("there", [FILE_NAME, "views/balances.sql"])
def test_init_where_a_file_is_already_changes_nothing(tmp_path: Path, there: str) -> None:
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / there).write_text("mine")
    shown = cdc_views("init", tmp_path)
    assert shown.exit_code == 2
    assert shown.stderr == f'BadConfig: "{tmp_path / there}" exists already\nhint: choose another folder\n'
    files = {str(file.relative_to(tmp_path)): file.read_text() for file in tmp_path.rglob("*") if file.is_file()}
    assert files == {there: "mine"}


def test_init_below_a_file_is_bad_config(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shown = cdc_views("init", tmp_path / "file" / "shop")
    assert shown.exit_code == 2
    assert shown.stderr.startswith("BadConfig: ")


def test_init_below_a_folder_that_is_refused_is_bad_config(tmp_path: Path) -> None:
    shown = cdc_views("init", tmp_path / ("n" * 300))
    assert shown.exit_code == 2
    assert shown.stderr.startswith("BadConfig: ")


def test_init_is_in_the_folder_of_the_project(tmp_path: Path) -> None:
    assert cdc_views("-C", tmp_path, "init", "shop").exit_code == 0
    assert (tmp_path / "shop" / FILE_NAME).is_file()
    assert cdc_views("-C", tmp_path, "init").exit_code == 0
    assert (tmp_path / FILE_NAME).is_file()


# Settings


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (SETTINGS + "warehuose: here\n", "warehuose"),
        (SETTINGS.replace("tables:", "slott: x, tables:"), "source.slott"),
        ("source:\nlog:\n", "source.dsn"),
        ("source: 5\n", '"source"'),
        ("source: [\n", "is not YAML"),
        ("- a\n", "holds a list"),
    ],
)
def test_settings_that_are_not_valid_are_named(project: Path, settings: str, named: str) -> None:
    (project / FILE_NAME).write_text(settings)
    shown = cdc_views("-C", project, "check")
    assert shown.exit_code == 2
    assert shown.stderr.startswith("BadConfig: ")
    assert named in shown.stderr
    assert "very-secret" not in shown.output


@pytest.mark.parametrize("override", ["nosuch=1", "source.nosuch=1", "warehouse.nosuch=1"])
@pytest.mark.parametrize("name", ["check", "status"])
def test_set_of_an_unknown_setting_is_refused(published: Path, override: str, name: str) -> None:
    shown = cdc_views("-C", published, "--set", override, name)
    assert shown.exit_code == 2
    assert shown.stderr.startswith("BadConfig: ")
    assert override.partition(".nosuch")[0].removesuffix("=1") in shown.stderr


def test_set_without_a_value_is_a_usage_error(project: Path) -> None:
    shown = cdc_views("-C", project, "--set", "warehouse", "status")
    assert shown.exit_code == 2
    assert '"warehouse" is not NAME=VALUE' in shown.stderr


def test_set_wins_over_environment_and_file(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_VIEWS_SOURCE__DSN", "postgresql://environment:1/app?connect_timeout=1")
    shown = cdc_views("-C", published, "--set", "source.dsn=host=127.0.0.1 port=1", "check")
    assert shown.exit_code == 2
    assert "127.0.0.1" in shown.stderr
    assert "environment" not in shown.stderr


def test_set_of_the_warehouse_is_read_by_readers(published: Path) -> None:
    (published / "warehouse").rename(published / "elsewhere")
    assert cdc_views("-C", published, "status").exit_code == 3
    assert cdc_views("-C", published, "--set", "warehouse=elsewhere", "status").exit_code == 0


def test_warehouse_by_reference_is_read_by_readers(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (published / FILE_NAME).write_text(SETTINGS + "warehouse: ${env:WHERE}\n")
    monkeypatch.setenv("WHERE", "warehouse")
    assert cdc_views("-C", published, "status").exit_code == 0


# The project of the demo


def lines_of_the_demo() -> list[list[str]]:
    """The calls of cdc-views that the README gives below `./scripts/demo`."""
    demo, *lines = block("README.md", "demo").splitlines()
    assert demo == "./scripts/demo --keep"
    calls = [shlex.split(line, comments=True) for line in lines]
    assert {call[0] for call in calls} == {".venv/bin/cdc-views"}
    return [call[1:] for call in calls]


@pytest.mark.parametrize("is_root", [True, False])
def test_lines_of_the_readme_find_the_project_of_the_demo(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_root: bool
) -> None:
    monkeypatch.setenv("CDC_VIEWS_CACHE", str(locations.cache_folder()))  # else downloaded again, into the other HOME
    for variable in ("CDC_VIEWS_STATE", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(locations.os, "geteuid", lambda: 0 if is_root else 1000)
    monkeypatch.setattr(locations, "STATE_OF_ROOT", str(tmp_path / "var"))
    demo = tmp_path / ("var" if is_root else "home/.local/state/cdc-views") / "demo"
    assert locations.demo_folder() == demo
    demo.mkdir(parents=True)
    for entry in (FILE_NAME, "warehouse"):
        (published / entry).rename(demo / entry)
    monkeypatch.chdir(published)
    query, search, timeline, get, rebuild = lines_of_the_demo()
    assert 'UnknownView: epoch 1 has no table "post_search"' in cdc_views(*search).stderr
    assert 'UnknownView: epoch 1 has no table "home_timeline"' in cdc_views(*timeline).stderr
    assert 'UnknownView: epoch 1 has no table "product_cache"' in cdc_views(*get).stderr
    shown = cdc_views(*query)
    assert "hint: tables are public.orders, ratio, totals" in shown.stderr  # and not those of the demo
    assert 'SourceUnreachable: cannot connect to database "app" at nowhere:1' in cdc_views(*rebuild).stderr
    assert cdc_views("--project", "demo", "epochs").exit_code == 0


def test_folders_of_this_machine_are_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locations.os, "geteuid", lambda: 1000)
    for variable in ("CDC_VIEWS_STATE", "CDC_VIEWS_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert locations.state_folder() == Path.cwd() / "state" / "cdc-views"
    assert locations.cache_folder() == Path.cwd() / "cache" / "cdc-views"


def test_folder_of_the_name_demo_is_the_project(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDC_VIEWS_STATE", str(published))
    (published / "demo").mkdir()
    (tmp_path / "here/demo").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    assert locations.project_folder(Path("demo")) == Path("demo")
    assert locations.project_folder(Path("./demo/")) == Path("demo")
    assert locations.project_folder(Path("demo/x")) == Path("demo/x")
    (tmp_path / "here/demo").rmdir()
    assert locations.project_folder(Path("demo")) == published / "demo"


# Reading


def test_query_prints_a_table_as_it_is(published: Path) -> None:
    shown = cdc_views("-C", published, "query", "SELECT * FROM orders ORDER BY id")
    assert shown.exit_code == 0, shown.stderr
    assert [line.split() for line in shown.stdout.splitlines()] == [["id", "note"], ["1", "[bold]x[/y]"], ["2"]]
    assert shown.stderr.startswith("epoch 1 at 0/16, ")


def test_query_as_json_is_one_object_a_row(published: Path) -> None:
    shown = cdc_views("-C", published, "query", "SELECT * FROM public.orders, totals ORDER BY id", "--json")
    assert [json.loads(line) for line in shown.stdout.splitlines()] == [
        {"id": 1, "note": "[bold]x[/y]", "total": "10.50"},
        {"id": 2, "note": None, "total": "10.50"},
    ]


def test_csv_has_null_apart_from_an_empty_text(published: Path) -> None:
    sql = """SELECT NULL AS "a,b", '' AS e, 'x "y"' AS q, E'1\\n2' AS n, 5 AS i"""
    shown = cdc_views("-C", published, "query", sql, "--csv")
    assert shown.stdout == '"a,b",e,q,n,i\n,"","x ""y""","1\n2",5\n'


def test_query_as_csv_has_a_header(published: Path) -> None:
    shown = cdc_views("-C", published, "query", "SELECT note, id FROM orders ORDER BY id", "--csv")
    assert list(csv.reader(io.StringIO(shown.stdout))) == [["note", "id"], ["[bold]x[/y]", "1"], ["", "2"]]


def test_query_reads_tables_of_any_name(project: Path) -> None:
    names = ('"my.schema"."say ""hi"""', '"a b"', "public.a_b", "_own.t", '"a.b".c', '"Ü"')
    manifest = {
        str(TableName.parse(name)): TableVersion(f"mirrors/{n}", 0, "live", "mirror") for n, name in enumerate(names)
    }
    for number in range(len(names)):
        write_deltalake(str(project / f"warehouse/mirrors/{number}"), pa.table({"id": [number]}))
    control = ControlLog.open(project / "warehouse", "engine")
    control.take_over()
    control.append(kind="publish", epoch=1, attempt=control.new_attempt(), position=Lsn.parse("0/16"), tables=manifest,
                   committed_at=datetime(2026, 1, 2, tzinfo=UTC), detail={})  # fmt: skip
    for number, name in enumerate(names):
        shown = cdc_views("-C", project, "query", f"SELECT id FROM {name}", "--csv")
        assert shown.stdout.split() == ["id", str(number)], shown.output
    both = 'SELECT o.id * 10 + t.id AS id FROM "a b" o, a_b t'
    assert cdc_views("-C", project, "query", both, "--csv").stdout.split() == ["id", "12"]


def test_query_with_two_columns_of_one_name_shows_both(published: Path) -> None:
    shown = cdc_views("-C", published, "query", "SELECT 1 AS a, 2 AS a, 3 AS a_1", "--json")
    assert list(json.loads(shown.stdout).values()) == [1, 2, 3]


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]])
def test_query_of_every_kind_of_value_is_printed(published: Path, form: list[str]) -> None:
    sql = (
        "SELECT TIME '10:00' AS t, DATE '2026-01-02' AS d, INTERVAL 1 day AS i, uuid() AS u, 'nan'::float AS f,"
        " 1::hugeint AS h, {'a': 1} AS s, [TIME '10:00'] AS l, MAP {'k': 1} AS m, 'x'::blob AS b, true AS yes,"
        " 'infinity'::timestamp AS far"
    )
    shown = cdc_views("-C", published, "query", sql, *form)
    assert shown.exit_code == 0, shown.output
    assert "10:00:00" in shown.stdout
    assert "infinity" in shown.stdout
    if form == ["--json"]:
        assert json.loads(shown.stdout, parse_constant=pytest.fail)["f"] == "nan"


def test_rows_into_a_pipe_are_never_cut_off(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_rows([{"a": "x" * 200, "b": time(1), "c": date(2026, 1, 2)}], ["a", "b", "c"], None)
    assert capsys.readouterr().out.splitlines()[1].split() == ["x" * 200, "01:00:00", "2026-01-02"]


@pytest.mark.proves(
    wrong="The SQL given to `cdc-views query` has a typo",
    seen="`BadQuery` with DuckDB's message",
    do="fix the query",
)
@pytest.mark.parametrize("sql", ["SELECT * FROM ordres", "SELECT nmae FROM orders", "SELEC 1", "; "])
def test_query_with_a_typo_is_bad_query(published: Path, sql: str) -> None:
    shown = cdc_views("-C", published, "query", sql)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr.startswith("BadQuery: ")
    assert "\nhint: " in shown.stderr
    assert "Traceback" not in shown.stderr


def test_query_of_an_unknown_table_names_those_there_are(published: Path) -> None:
    shown = cdc_views("-C", published, "query", "SELECT * FROM ordres")
    assert shown.stderr.endswith("hint: tables are public.orders, ratio, totals\n")


def test_query_of_a_failed_view_is_view_failed(published: Path) -> None:
    shown = cdc_views("-C", published, "query", "SELECT * FROM ratio")
    assert shown.exit_code == 1
    assert shown.stderr.startswith('ViewFailed: view "ratio" has failed: DIVIDE_BY_ZERO\nhint: its last good rows ')


def test_query_beside_a_failed_view_is_answered(published: Path) -> None:
    assert cdc_views("-C", published, "query", "SELECT * FROM totals").exit_code == 0


@pytest.mark.proves(
    wrong="Files of a published table were deleted",
    seen="`TableUnavailable` with the table, version and path",
    do="read a newer epoch; if the newest one has lost files, run `cdc-views rebuild TABLE --from snapshot --swap`",
)
def test_query_of_a_version_that_is_gone_is_table_unavailable(published: Path) -> None:
    for file in (published / "warehouse/mirrors/orders").glob("*.parquet"):
        file.unlink()
    shown = cdc_views("-C", published, "query", "SELECT count(note) FROM orders")
    assert shown.exit_code == 1
    assert shown.stderr.startswith(
        'TableUnavailable: table "public.orders": version 0 of mirrors/orders cannot be read'
    )


def test_status_as_json_has_every_table(published: Path) -> None:
    shown = cdc_views("-C", published, "status", "--json")
    rows = {row["table"]: (row["status"], row["failure"]) for row in map(json.loads, shown.stdout.splitlines())}
    assert rows == {
        "public.orders": ("live", None), "totals": ("live", None), "ratio": ("failed", "DIVIDE_BY_ZERO"),
    }  # fmt: skip
    assert "\nengine: not running\nepoch 1 at 0/16, " in shown.stderr


def test_status_says_for_each_table_how_fresh_and_how_large_it_is_and_what_it_cost(published: Path) -> None:
    shown = cdc_views("-C", published, "status", "--published-within", "60", "--json")
    rows = {row["table"]: row for row in map(json.loads, shown.stdout.splitlines())}
    assert {name: (row["rows"], row["last_epoch"], row["last_ms"]) for name, row in rows.items()} == {
        "public.orders": (2, 1, None), "totals": (1, 1, 61), "ratio": (1, 1, 61),
    }  # fmt: skip
    assert all(row["freshness_s"] > 3600 for row in rows.values())


def test_status_begins_with_the_remedy(published: Path) -> None:
    shown = cdc_views("-C", published, "status")
    assert shown.stderr.startswith(
        "fix: start Kafka Connect, or correct log.connect_url: Kafka Connect does not answer"
    )
    (published / FILE_NAME).write_text("source: {dsn: '${env:NOT_THERE}'}\n")
    without = cdc_views("-C", published, "status")
    assert without.stderr.startswith('fix: run "cdc-views run": no engine is running, and readers see the source as it')
    assert '\nservices: not asked: "' in without.stderr


def test_status_prints_a_table_and_csv_with_the_same_cells(published: Path) -> None:
    header, *table = [line.split() for line in cdc_views("-C", published, "status").stdout.splitlines()]
    rows = list(csv.DictReader(io.StringIO(cdc_views("-C", published, "status", "--csv").stdout)))
    changing = "freshness_s"
    for line, row in zip(table, rows, strict=True):
        cells = [row[column] for column in header if row[column] or column == changing]
        assert [cell for cell in line if cell != line[2]] == [cell for cell in cells if cell != row[changing]]


def test_status_that_redraws_takes_no_other_option(published: Path) -> None:
    shown = cdc_views("-C", published, "status", "--watch", "--json")
    assert shown.exit_code == 2
    assert "--watch is for people" in shown.stderr


def test_status_that_redraws_shows_the_newest_until_it_is_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers, waits = iter(range(7, 10)), list[float]()

    def read() -> Status:
        row = dict.fromkeys(SHOWN) | {"table": "public.orders"}
        return Status(cast("PublishedEpoch", None), None, "", (), [f"epoch {next(numbers)}"], [row])

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    module = importlib.import_module("cdc_views.cli.readers.status")  # the package has a command of that name
    monkeypatch.setattr(module.time, "sleep", wait)
    with pytest.raises(KeyboardInterrupt):
        module._redraw(read)
    assert waits == [2.0] * 3
    shown = capsys.readouterr().out
    assert "epoch 9" in shown
    assert "freshn" in shown  # the table, in a narrow terminal


def test_epochs_are_the_published_ones(published: Path) -> None:
    shown = cdc_views("-C", published, "epochs", "--json")
    [row] = [json.loads(line) for line in shown.stdout.splitlines()]
    assert row.pop("published_at")
    assert row == {
        "epoch": 1, "kind": "publish", "attempt": 2, "position": "0/16",
        "committed_at": "2026-01-02T03:04:05+00:00", "changes": 2, "parked": 0, "ways": WAYS,
        "view_work": dict.fromkeys(
            ("totals", "ratio"), WORK | {"rows_read": 0, "files_read": 0, "commits": 0, "why_full": None}
        ),
    }  # fmt: skip


def publish_idle(project: Path) -> None:
    """Publish an epoch that only moves the position on."""
    control = ControlLog.open(project / "warehouse", "engine")
    control.take_over()
    last = control.last_published
    assert last is not None
    control.append(kind="publish", epoch=control.new_epoch(), attempt=control.new_attempt(),
                   position=Lsn.parse("0/30"), tables=last.tables)  # fmt: skip


def test_epochs_without_changes_are_counted_and_shown_if_asked_to(published: Path) -> None:
    assert cdc_views("-C", published, "epochs", "--csv").stderr == ""
    for _ in range(3):
        publish_idle(published)
    shown = cdc_views("-C", published, "epochs", "--csv")
    assert [row["epoch"] for row in csv.DictReader(io.StringIO(shown.stdout))] == ["1"]
    assert shown.stderr == "3 epochs without changes are hidden; --all shows them\n"
    shown = cdc_views("-C", published, "epochs", "--csv", "--all", "--last", "3")
    assert [row["position"] for row in csv.DictReader(io.StringIO(shown.stdout))] == ["0/30"] * 3
    assert shown.stderr == ""


@pytest.mark.parametrize(("options", "kinds"), [([], ["takeover", "publish", "intent"]), (["--last", "1"], ["intent"])])
def test_epochs_of_all_kinds_are_in_order(published: Path, options: list[str], kinds: list[str]) -> None:
    shown = cdc_views("-C", published, "epochs", "--all-kinds", "--csv", *options)
    assert [row["kind"] for row in csv.DictReader(io.StringIO(shown.stdout))] == kinds


def test_epochs_as_a_table_has_a_line_each(published: Path) -> None:
    assert len(cdc_views("-C", published, "epochs").stdout.splitlines()) == 2


def test_epochs_as_a_table_count_the_ways_and_the_work_for_views_if_asked_to(published: Path) -> None:
    header, publish = cdc_views("-C", published, "epochs", "--verbose").stdout.splitlines()
    assert header.split()[-2:] == ["ways", "view_work"]
    ways, work = publish.rstrip().split("  ")[-2:]
    assert ways.strip() == "commit: 1 direct, 1 spark; read: 1 driver"
    assert work == "4 keys looked up, 14 rows found, 6 computed, 2 written"


def append_work(project: Path, epochs: int, internal: Sequence[str] = ()) -> None:
    """Publish epochs that updated the view `totals`, the first in full, the last by keys; `internal` views by keys."""
    control = ControlLog.open(project / "warehouse", "engine")
    control.take_over()
    last = control.last_published
    assert last is not None
    for number in range(epochs):
        ways = {"view": {"totals": "keys"}} if number else {"view": {"totals": "full"}, "diff": {"totals": "spark"}}
        ways["view"] |= dict.fromkeys(internal, "keys")
        work = dict.fromkeys(("totals", *internal), WORK) | ({} if number else {"totals": WORK | LARGE})
        control.append(kind="publish", epoch=control.new_epoch(), attempt=control.new_attempt(),
                       position=Lsn.parse("0/30"), tables=last.tables,
                       detail={"changes": {}, "ways": ways, "view_work": work})  # fmt: skip


def test_explain_shows_what_the_last_epochs_did_for_the_view(published: Path) -> None:
    append_work(published, epochs=2)
    publish_idle(published)
    assert last_epochs(read_control(published / "warehouse"), "totals") == [
        "last epochs:",
        "  epoch  strategy             looked up  found  computed  written  ms",
        "  1                           2          7      3         1        61",
        "  3      full (large change)  2          7      -         1        61",
        "  4      keys                 2          7      3         1        61",
        "  looked up: keys, in its tables and among its stored rows",
        "  found: the rows with these keys, and the changed rows; with full, all rows",
        "  computed: the rows that its query returned; - if they were not counted",
        "  written: the rows in its new data files",
    ]


def test_epochs_say_why_views_were_computed_in_full(published: Path) -> None:
    append_work(published, epochs=1, internal=("_cv_totals_1",))
    table = cdc_views("-C", published, "epochs", "--last", "1", "--verbose").stdout.splitlines()
    assert table[-1].rstrip().endswith("2 written; full: 1 large change")
    [row] = map(json.loads, cdc_views("-C", published, "epochs", "--last", "1", "--json").stdout.splitlines())
    assert row["view_work"]["totals"]["why_full"] == "large change"


def test_explain_shows_at_most_five_epochs_and_none_of_another_view(published: Path) -> None:
    append_work(published, epochs=6)
    records = read_control(published / "warehouse")
    assert [line.split()[0] for line in last_epochs(records, "totals")[2:-4]] == ["4", "5", "6", "7", "8"]
    assert last_epochs(records, "another") == []


def test_explain_shows_what_the_last_epochs_did_for_the_internal_views(published: Path) -> None:
    append_work(published, epochs=1, internal=("_cv_totals_1",))
    shown = last_epochs(read_control(published / "warehouse"), "totals", ["_cv_totals_1", "_cv_totals_2"])
    assert shown[3:-4] == [
        "  3      full (large change)  2          7      -         1        61",
        "last epochs of _cv_totals_1:",
        "  epoch  strategy  looked up  found  computed  written  ms",
        "  3      keys      2          7      3         1        61",
    ]


# Errors


@pytest.mark.proves(
    wrong="A command reads before the first epoch is published",
    seen="`NothingPublished`, exit status 3",
    do="start the engine (`cdc-views run`) and wait for its first epoch",
)
@pytest.mark.parametrize("arguments", [["status"], ["query", "SELECT 1"]])
def test_reading_before_the_first_epoch_is_nothing_published(project: Path, arguments: list[str]) -> None:
    shown = cdc_views("-C", project, *arguments)
    assert (shown.exit_code, shown.stdout) == (3, "")
    assert "NothingPublished: nothing is published yet in " in shown.stderr
    assert "\nhint: start " in shown.stderr
    assert not (project / "warehouse").exists()


def test_status_before_the_first_epoch_names_a_service_that_does_not_answer(project: Path) -> None:
    shown = cdc_views("-C", project, "status")
    engine, error, hint = shown.stderr.splitlines()
    assert engine == "engine: not running"
    assert error.endswith('warehouse": Kafka Connect does not answer')
    assert hint == "hint: start Kafka Connect, or correct log.connect_url"
    with only_run(project / "warehouse", 0):
        shown = cdc_views("-C", project, "status")
    assert shown.stderr.startswith(f"engine: running, pid {os.getpid()}; working on the first epoch, see its log\n")
    assert "Kafka Connect does not answer\nhint: start Kafka Connect" in shown.stderr


def test_status_of_an_engine_that_has_recorded_nothing_for_long_while_it_computes_an_epoch(published: Path) -> None:
    warehouse = published / "warehouse"
    entry = entry_file(warehouse / FOLDER, newest_version(warehouse / FOLDER))
    written = json.loads(entry.read_text().splitlines()[0])["commitInfo"]["timestamp"]
    entry.write_text(entry.read_text().replace(str(written), str(written - 3_600_000)))
    lock = WarehouseLock(warehouse, 0)
    lock.acquire()
    just_started = cdc_views("-C", published, "status")
    hour_ago = written / 1000 - 3600
    os.utime(warehouse / LOCK_FOLDER / ENGINE, (hour_ago, hour_ago))
    shown = cdc_views("-C", published, "status")
    lock.release()
    assert f"\nengine: running, pid {os.getpid()}; computing epoch 2, the last one was " in just_started.stderr
    assert f"\nengine: running, pid {os.getpid()}; slow: it has been computing epoch 2 for 1.0 h\n" in shown.stderr


def test_query_waits_for_the_first_epoch(published: Path) -> None:
    warehouse = published / "warehouse"
    warehouse.rename(published / "elsewhere")
    timer = threading.Timer(0.5, lambda: (published / "elsewhere").rename(warehouse))
    timer.start()
    try:
        shown = cdc_views("-C", published, "query", "--wait", "SELECT count(*) AS n FROM orders", "--csv")
    finally:
        timer.join()
    assert (shown.exit_code, shown.stdout) == (0, "n\n2\n"), shown.stderr


def test_query_that_waits_ends_at_its_limit(project: Path) -> None:
    shown = cdc_views("-C", project, "query", "--wait=0.3", "SELECT 1")
    assert shown.exit_code == 3
    assert shown.stderr.startswith("NothingPublished: ")


@pytest.mark.parametrize(("signal_name", "named"), [("SIGTERM", "SIGTERM"), ("", "SIGINT")])
def test_run_that_is_interrupted_says_what_is_published(
    published: Path, monkeypatch: pytest.MonkeyPatch, signal_name: str, named: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt(signal_name) if signal_name else KeyboardInterrupt

    monkeypatch.setattr(Supervisor, "run", interrupted)
    shown = cdc_views("-C", published, "run")
    assert shown.exit_code == 130
    assert messages(shown.stderr) == [
        'stopped in epoch 2, not yet published: the next "cdc-views run" finishes or abandons it',
        "last published: epoch 1 at 0/16",
    ]
    assert shown.stderr.splitlines()[2:] == [f"interrupted by {named}; exit status 130"]
    publish_idle(published)
    shown = cdc_views("-C", published, "run")
    assert messages(shown.stderr) == ["stopped between two epochs", "last published: epoch 3 at 0/30"]


@pytest.mark.parametrize(
    ("error", "shown_as"),
    [
        (SlotChanged("slot is gone", hint="reset"), {"message": "SlotChanged: slot is gone", "hint": "reset"}),
        (ValueError("value 'secret of ada'"), {"message": "ValueError in cli/operate/run.py, line LINE"}),
    ],
)
def test_error_that_ends_run_is_a_json_line_before_it_is_printed(
    published: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, shown_as: dict[str, str]
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Supervisor, "run", failing)
    first, *printed = cdc_views("-C", published, "run").stderr.splitlines()
    line = json.loads(first)
    assert line.pop("time")
    line["message"] = re.sub(r"\d+$", "LINE", line["message"])
    assert line == {"level": "ERROR", "error": type(error).__name__, **shown_as}
    assert len(printed) == 2
    assert "ada" not in first + "".join(printed)


def test_run_that_is_interrupted_before_anything_is_published_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Supervisor, "run", interrupted)
    shown = cdc_views("-C", project, "run")
    assert shown.exit_code == 130
    assert messages(shown.stderr) == ["stopped between two epochs", "nothing is published yet"]
    assert shown.stderr.splitlines()[2:] == ["interrupted by SIGTERM; exit status 130"]


def test_command_outside_a_project_says_how_to_make_one(tmp_path: Path) -> None:
    shown = cdc_views("-C", tmp_path, "run")
    assert shown.exit_code == 2
    assert "BadConfig: " in shown.stderr
    assert "cdc-views init" in shown.stderr


def test_native_stack_that_is_down_is_not_running(project: Path) -> None:
    (project / FILE_NAME).write_text("stack: native\nsource: {tables: [public.orders]}\n")
    shown = cdc_views("-C", project, "run")
    assert shown.exit_code == 3
    file = state_folder() / STACK_FILE
    line, _, printed = shown.stderr.partition("\n")
    assert json.loads(line)["error"] == "NotRunning"
    assert printed == (
        f'NotRunning: the native stack is not running: there is no "{file}"\nhint: '
        'start it with "cdc-views up"; one that runs was started with another CDC_VIEWS_STATE\n'
    )


def test_down_stops_the_engine_that_the_demo_has_left_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_VIEWS_STATE", str(tmp_path))
    locations.demo_folder().mkdir()
    runner = Program("engine", locations.demo_folder(), ["-c", "import time; time.sleep(600)"])
    runner.start()
    assert cdc_views("down").stdout == "stopped: engine of the demo\n"
    assert runner.pid is None
    assert cdc_views("down").stdout == "nothing was running\n"


def test_debug_shows_the_traceback_and_the_error(project: Path) -> None:
    plain, debug = cdc_views("-C", project, "status"), cdc_views("-C", project, "--debug", "status")
    assert "Traceback" not in plain.stderr
    assert "Traceback (most recent call last)" in debug.stderr
    assert debug.stderr.splitlines()[-2:] == plain.stderr.splitlines()[-2:]
    assert debug.exit_code == plain.exit_code == 3


@pytest.mark.parametrize("debug", [None, "--debug", "CDC_VIEWS_DEBUG"])
def test_unexpected_error_is_a_line_and_a_hint(
    project: Path, monkeypatch: pytest.MonkeyPatch, debug: str | None
) -> None:
    def unexpected(*_: object) -> None:
        raise ValueError("secret")

    monkeypatch.setattr("cdc_views.cli.main.load_warehouse", unexpected)
    if debug == "CDC_VIEWS_DEBUG":
        monkeypatch.setenv(debug, "1")
    result = CliRunner().invoke(main, [*([debug] if debug == "--debug" else []), "-C", str(project), "epochs"])
    assert result.exit_code == 1
    *trace, line, hint = result.stderr.splitlines()
    assert re.fullmatch(r"unexpected error: ValueError in cli/main\.py, line \d+", line)
    assert "--debug" in hint
    assert ("secret" in "".join(trace)) is (debug is not None)


@pytest.mark.parametrize(
    ("error", "shown_as"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "OSError: No space left on device"),
        (
            PermissionError(errno.EACCES, "Permission denied", "/opt/java"),
            'PermissionError: "/opt/java": Permission denied',
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "LAKE/t/x"),
            'WarehouseUnusable: "LAKE/t/x" cannot be used:',
        ),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "unexpected error: ConnectionRefusedError in "),
    ],
)
def test_refused_file_is_the_warehouse_only_if_it_is_in_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, shown_as: str
) -> None:
    lake = str(project / "warehouse")
    if error.filename:
        error.filename = error.filename.replace("LAKE", lake)

    def refused(*_: object) -> None:
        raise error

    monkeypatch.setattr("cdc_views.cli.readers.epochs.read_control", refused)
    shown = cdc_views("-C", project, "epochs")
    assert shown.exit_code == 1
    assert shown.stderr.startswith(shown_as.replace("LAKE", lake))


@pytest.mark.parametrize("seconds", ["nan", "-1"])
@pytest.mark.parametrize("option", ["status --published-within", "query --max-age", "query --wait"])
def test_seconds_that_are_no_number_are_a_usage_error(published: Path, option: str, seconds: str) -> None:
    command, name = option.split()
    shown = cdc_views("-C", published, command, f"{name}={seconds}", *(["SELECT 1"] if command == "query" else []))
    assert shown.exit_code == 2
    assert name in shown.stderr


@pytest.mark.parametrize("place", [["t", "0", "x"], ["t", "0", "9" * 20], ["t", "9" * 5000, "0"]])
@pytest.mark.parametrize("name", ["retry", "discard"])
def test_place_of_no_event_is_a_usage_error(project: Path, name: str, place: list[str]) -> None:
    shown = cdc_views("-C", project, "quarantine", name, *place)
    assert shown.exit_code == 2
    assert shown.stderr.startswith("Usage: ")


# Moments, rows by key, changes


@pytest.fixture
def shop(project: Path) -> Published:
    """A project with two published epochs."""
    shop = Published(project / "warehouse")
    shop.write(ORDERS, [(1, "a"), (2, "b")])
    shop.publish()
    shop.write(ORDERS, [(2, "B"), (3, "c")], [(1,)])
    shop.publish()
    return shop


@pytest.mark.parametrize(
    ("options", "count", "epoch"),
    [
        (["--at", "1"], 2, 1),
        (["--at", "0/100"], 2, 1),
        (["--at", "2026-01-02T03:00:01.5Z"], 2, 1),
        (["--at-least", "0/210"], 2, 2),
        (["--at-least", "0/210", "--wait"], 2, 2),
        (["--max-age", "1e10"], 2, 2),
    ],
)
def test_query_at_a_moment(shop: Published, project: Path, options: list[str], count: int, epoch: int) -> None:
    shown = cdc_views("-C", project, "query", *options, "SELECT count(*) AS n FROM orders", "--json")
    assert json.loads(shown.stdout) == {"n": count}
    assert shown.stderr.startswith(f"epoch {epoch} at 0/{epoch}00, ")


@pytest.mark.parametrize(
    ("options", "error", "status"),
    [
        (["--at", "9"], "NotPublishedYet", 3),
        (["--at-least", "0/300", "--wait=0"], "NotPublishedYet", 3),
        (["--max-age", "5"], "EpochTooOld", 3),
        (["--at", "0/1"], "EpochNotRetained", 2),
        (["--at", "1", "--max-age", "5"], "BadMoment", 2),
        (["--at", "2026-01-02T03:00:01"], "BadMoment", 2),
    ],
)
def test_query_at_a_moment_that_cannot_be_read(
    shop: Published, project: Path, options: list[str], error: str, status: int
) -> None:
    shown = cdc_views("-C", project, "query", *options, "SELECT 1")
    assert (shown.exit_code, shown.stderr.partition(":")[0]) == (status, error)


def test_get_prints_the_row_or_ends_with_status_1(shop: Published, project: Path) -> None:
    found = cdc_views("-C", project, "get", "public.orders", "2", "--json")
    assert (found.exit_code, json.loads(found.stdout)) == (0, {"id": 2, "note": "B"})
    missing = cdc_views("-C", project, "get", "public.orders", "1")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert '"public.orders" has no row with this key' in missing.stderr
    earlier = cdc_views("-C", project, "get", "public.orders", "1", "--at", "1", "--csv")
    assert earlier.stdout == "id,note\n1,a\n"


def test_key_with_a_minus_is_given_after_two(shop: Published, project: Path) -> None:
    shop.write(ORDERS, [(-5, "less")])
    shop.publish()
    assert cdc_views("-C", project, "get", "public.orders", "--csv", "--", "-5").stdout == "id,note\n-5,less\n"
    page = (ROOT / "docs" / "cli.md").read_text()
    for name, call in {"get": "balances", "timeline": "home_timeline", "search": "post_search"}.items():
        assert f"{name} {call} -- " in " ".join(cdc_views(name, "--help").stdout.split())
        assert re.search(rf"`{name}\s{call}( --json)? -- '?-", page)


@pytest.mark.parametrize("key", [[], ["one"], ["1", "2"]])
def test_get_with_a_wrong_key_is_bad_input(shop: Published, project: Path, key: list[str]) -> None:
    shown = cdc_views("-C", project, "get", "public.orders", *key)
    assert shown.exit_code == 2
    assert shown.stderr.startswith("BadKey: ")


def test_timeline_prints_a_page_and_the_cursor_of_the_next(shop: Published, project: Path) -> None:
    schema = pa.schema([("user_id", pa.int64()), ("post_id", pa.int64())])
    kind = {"kind": "timeline", **TimelineRecord("user_id", (Ordered("post_id", descends=True),), 100).as_json()}
    shop.write(TableSpec("home", "views/home/a", schema, ("user_id", "post_id"), kind=kind), [(7, 1), (7, 2), (8, 3)])
    shop.publish()
    first = cdc_views("-C", project, "timeline", "home", "7", "--limit", "1", "--csv")
    assert first.stdout == "user_id,post_id\n7,2\n"
    assert cdc_views("-C", project, "timeline", "home", "9", "--csv").stdout == "user_id,post_id\n"
    [cursor] = [line.split()[-1] for line in first.stderr.splitlines() if line.startswith("next page: --before ")]
    second = cdc_views("-C", project, "timeline", "home", "7", "--before", cursor, "--json")
    assert (json.loads(second.stdout), "next page" in second.stderr) == ({"user_id": 7, "post_id": 1}, False)
    wrong = cdc_views("-C", project, "timeline", "home", "8", "--before", cursor)
    assert (wrong.exit_code, wrong.stderr.partition(":")[0]) == (2, "BadPage")


def test_changes_as_json_is_one_line_an_epoch(shop: Published, project: Path) -> None:
    [snapshot] = map(json.loads, cdc_views("-C", project, "changes", "public.orders", "--json").stdout.splitlines())
    assert (snapshot["epoch"], snapshot["snapshot"], len(snapshot["rows"])) == (2, 1, 2)
    shop.write(ORDERS, [(2, "b"), (4, "d")], [(3,)])
    shop.publish()
    shown = cdc_views("-C", project, "changes", "public.orders", "--since", snapshot["token"], "--json")
    [line] = map(json.loads, shown.stdout.splitlines())
    assert (line["epoch"], line["position"]) == (3, "0/300")
    assert line["inserted"] == [{"id": 4, "note": "d"}]
    assert line["updated"] == [{"old": {"id": 2, "note": "B"}, "new": {"id": 2, "note": "b"}}]
    assert line["deleted"] == [{"id": 3, "note": "c"}]


def test_snapshot_of_many_rows_has_its_token_in_the_last_line(
    shop: Published, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_lines, "_LINE_ROWS", 1)
    shown = cdc_views("-C", project, "changes", "public.orders", "--json")
    lines = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [(line["snapshot"], len(line["rows"]), "token" in line) for line in lines] == [(1, 1, False), (2, 1, True)]


def test_changes_for_people(shop: Published, project: Path) -> None:
    first = cdc_views("-C", project, "changes", "public.orders")
    token = first.stderr.split()[-1]
    assert first.stderr == f"epoch 2 at 0/200: all 2 rows; token {token}\n"
    shop.write(ORDERS, [(2, "b")])
    shop.publish()
    shown = cdc_views("-C", project, "changes", "public.orders", "--since", token)
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert rows == [["change", "id", "note"], ["old", "2", "B"], ["new", "2", "b"]]
    assert shown.stderr.startswith("epoch 3 at 0/300: 0 inserted, 1 updated, 0 deleted; token ")


def test_changes_of_a_wrong_token_are_bad_input(shop: Published, project: Path) -> None:
    shown = cdc_views("-C", project, "changes", "public.orders", "--since", "x")
    assert (shown.exit_code, shown.stderr.partition(":")[0]) == (2, "BadToken")
