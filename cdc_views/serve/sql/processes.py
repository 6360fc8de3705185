"""Queries of many clients, each in a process of its own, which is ended if the query takes too much.

DuckDB looks at its limits between batches of rows. One very large value, or one very long comparison, goes beyond them,
and nothing but the end of its process stops it.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final

import psutil
import pyarrow as pa

from cdc_views.errors import BadQuery, CdcViewsError
from cdc_views.errors.unexpected import described
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.sql.limits import QueryLimits
from cdc_views.serve.sql.query import query

_LOGGER: Final = logging.getLogger(__name__)
_LOOK_S: Final = 0.02
_LATER_S: Final = 1.0  # DuckDB usually ends a query in time by itself, and its process can go on
_MEMORY_TIMES: Final = 2  # DuckDB counts its own memory only, not that of the scans and of the answer
_OF_LIBRARIES: Final = 128 << 20  # what they take when they are first used, and keep


class QueryProcesses:
    """Answers queries, in as many processes as there are queries at the same time. Thread-safe."""

    def __init__(self) -> None:
        self._idle: list[_QueryProcess] = []
        self._is_closed = False
        self._lock = threading.Lock()

    def query(self, epoch: PublishedEpoch, sql: str, limits: QueryLimits) -> pa.Table:
        """Answer as `query` does, and hold the limits whatever the query computes. Raises as `query`."""
        process = self._begin(epoch, sql, limits)
        try:
            answer = process.answer(limits)
        except BaseException:  # what it does now is not known
            process.end()
            raise
        self._give_back(process, limits)
        if isinstance(answer, CdcViewsError):
            raise answer
        return answer

    def close(self) -> None:
        """End the processes; those that answer a query end after it."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()

    def _begin(self, epoch: PublishedEpoch, sql: str, limits: QueryLimits) -> _QueryProcess:
        """A process that has begun to answer the query; an idle one may have been ended by others."""
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            process = idle or _QueryProcess()
            if process.begins(epoch, sql, limits) or idle is None:
                return process
            process.end()

    def _give_back(self, process: _QueryProcess, limits: QueryLimits) -> None:
        with self._lock:
            if not self._is_closed and not process.has_grown(limits):
                self._idle.append(process)
                return
        process.end()


class _QueryProcess:
    """A process that answers one query after the other."""

    def __init__(self) -> None:
        new = multiprocessing.get_context("spawn")
        self._connection, theirs = new.Pipe()
        self._process = new.Process(target=_answer_queries, args=(theirs,), name="query", daemon=True)
        self._process.start()
        theirs.close()
        self._connection.recv()  # it is ready
        self._memory = psutil.Process(self._process.pid)
        self._bytes = self._memory.memory_info().rss

    def begins(self, epoch: PublishedEpoch, sql: str, limits: QueryLimits) -> bool:
        """Give it a query: whether it has taken it, which a process that has ended does not."""
        try:
            self._connection.send((epoch, sql, limits))
            self._connection.recv()
        except (EOFError, ConnectionError):
            return False
        return True

    def answer(self, limits: QueryLimits) -> pa.Table | CdcViewsError:
        """The answer, or the error in its place. Raises QueryTooLong, ResultTooLarge if it has to be ended."""
        deadline = None if limits.seconds is None else time.monotonic() + limits.seconds + _LATER_S
        try:
            while not self._connection.poll(_LOOK_S):
                if self._is_above(limits, _MEMORY_TIMES):
                    raise limits.out_of_memory()
                if deadline is not None and time.monotonic() > deadline:
                    raise limits.too_long()
            answer = self._connection.recv()
        except (EOFError, ConnectionError):
            raise self._ended(limits) from None
        if isinstance(answer, _Unexpected):
            _LOGGER.error("unexpected error in the process of a query: %s", answer)
            raise answer
        return answer

    def has_grown(self, limits: QueryLimits) -> bool:
        """Whether it keeps much of the memory of its last queries."""
        return self._is_above(limits, 1)

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.join()
        self._connection.close()

    def _is_above(self, limits: QueryLimits, times: int) -> bool:
        with suppress(psutil.Error):  # it has ended
            grown = self._memory.memory_info().rss - self._bytes
            return limits.memory_mb is not None and grown > times * (limits.memory_mb << 20) + _OF_LIBRARIES
        return False

    def _ended(self, limits: QueryLimits) -> CdcViewsError:
        """The error for a process that has ended by itself."""
        self._process.join()
        status = self._process.exitcode or 0
        if -status in (signal.SIGKILL, signal.SIGABRT):  # by the system, or by a library that got no memory
            return limits.out_of_memory()
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        return BadQuery(f"the process that computed the query has ended {how}", hint="write the query in another way")


class _Unexpected(Exception):
    """An error of the query's process that is not one of ours; the text has no values of rows."""


def _answer_queries(connection: Connection) -> None:
    """What the process does, until the server closes the connection or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    connection.send(None)
    with suppress(EOFError, ConnectionError):
        while True:
            asked = connection.recv()
            connection.send(None)  # it has begun
            connection.send(_answer(*asked))


def _answer(epoch: PublishedEpoch, sql: str, limits: QueryLimits) -> pa.Table | Exception:
    try:
        return query(epoch, sql, limits)
    except CdcViewsError as error:
        return error.with_traceback(None)
    except Exception as error:
        return _Unexpected(described(error))
