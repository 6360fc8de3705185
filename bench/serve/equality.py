"""Compares what is read of the engine's tables with Postgres, while nobody writes."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any, Final

import psycopg

import cdc_views
from bench import command
from bench.equality import differences as mirror_differences
from bench.equality import published_mirrors
from bench.rig import Rig
from bench.serve.data import texts
from bench.serve.searched import TOP
from bench.systems import CdcViews
from cdc_views.demo.check import check
from cdc_views.serve.reader import WarehouseReader
from cdc_views.store.control import last_published
from cdc_views.testing.postgres.compare import Difference

_BM25: Final = Path(__file__).with_name("bm25.sql").read_text().encode()
_MATCHING: Final = b"SELECT count(*) FROM bench.documents WHERE words @@ to_tsquery('simple', %s)"
_PRECISION: Final = 1e-9


class Serving(CdcViews):
    """The engine with the views of this benchmark. `questions` has the SQL of each for Postgres."""

    def __init__(self, rig: Rig, questions: Path, profile: Path | None) -> None:
        super().__init__(rig, profile=profile)
        self._questions = questions

    def _differences(self) -> list[Difference]:
        """The rows in which mirrors and views differ from Postgres now. Raises NothingPublished."""
        tables = last_published(self.warehouse).tables
        views = {name: table for name, table in tables.items() if table.kind == "view"}
        found = check(self._rig.dsn, self.warehouse, views, self._questions)
        return [*mirror_differences(self._rig.dsn, published_mirrors(self.warehouse)), *found]


def searches_equal(dsn: str, warehouse: Path, count: int) -> bool:
    """Whether some searches give the documents and scores of BM25 from scratch, and as many as Postgres matches."""
    reader, random = cdc_views.open(warehouse), Random(2)
    with psycopg.connect(dsn) as source:
        return all(_is_equal(source, reader, texts(random)) for _ in range(count))


def _is_equal(source: psycopg.Connection[Any], reader: WarehouseReader, text: str) -> bool:
    words = text.split()
    wanted = source.execute(_BM25, (words, TOP)).fetchall()
    total = source.execute(_MATCHING, (" | ".join(words),)).fetchone()
    found = reader.search("post_search", text, limit=TOP)
    scores = [(hit.score, score) for hit, (_, score) in zip(found.hits, wanted, strict=False)]
    is_equal = (
        total == (found.total,)
        and len(found.hits) == len(wanted)
        and all(math.isclose(ours, theirs, rel_tol=_PRECISION) for ours, theirs in scores)
        and _keys((hit.key, hit.score) for hit in found.hits) == _keys(wanted)
    )
    if not is_equal:
        command.tell(f'search "{text}": {found.total} documents, wanted {total}; {scores}')
    return is_equal


def _keys(ranked: Any) -> list[int]:
    """The documents in order; those with about the same score by key, since both sides round in their own way."""
    return [key for _, key in sorted((-round(score, 6), key) for key, score in ranked)]
