"""Queries in processes: answered as without them, and ended when DuckDB does not heed its limits."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import psutil
import pytest

from cdc_views.errors import BadQuery, CdcViewsError, QueryTooLong, ResultTooLarge
from cdc_views.host.waiting import wait_until
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.sql import NO_LIMITS, QueryLimits, QueryProcesses, query
from cdc_views.serve.sql.processes import _QueryProcess
from tests.unit.published import ORDERS, Published

LIMIT_S = 60
SMALL = QueryLimits(seconds=LIMIT_S, memory_mb=64, rows=10, most_bytes=1 << 20)
HUGE_VALUE = "SELECT length(repeat(repeat('x', 1000000), 1000)) AS n"
LONG_COMPARISON = "SELECT levenshtein(repeat('a', 300000), repeat('b', 300000)) AS n"


@pytest.fixture(scope="module")
def epoch(tmp_path_factory: pytest.TempPathFactory) -> PublishedEpoch:
    shop = Published(tmp_path_factory.mktemp("shop"))
    shop.write(ORDERS, [(1, "a"), (2, None)])
    shop.publish()
    return PublishedEpoch.latest(shop.root)


@pytest.fixture(scope="module")
def processes() -> Iterator[QueryProcesses]:
    found = QueryProcesses()
    yield found
    found.close()


def running() -> set[int]:
    """The processes of queries; multiprocessing has one of its own."""
    found = set()
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if "spawn_main" in " ".join(child.cmdline()):
                found.add(child.pid)
    return found


def cpu_seconds(pid: int) -> float:
    return float(psutil.Process(pid).cpu_times().user)


def test_answers_are_those_of_the_same_process_given_one_after_the_other(
    epoch: PublishedEpoch, processes: QueryProcesses
) -> None:
    for sql in ("SELECT * FROM orders ORDER BY id", "SELECT 1::HUGEINT AS h, uuid() IS NULL AS u, [1, NULL] AS l"):
        assert processes.query(epoch, sql, SMALL).equals(query(epoch, sql))
        before = running()
        assert processes.query(epoch, sql, NO_LIMITS).equals(query(epoch, sql))
        assert running() == before


@pytest.mark.parametrize("sql", ["SELEC 1", "SELECT * FROM nosuch", "SELECT * FROM range(11)", "SELECT error('x')"])
def test_errors_are_those_of_the_same_process(epoch: PublishedEpoch, processes: QueryProcesses, sql: str) -> None:
    with pytest.raises(CdcViewsError) as here:
        query(epoch, sql, SMALL)
    with pytest.raises(type(here.value)) as there:
        processes.query(epoch, sql, SMALL)
    assert (there.value.message, there.value.hint) == (here.value.message, here.value.hint)


def test_unexpected_error_is_named_without_its_text(epoch: PublishedEpoch, processes: QueryProcesses) -> None:
    bad = QueryLimits(rows=cast(int, "secret"))
    with pytest.raises(Exception, match=r"^TypeError in serve/sql/limits\.py, line \d+$"):
        processes.query(epoch, "SELECT 1 AS n", bad)


@pytest.mark.proves(
    wrong="A query over HTTP computes one value of gigabytes, within which DuckDB does not look at its limits.",
    seen="`ResultTooLarge`; the process of the query is ended, other queries go on",
    do="Select less; `http.query_memory_mb` is the limit.",
)
def test_process_that_takes_too_much_memory_is_ended(epoch: PublishedEpoch, processes: QueryProcesses) -> None:
    with pytest.raises(ResultTooLarge, match="more memory than 64 MiB"):
        processes.query(epoch, HUGE_VALUE, SMALL)
    assert processes.query(epoch, "SELECT count(*) AS n FROM orders", SMALL).to_pylist() == [{"n": 2}]


def test_process_that_takes_too_long_is_ended(
    epoch: PublishedEpoch, processes: QueryProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdc_views.serve.sql.processes._LATER_S", 0.1)
    with pytest.raises(QueryTooLong, match=r"has taken 0\.1 s"):
        processes.query(epoch, LONG_COMPARISON, QueryLimits(seconds=0.1))
    assert processes.query(epoch, "SELECT count(*) AS n FROM orders", SMALL).to_pylist() == [{"n": 2}]


@pytest.mark.parametrize(
    ("by", "kind", "message"),
    [(signal.SIGKILL, ResultTooLarge, "more memory than there is"), (signal.SIGSEGV, BadQuery, "ended by SIGSEGV")],
)
def test_process_that_is_ended_by_others_is_named(
    epoch: PublishedEpoch, by: signal.Signals, kind: type[CdcViewsError], message: str
) -> None:
    others, processes = running(), QueryProcesses()
    processes.query(epoch, "SELECT 1 AS n", NO_LIMITS)  # so that it is there
    [pid] = running() - others
    before = cpu_seconds(pid)

    def end_it_while_it_computes() -> None:
        assert wait_until(lambda: cpu_seconds(pid) > before + 0.2, LIMIT_S)
        os.kill(pid, by)

    ended = threading.Thread(target=end_it_while_it_computes)
    ended.start()
    with pytest.raises(kind, match=message):
        processes.query(epoch, LONG_COMPARISON, NO_LIMITS)
    ended.join()
    assert running() == others


def test_process_that_was_ended_between_two_queries_is_replaced(epoch: PublishedEpoch) -> None:
    others, processes = running(), QueryProcesses()
    processes.query(epoch, "SELECT 1 AS n", NO_LIMITS)
    [pid] = running() - others
    os.kill(pid, signal.SIGKILL)  # it may or may not have ended when the next query comes
    assert processes.query(epoch, "SELECT 1 AS n", NO_LIMITS).num_rows == 1
    processes.close()
    assert running() == others


def test_process_that_keeps_much_memory_is_not_used_again(
    epoch: PublishedEpoch, monkeypatch: pytest.MonkeyPatch
) -> None:
    others, processes = running(), QueryProcesses()
    monkeypatch.setattr(_QueryProcess, "has_grown", lambda *_: True)
    assert processes.query(epoch, "SELECT 1 AS n", NO_LIMITS).num_rows == 1
    assert running() == others


def test_closing_ends_the_processes(epoch: PublishedEpoch) -> None:
    others, processes = running(), QueryProcesses()
    processes.query(epoch, "SELECT 1 AS n", NO_LIMITS)
    assert running() > others
    processes.close()
    assert running() == others


_SERVER = """
import sys, pickle, psutil, signal
from cdc_views.serve.sql import NO_LIMITS, QueryProcesses
if __name__ == "__main__":
    QueryProcesses().query(pickle.loads(bytes.fromhex(sys.argv[1])), "SELECT 1 AS n", NO_LIMITS)
    print(*(child.pid for child in psutil.Process().children()), flush=True)
    signal.pause()
"""


@pytest.mark.nightly
def test_processes_end_with_a_server_that_is_killed(epoch: PublishedEpoch, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(_SERVER)
    command = [sys.executable, str(tmp_path / "server.py"), pickle.dumps(epoch).hex()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        started = [psutil.Process(int(pid)) for pid in server.stdout.readline().split()]
        assert started
        server.kill()
    assert wait_until(lambda: not any(process.is_running() for process in started), LIMIT_S)
