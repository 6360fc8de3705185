"""`cdc-views sql` without SQL: a shell at a terminal, and a script from stdin."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cdc_views.config import FILE_NAME
from tests.fix_postgres import Database

LIMIT_S = 30
COMMAND = [sys.executable, "-m", "cdc_views.cli.main", "sql"]


@pytest.fixture
def folder(database: Database, tmp_path: Path) -> Path:
    """A project of which only Postgres is there."""
    settings = {
        "source": {"dsn": database.dsn, "tables": ["public.t"]},
        "log": {"bootstrap_servers": "localhost:1", "connect_url": "http://localhost:1"},
    }
    (tmp_path / FILE_NAME).write_text(yaml.safe_dump(settings))
    return tmp_path


def typed(folder: Path, *lines: str) -> str:
    """Type lines at a terminal, each once the prompt is there, and return what it shows."""
    terminal, of_command = pty.openpty()
    shown = ""
    with subprocess.Popen(COMMAND, cwd=folder, stdin=of_command, stdout=of_command, stderr=of_command) as process:
        os.close(of_command)
        try:
            for line in (*lines, None):
                while part := read(terminal):
                    shown += part
                    if line is not None and shown.endswith("> "):
                        break
                if line is not None:
                    os.write(terminal, line.encode())
            assert process.wait(LIMIT_S) == 0, shown
        finally:
            process.kill()
            os.close(terminal)
    return shown


def piped(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, "--csv"], cwd=folder, input=script, capture_output=True, text=True,
                          timeout=LIMIT_S)  # fmt: skip


def read(terminal: int) -> str:
    """What the terminal shows next; nothing once the command has ended."""
    assert select.select([terminal], [], [], LIMIT_S)[0], "the command shows nothing"
    try:
        return os.read(terminal, 4096).decode()
    except OSError:  # Linux: the other side is closed
        return ""


def test_shell_runs_what_is_typed_and_goes_on_after_an_error(folder: Path, database: Database) -> None:
    shown = typed(
        folder, "CREATE TABLE t (id int, note text);\n", "INSERT INTO t\n", "VALUES (1, 'semi;colon');\n",
        "SELECT nosuch;\n", "SELECT * FROM t;\n", "\\q\n",
    )  # fmt: skip
    assert f"{database.name}=> " in shown
    assert f"{database.name}-> " in shown
    assert 'BadQuery: column "nosuch" does not exist' in shown
    assert "1   semi;colon" in shown
    assert database.execute("SELECT * FROM t") == [(1, "semi;colon")]


def test_transaction_that_the_shell_leaves_open_is_rolled_back(folder: Path, database: Database) -> None:
    database.execute("CREATE TABLE t (id int)")
    shown = typed(folder, "BEGIN;\n", "INSERT INTO t VALUES (1);\n", "\x04")
    assert f"{database.name}=*> " in shown
    assert "rolled back: the transaction was left open" in shown
    assert database.execute("SELECT count(*) FROM t") == [(0,)]


def test_script_from_stdin_is_one_transaction(folder: Path, database: Database) -> None:
    database.execute("CREATE TABLE t (id int)")
    script = "INSERT INTO t VALUES (1);\nSELECT id FROM t;\n"
    done = piped(folder, script)
    assert (done.returncode, done.stdout) == (0, "id\n1\n"), done.stderr
    assert piped(folder, f"{script}SELECT nosuch;").returncode == 2
    assert database.execute("SELECT id FROM t") == [(1,)]
