"""The Python client: reads a warehouse at an epoch, without an engine, a JVM or a project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from typing import Final, Unpack

import pyarrow as pa

from cdc_views.base.lsn import Lsn
from cdc_views.search.columns import FilterValues
from cdc_views.serve.changes.feed import ChangeItem, changes
from cdc_views.serve.epochs.follower import EpochFollower
from cdc_views.serve.epochs.moment import Moment, MomentArguments, choose
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.kinds.cache import DEFAULT_MEMORY_MB, CacheReader
from cdc_views.serve.kinds.search import SearchRequest, SearchResult, search
from cdc_views.serve.kinds.timeline import PAGE_ENTRIES, TimelinePage, read_page
from cdc_views.serve.sql import query
from cdc_views.serve.table_reader import TableReader
from cdc_views.store.control import KnownRecords, TableVersion
from cdc_views.store.reading import CACHED_BYTES, StoredTables
from cdc_views.store.storage import folder_at, require_folder

INDEX_MB: Final = 256
ROWS_MB: Final = CACHED_BYTES >> 20
"""The memory for indexes of a reader, unless it says."""


class WarehouseReader:
    """A warehouse to read from. What `cdc_views.open` returns; for several threads.

    Each method reads the last published epoch, or that of the moment that its keyword arguments give: `at`,
    `at_least`, `timeout_s`, `max_age` (see Moment). For several reads of one epoch, call `epoch` once. All of them
    raise NothingPublished, NotPublishedYet, EpochTooOld, EpochNotRetained, BadMoment, BadLsn and WarehouseUnusable.
    """

    def __init__(self, warehouse: str | PathLike[str], index_mb: int = INDEX_MB, rows_mb: int = ROWS_MB) -> None:
        """`warehouse` is its folder, or the file: URL of it. Raises BadWarehouse, WarehouseUnusable if it is no folder.

        Indexes, by which rows are found, take at most `index_mb` of memory: up to 24 bytes for each row of a table from
        which a second row is read. Decoded rows, for which later reads need no file, take at most `rows_mb` of the
        folder for temporary files: searches of a large index need more than the default (docs/search.md).
        """
        self.warehouse = folder_at(warehouse)
        require_folder(self.warehouse)
        self._stored = StoredTables(self.warehouse, index_mb << 20, rows_mb << 20)
        self._known = KnownRecords(self.warehouse)
        self._epochs = EpochFollower(self._known)

    def epoch(self, **moment: Unpack[MomentArguments]) -> EpochReader:
        """One epoch, which stays the same however many later ones are published."""
        return self._at(Moment(**moment))

    def table(self, name: str, **moment: Unpack[MomentArguments]) -> TableReader:
        """A view, or a mirror (`schema.table`). Raises UnknownView, ViewFailed, SchemaChanged, TableTruncated."""
        return self.epoch(**moment).table(name)

    def query(self, sql: str, **moment: Unpack[MomentArguments]) -> pa.Table:
        """The answer to a SELECT of DuckDB over the tables of one epoch; see EpochReader.query."""
        return self.epoch(**moment).query(sql)

    def get(self, name: str, *key: object, **moment: Unpack[MomentArguments]) -> dict[str, object] | None:
        """The row of a view or mirror with a key, by column; None if there is none. See TableReader.get."""
        return self.epoch(**moment).get(name, *key)

    def get_many(
        self, name: str, keys: Sequence[Sequence[object]], **moment: Unpack[MomentArguments]
    ) -> list[dict[str, object] | None]:
        """The rows with these keys, in their order, all of one epoch. See TableReader.get_many."""
        return self.epoch(**moment).table(name).get_many(keys)

    def cache(self, name: str, memory_mb: int = DEFAULT_MEMORY_MB) -> CacheReader:
        """A view of kind `cache`, to read many rows from; hot rows take at most `memory_mb` of memory."""
        return CacheReader(self._epochs, self._known, self._stored, name, memory_mb)

    def timeline(
        self,
        name: str,
        owner: object,
        *,
        limit: int = PAGE_ENTRIES,
        before: str | None = None,
        **moment: Unpack[MomentArguments],
    ) -> TimelinePage:
        """A page of a view of kind `timeline`; see EpochReader.timeline."""
        return self.epoch(**moment).timeline(name, owner, limit=limit, before=before)

    def search(
        self,
        index: str,
        text: str,
        *,
        limit: int = 10,
        filter: FilterValues | None = None,  # noqa: A002 (what it is called in searches)
        sort: str | Iterable[str] | None = None,
        cursor: str | None = None,
        explain: bool = False,
        **moment: Unpack[MomentArguments],
    ) -> SearchResult:
        """The documents of a search index that match a text, best first; docs/search.md has the query language.

        `filter`: values by column, or conditions such as ("created_at", ">=", time). `sort`: a column, "-column" for
        descending, or several. `cursor`: that of a result, for the page after it; it is of the same epoch. `explain`
        adds what each score is the sum of.

        Raises BadSearch, BadPage, WrongKind, AnalyzerDiffers, UnknownView, ViewFailed.
        """
        request = SearchRequest.of(index, text, limit=limit, filter=filter, sort=sort, cursor=cursor, explain=explain)
        return self._at(request.moment(Moment(**moment))).answer(request)

    def changes(self, name: str, since: str | None = None, *, follow: bool = False) -> Iterator[ChangeItem]:
        """The changes of a view or mirror, in the order of the epochs, each exactly once.

        Without `since`, the first item is a TableSnapshot. Then each item is an EpochChanges: the rows that one epoch
        has inserted, updated and deleted. Each has a `token`: give that of the last item that you have handled as
        `since` to resume after it. "now" begins with the changes after the last published epoch.

        A TableSnapshot comes again, with a `reason`, where the changes are not known: the table was rebuilt, swapped,
        reset or redefined, its epochs are no longer retained, or an epoch has changed more than two million rows.

        The last item is of the last published epoch, and may be empty. With `follow`, later ones come as they are
        published; an empty item comes once a minute, for its token.

        Raises BadToken, NothingPublished, UnknownView, WarehouseUnusable; after the changes before it also ViewFailed,
        SchemaChanged or TableTruncated, if the table has failed or is stopped.
        """
        return changes(self.warehouse, self._stored, name, since, follow=follow)

    def _at(self, moment: Moment) -> EpochReader:
        return EpochReader(choose(self.warehouse, moment, self._known), self._stored)


class EpochReader:
    """All tables as of one position of the source."""

    def __init__(self, published: PublishedEpoch, stored: StoredTables) -> None:
        self._published = published
        self._stored = stored

    @property
    def number(self) -> int:
        """The number of the epoch. Later epochs have higher numbers, and none is used twice."""
        return self._published.number

    @property
    def position(self) -> Lsn:
        """The LSN up to which the epoch holds everything that was committed, and after which it holds nothing."""
        return self._published.position

    @property
    def committed_at(self) -> datetime:
        """When the source was as the epoch shows it, by the source's clock."""
        return self._published.committed_at

    @property
    def age_s(self) -> float:
        """How long ago that was, in seconds."""
        return self._published.age_s

    @property
    def tables(self) -> Mapping[str, TableVersion]:
        """The mirrors (`schema.table`) and views: folder below the warehouse, Delta version, status."""
        return self._published.tables

    @property
    def readable(self) -> Mapping[str, TableVersion]:
        """Those of `tables` that have neither failed nor are stopped."""
        return self._published.readable

    def table(self, name: str) -> TableReader:
        """A view, or a mirror (`schema.table`). Raises UnknownView, ViewFailed, SchemaChanged, TableTruncated."""
        return TableReader(self._published, name, self._stored)

    def query(self, sql: str) -> pa.Table:
        """The answer to a SELECT of DuckDB, which names views as `name` and mirrors as `schema.table`, or as `table`.

        Raises BadQuery, UnknownView, ViewFailed, SchemaChanged, TableTruncated, TableUnavailable.
        """
        return query(self._published, sql)

    def get(self, name: str, *key: object) -> dict[str, object] | None:
        """The row of a view or mirror with a key, by column; None if there is none. See TableReader.get."""
        return self.table(name).get(*key)

    def timeline(
        self, name: str, owner: object, *, limit: int = PAGE_ENTRIES, before: str | None = None
    ) -> TimelinePage:
        """The first `limit` entries of an owner in the view's order, or those after a page's `cursor`.

        An entry that is in the timeline of both epochs, and after the cursor in both, is on the page, and none that is
        before it in both: whatever came and went in between. Raises UnknownView, ViewFailed, WrongKind, BadPage,
        BadKey, TableUnavailable.
        """
        return read_page(self._published, self._stored, name, owner, limit, before)

    def search(
        self,
        index: str,
        text: str,
        *,
        limit: int = 10,
        filter: FilterValues | None = None,  # noqa: A002 (what it is called in searches)
        sort: str | Iterable[str] | None = None,
        cursor: str | None = None,
        explain: bool = False,
    ) -> SearchResult:
        """The documents of a search index that match a text; see WarehouseReader.search."""
        return self.answer(
            SearchRequest.of(index, text, limit=limit, filter=filter, sort=sort, cursor=cursor, explain=explain)
        )

    def answer(self, request: SearchRequest) -> SearchResult:
        """The answer to a search request that is checked already."""
        return search(self._published, self._stored, request)

    def __repr__(self) -> str:
        return f"<epoch {self.number} at {self.position}>"
