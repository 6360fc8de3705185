"""The systems that are read: ours, and those that hold the same documents. Each has operations by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final

import psycopg
import pyarrow as pa
import pyarrow.csv as pcsv
import tantivy

import cdc_views
from bench.serve.data import Sizes, texts
from bench.serve.duckdb_packages import duckdb_packages, fts_extension
from cdc_views.errors import DownloadFailed

TOP: Final = 10
"""The documents of an answer."""

PAGE: Final = 20
"""The entries of a page of a timeline."""

Operation = Callable[[Random], object]

_DUCKDB: Final = Path(__file__).with_name("duckdb_process.py")
_COMMON: Final = (10, 100)
_DOCUMENTS: Final = "COPY (SELECT id, title, body FROM posts) TO STDOUT (FORMAT csv)"


class NotAvailable(Exception):
    """A system that cannot be measured on this machine; the message says why."""


class Searched(ABC):
    """A system that is read. Nothing is known to it before `prepare`."""

    name: ClassVar[str]

    def __init__(self, dsn: str, warehouse: Path, folder: Path, sizes: Sizes) -> None:
        """`folder` is for files of its own."""
        self.dsn = dsn
        self.warehouse = warehouse
        self.folder = folder
        self.sizes = sizes

    @abstractmethod
    def prepare(self) -> dict[str, Any]:
        """Open it, and fill it if it has documents of its own; returns figures of that. Raises NotAvailable."""

    @property
    @abstractmethod
    def operations(self) -> Mapping[str, Operation]:
        """What is done over and over again."""

    def scan_rows(self) -> int | None:
        """Read all documents with all columns, and return how many there are; None if it is not measured."""
        return None

    def search(self, text: str) -> object:
        """The best documents for any of the words."""
        raise NotImplementedError

    @property
    def searches(self) -> dict[str, Operation]:
        """A search for two words of a rank of 100 or more, and one for two words that many documents have."""
        return {
            "search": lambda random: self.search(texts(random)),
            "search_common": lambda random: self.search(texts(random, *_COMMON)),
        }


class Ours(Searched):
    """A reader of the warehouse, as `cdc_views.open` gives it."""

    name = "cdc_views"

    def prepare(self) -> dict[str, Any]:
        """See Searched."""
        self._reader = cdc_views.open(self.warehouse)
        self._cache = self._reader.cache("product_cache")
        self._cache.follow()
        return {}

    @property
    def operations(self) -> Mapping[str, Operation]:
        """See Searched."""
        return {**self.searches, "timeline": self._timeline, "cache": self._get}

    def search(self, text: str) -> object:
        """See Searched."""
        return self._reader.search("post_search", text, limit=TOP)

    def scan_rows(self) -> int | None:
        """See Searched."""
        return int(self._reader.table("post_search").arrow().num_rows)

    def _timeline(self, random: Random) -> object:
        return self._reader.timeline("home_timeline", 1 + random.randrange(self.sizes.followers), limit=PAGE)

    def _get(self, random: Random) -> object:
        return self._cache.get(1 + random.randrange(self.sizes.products))


class Postgres(Searched):
    """The source itself: tsvector with GIN, the query of the timeline, and rows by their primary key."""

    name = "postgres"
    _SEARCH: ClassVar = (
        f"SELECT p.* FROM (SELECT id, {{rank}}(words, query) AS score FROM bench.documents, "
        f"to_tsquery('simple', %s) query WHERE words @@ query ORDER BY score DESC, id LIMIT {TOP}) best "
        "JOIN posts p USING (id) ORDER BY score DESC, id"
    )
    _TIMELINE: ClassVar = (
        "SELECT p.id, p.author_id, u.name, p.title, p.created_at FROM follows f JOIN posts p ON p.author_id = "
        "f.followee_id JOIN users u ON u.id = p.author_id WHERE f.follower_id = %s "
        f"ORDER BY p.created_at DESC, p.id DESC LIMIT {PAGE}"
    )
    _GET: ClassVar = "SELECT id, sku, description, price, stock FROM products WHERE id = %s"

    def prepare(self) -> dict[str, Any]:
        """See Searched."""
        self._connection = psycopg.connect(self.dsn, autocommit=True)
        return {}

    @property
    def operations(self) -> Mapping[str, Operation]:
        """See Searched."""
        return {
            **self.searches,
            "search_density": lambda random: self._rows(self._SEARCH.format(rank="ts_rank_cd"), _any(texts(random))),
            "timeline": lambda random: self._rows(self._TIMELINE, 1 + random.randrange(self.sizes.followers)),
            "cache": lambda random: self._rows(self._GET, 1 + random.randrange(self.sizes.products)),
        }

    def search(self, text: str) -> object:
        """See Searched."""
        return self._rows(self._SEARCH.format(rank="ts_rank"), _any(text))

    def scan_rows(self) -> int | None:
        """See Searched."""
        with self._connection.cursor() as cursor, cursor.copy(_DOCUMENTS) as blocks:
            return int(_table(blocks).num_rows)

    def _rows(self, query: str, value: object) -> list[Any]:
        return self._connection.execute(query.encode(), (value,)).fetchall()


class Tantivy(Searched):
    """An index of tantivy in a folder, of the documents of one moment: it does not follow the load."""

    name = "tantivy"
    _WRITER_BYTES: ClassVar = 512 << 20
    _UPDATES: ClassVar = 5

    def prepare(self) -> dict[str, Any]:
        """See Searched. Also measures how long one changed document takes until it is found."""
        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("id", stored=True, indexed=True)
        builder.add_text_field("title", stored=True)
        builder.add_text_field("body", stored=True)
        self.folder.mkdir()
        self._index = tantivy.Index(builder.build(), path=str(self.folder))
        self._writer = self._index.writer(self._WRITER_BYTES)
        began = time.monotonic()
        for row in _documents(self.dsn).to_pylist():
            self._writer.add_document(tantivy.Document(**row))
        self._seen()
        built_s = time.monotonic() - began
        return {"built_s": round(built_s, 2), "update_ms": [self._update_ms(n) for n in range(self._UPDATES)]}

    @property
    def operations(self) -> Mapping[str, Operation]:
        """See Searched."""
        return self.searches

    def search(self, text: str) -> object:
        """See Searched."""
        query = self._index.parse_query(text, ["title", "body"], field_boosts={"title": 2.0})
        searcher = self._index.searcher()
        return [searcher.doc(place).to_dict() for _, place in searcher.search(query, TOP).hits]

    def _seen(self) -> None:
        self._writer.commit()
        self._index.reload()

    def _update_ms(self, number: int) -> float:
        began = time.monotonic()
        self._writer.delete_documents_by_term("id", 1)
        self._writer.add_document(tantivy.Document(id=1, title=f"updated {number}", body="updated"))
        self._seen()
        assert self.search(f"+title:updated +title:{number}")
        return round((time.monotonic() - began) * 1000, 2)


class DuckDb(Searched):
    """DuckDB's extension `fts`, on a table of the documents of one moment, in a process of its own."""

    name = "duckdb"

    def prepare(self) -> dict[str, Any]:
        """See Searched."""
        try:
            packages = duckdb_packages()
        except DownloadFailed as error:
            raise NotAvailable(f"duckdb: {error.message}") from error
        self.folder.mkdir()
        documents = self.folder / "documents.csv"
        documents.write_bytes(_csv(self.dsn))
        command = [sys.executable, str(_DUCKDB), str(fts_extension(packages)), str(documents), str(TOP)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(packages)},
        )  # fmt: skip
        built: dict[str, Any] = self._answer()
        return built

    @property
    def operations(self) -> Mapping[str, Operation]:
        """See Searched."""
        return self.searches

    def search(self, text: str) -> object:
        """See Searched."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise NotAvailable(f"duckdb: its process has ended with {self._process.wait()}")
        return json.loads(line)


SYSTEMS: Final[dict[str, type[Searched]]] = {each.name: each for each in (Ours, Postgres, Tantivy, DuckDb)}
BASELINES: Final = tuple(name for name in SYSTEMS if name != Ours.name)


def _any(text: str) -> str:
    """The words as a query of Postgres that one of them meets."""
    return " | ".join(text.split())


def _documents(dsn: str) -> pa.Table:
    return _table([_csv(dsn)])


def _csv(dsn: str) -> bytes:
    with psycopg.connect(dsn) as source, source.cursor() as cursor, cursor.copy(_DOCUMENTS) as blocks:
        return b"".join(blocks)


def _table(blocks: Any) -> pa.Table:
    content = b"".join(blocks)
    names = ["id", "title", "body"]
    return pcsv.read_csv(pa.BufferReader(content), read_options=pcsv.ReadOptions(column_names=names))
