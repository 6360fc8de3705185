"""What the routes share: the warehouse, threads, limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, TypeVar

import pyarrow as pa
from fastapi import Depends, Request, Response

from cdc_views.base.lsn import Lsn
from cdc_views.base.python_values import arrow_rows
from cdc_views.config import HttpSettings, Settings
from cdc_views.errors import BadMoment, NothingPublished, ResultTooLarge
from cdc_views.serve.epochs.follower import EpochFollower
from cdc_views.serve.epochs.moment import DEFAULT_TIMEOUT_S, Moment, choose, not_reached
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.http.answers import described, encoded
from cdc_views.serve.http.counters import Counters
from cdc_views.serve.http.limits import SLOT, Slots, Unsent, stopping
from cdc_views.serve.http.moments import NO_STORE, headers_of
from cdc_views.serve.http.shared import Shared
from cdc_views.serve.http.watch import EpochWatch
from cdc_views.serve.kinds.cache import CacheReader
from cdc_views.serve.kinds.search import SearchLimits
from cdc_views.serve.sql import QueryLimits, QueryProcesses
from cdc_views.serve.table_reader import TableReader
from cdc_views.serve.values.answer_size import within
from cdc_views.serve.values.time_limit import TimeLimit
from cdc_views.serve.watch.project_watch import ProjectWatch
from cdc_views.serve.watch.status import Status
from cdc_views.store.control import ControlRecord, KnownRecords
from cdc_views.store.reading import StoredTables

Found = TypeVar("Found")

# A key may be asked for a thousand times: its row is not copied that often before its size is looked at.
_PART_ROWS: Final = 50
_FEWER: Final = "ask for fewer rows, or for fewer columns by a query"


class HttpService:
    """One warehouse, read for many clients."""

    def __init__(self, warehouse: Path, settings: HttpSettings, project: Callable[[], Settings] | None = None) -> None:
        """`project` reads the settings of the project, if there are any: then its services are looked at, too."""
        self.warehouse = warehouse
        self.settings = settings
        self.known = KnownRecords(warehouse)
        self.stored = StoredTables(warehouse, settings.index_mb << 20, settings.rows_mb << 20)
        self.requests = Slots(settings.requests, "requests")
        self.waiting = Slots(settings.waiting, "requests that wait")
        self.followers = Slots(settings.followers, "followers of changes")
        self.unsent = Unsent(settings.unsent_mb << 20)
        self.counters = Counters(self.requests, self.waiting, self.followers, self.unsent)
        self.watch = EpochWatch(self.known)
        self._epochs = EpochFollower(self.known)
        self.project = ProjectWatch(warehouse, project)
        self._queries = QueryProcesses()
        self._query_limits = QueryLimits(
            settings.query_s, settings.query_memory_mb, settings.result_rows, settings.result_mb << 20
        )
        self.search_limits = SearchLimits(settings.query_memory_mb << 20, settings.query_s)
        self._looking: Shared[bytes] = Shared("status")
        self._caches: dict[str, CacheReader] = {}
        self._threads = ThreadPoolExecutor(settings.workers, "reads")

    def cache(self, epoch: PublishedEpoch, name: str) -> CacheReader:
        """The reader of a view of kind `cache`, which keeps its hot rows. Raises as `CacheReader.table`."""
        found = self._caches.get(name) or CacheReader(
            self._epochs, self.known, self.stored, name, self.settings.cache_mb
        )
        found.table(epoch)  # raises if there is no such cache, so that only names of caches are kept
        kept = self._caches.setdefault(name, found)
        kept.follow()
        return kept

    def query(self, epoch: PublishedEpoch, sql: str) -> pa.Table:
        """Answer a SELECT within the limits of the settings. Raises as `cdc_views.serve.sql.query`."""
        return self._queries.query(epoch, sql, self._query_limits)

    def identity(self, table: TableReader) -> list[object]:
        """Differs from that of each other version of each table, as values of JSON."""
        return [table.relative_path, table.version, self.stored.identity(table.relative_path, table.version)]

    def require_rows(self, limit: int) -> None:
        """Raise ResultTooLarge if a client asks for more rows than an answer may have."""
        if limit > self.settings.result_rows:
            raise ResultTooLarge(
                f"limit is {limit}, wanted at most {self.settings.result_rows}",
                hint="ask for fewer, or follow the changes, which begin with all rows",
            )

    def within(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of an answer. Raises ResultTooLarge as soon as they are larger than an answer may be.

        Raises QueryTooLong if they take longer than a query may.
        """
        limit = TimeLimit(self.settings.query_s, "the read", _FEWER)
        for batch in within(batches, self.settings.result_mb << 20, _FEWER):
            limit.check()
            yield batch

    def as_table(self, rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> pa.Table:
        """The rows of an answer as Arrow, with these of their columns. Raises ResultTooLarge, QueryTooLong."""
        parts = (rows[begin : begin + _PART_ROWS] for begin in range(0, len(rows), _PART_ROWS))
        batches = (arrow_rows(part, schema) for part in parts)
        return pa.Table.from_batches(self.within(batches), schema).combine_chunks()

    async def run(self, work: Callable[[], Found]) -> Found:
        """Run blocking work in one of the threads that read. Raises ServerBusy if the server stops."""
        with self._until_it_stops():
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def read(self, moment: Moment, work: Callable[[PublishedEpoch], Found]) -> tuple[PublishedEpoch, Found]:
        """Choose the epoch of a moment, after waiting for it without a thread, and run work over it in a thread.

        Raises BadMoment if it should wait for longer than the settings allow, ServerBusy if too many requests wait, and
        what `choose` raises.
        """
        await self._wait_for(moment)

        def choose_and_work() -> tuple[PublishedEpoch, Found]:
            epoch = choose(self.warehouse, replace(moment, at_least=None, timeout_s=None), self.known)
            return epoch, work(epoch)

        return await self.run(choose_and_work)

    async def describe(self, work: Callable[[], object]) -> Response:
        """Answer with what work returns, as JSON; see `run`."""
        return described(await self.run(lambda: encoded(work())))

    async def describe_at(self, moment: Moment, work: Callable[[PublishedEpoch], object]) -> Response:
        """Answer with what work returns for the epoch of a moment, as JSON; see `read`."""
        epoch, body = await self.read(moment, lambda epoch: encoded(work(epoch)))
        return described(body, headers_of(epoch, NO_STORE))

    async def status(self, describe: Callable[[Status], object]) -> Response:
        """Answer with the description of the status, as JSON.

        The services may take long to answer, so all requests wait for one look at them, in a thread of its own.
        """
        async with SLOT.get().lent(self.waiting):
            with self._until_it_stops():
                body = await self._looking.run(lambda: encoded(describe(self.project.status())))
        return described(body)

    @contextmanager
    def _until_it_stops(self) -> Iterator[None]:
        """Raise ServerBusy if the server stops before what the block waits for has begun."""
        if self.watch.is_closed:
            raise stopping()
        try:
            yield
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.watch.is_closed and task is not None and not task.cancelling():  # by `close`
                raise stopping() from None
            raise

    async def _wait_for(self, moment: Moment) -> None:
        limit_s = moment.timeout_s or 0
        if moment.at_least is not None and moment.timeout_s is None:
            limit_s = min(DEFAULT_TIMEOUT_S, self.settings.wait_s)
        if limit_s > self.settings.wait_s:
            raise BadMoment(
                f"wait is {limit_s:g} s, wanted at most {self.settings.wait_s:g}", hint="wait for less, and ask again"
            )
        position = None if moment.at_least is None else Lsn.parse(str(moment.at_least))
        if (position is None and not limit_s) or await self.run(lambda: self._has_published(position)):
            return
        if limit_s:
            async with SLOT.get().lent(self.waiting):
                if await self.watch.wait(lambda record: _holds(record, position), limit_s):
                    return
        if position is not None:
            last = PublishedEpoch(self.warehouse, await self.run(self.known.last))
            if not last.record.holds(position):
                raise not_reached(last, position, limit_s)

    def _has_published(self, position: Lsn | None) -> bool:
        """Whether there is an epoch, which holds everything up to the position."""
        with suppress(NothingPublished):
            return _holds(self.known.last(), position)
        return False

    def close(self) -> None:
        """End what waits; reads that run go on to their end."""
        if self.watch.is_closed:
            return
        self.watch.close()
        self._looking.close(self._end)
        self._queries.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _end(self) -> None:
        self.project.close()
        for cache in list(self._caches.values()):
            cache.close()


def _holds(record: ControlRecord, position: Lsn | None) -> bool:
    return position is None or record.holds(position)


async def service_of(request: Request) -> HttpService:
    """The service of the application."""
    service: HttpService = request.app.state.service
    return service


TheService = Annotated[HttpService, Depends(service_of)]
