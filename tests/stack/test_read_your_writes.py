"""A read at least at the position that Postgres gives after a commit sees what was committed."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL

import cdc_views
from tests.fix_project import Project

PAGE = Path(__file__).parents[2] / "docs" / "readers.md"
POSITION = "SELECT pg_current_wal_insert_lsn()"
MANY_ROWS = "INSERT INTO accounts SELECT n, 'many', 0 FROM generate_series(%(first)s, %(first)s + 499) AS n"
WRITERS = 3
WRITES = 20
# Of an application on its own database; the database of the tests has hostile defaults.
SESSION = {
    "default_transaction_read_only": "off",
    "default_transaction_isolation": "read\\ committed",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "client_encoding": "UTF8",
}


@contextmanager
def engine_running(project: Project) -> Iterator[None]:
    """An engine that publishes all the time, in a thread."""
    stop = threading.Event()
    with project.engine() as catch_up, ThreadPoolExecutor(1) as pool:

        def publish() -> None:
            while not stop.is_set():
                catch_up()

        running = pool.submit(publish)
        try:
            yield
        finally:
            stop.set()
            running.result(120)


def lines_of_the_page(name: str) -> str:
    found = re.search(rf"<!-- {name}:.*?-->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1]


def application_dsn(project: Project) -> str:
    options = " ".join(f"-c {name}={value}" for name, value in SESSION.items())
    return psycopg.conninfo.make_conninfo(project.database.dsn, options=options)


def sqlalchemy_url(dsn: str) -> URL:
    return URL.create("postgresql+psycopg", query={name: str(value) for name, value in conninfo_to_dict(dsn).items()})


def test_reader_at_least_at_the_position_after_a_commit_sees_it(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Writers on their own connections, with and without waiting for the WAL to be flushed, and large transactions."""
    project.fix()
    project.catch_up()
    wh = cdc_views.open(project.warehouse)

    def write(writer: int) -> list[tuple[int, int]]:
        seen = []
        with psycopg.connect(application_dsn(project), autocommit=True) as connection:
            connection.execute(f"SET synchronous_commit = {'off' if writer % 2 else 'on'}")
            for number in range(WRITES):
                key = 1000 + writer * WRITES + number
                with connection.transaction():
                    connection.execute("INSERT INTO accounts VALUES (%s, 'writer', 1)", [key])
                    if number % 5 == 0:  # its first change is long before its commit
                        connection.execute(MANY_ROWS, {"first": 500 * key})
                found = connection.execute(POSITION).fetchone()
                assert found is not None
                row = wh.get("public.accounts", key, at_least=found[0], timeout_s=120)
                seen.append((key, 0 if row is None else 1))
        return seen

    with engine_running(project):
        with ThreadPoolExecutor(WRITERS) as pool:
            found = [each for part in pool.map(write, range(WRITERS)) for each in part]
        assert len(found) == WRITERS * WRITES
        assert [key for key, times in found if times != 1] == []
        before = wh.get("balances", "ada")
        assert before is not None
        dsn = application_dsn(project)
        for name in ("writes", "writes with SQLAlchemy"):
            capsys.readouterr()
            names: dict[str, Any] = {"dsn": dsn, "url": sqlalchemy_url(dsn), "warehouse": project.warehouse}
            exec(lines_of_the_page(name), names)
            if "engine" in names:
                names["engine"].dispose()
            [holder, balance] = re.findall(r"'holder': '(\w+)'.*Decimal\('([\d.]+)'\)", capsys.readouterr().out)[0]
            [(wanted,)] = project.database.execute("SELECT sum(balance) FROM accounts WHERE holder = 'ada'")
            assert (holder, balance) == ("ada", str(wanted))
