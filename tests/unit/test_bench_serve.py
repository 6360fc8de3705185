"""The benchmark of reads without services: its texts, its figures, and the baselines that need none."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from bench.serve import searched
from bench.serve.data import RANKS, Sizes, texts, word
from bench.serve.figures import fanout_figures, reading_figures
from bench.serve.reading import Readings, read
from bench.serve.searched import DuckDb, NotAvailable, Searched, Tantivy
from cdc_views.search.analyzer import Analyzer

SIZES = Sizes(100, 10)
DOCUMENTS = pa.table({"id": [1, 2, 3], "title": ["ada", "bob", "cat"], "body": ["bob", "dog", "dog cat"]})


@pytest.fixture
def documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "_documents", lambda dsn: DOCUMENTS)


def test_words_are_different_and_one_term_each() -> None:
    words = {word(rank) for rank in range(1, RANKS + 1)}
    assert len(words) == RANKS
    analyzer = Analyzer("none", ())
    for rank in (1, 100, 99_999):
        assert [token.term for token in analyzer.tokens(word(rank))] == [word(rank)]


def test_texts_are_two_words_of_the_wanted_ranks() -> None:
    known = {word(rank) for rank in range(10, 101)}
    assert {each for _ in range(50) for each in texts(Random(1), 10, 100).split()} <= known
    assert re.fullmatch(r"w[a-z]{4} w[a-z]{4}", texts(Random(1)))


@pytest.mark.usefixtures("documents")
def test_tantivy_finds_the_best_documents_and_an_update_of_one(tmp_path: Path) -> None:
    system = Tantivy("", tmp_path, tmp_path / "index", SIZES)
    facts = system.prepare()
    assert len(facts["update_ms"]) == 5
    found: Any = system.search("bob dog")
    assert [row["id"] for row in found] == [[2], [3]]  # document 1 was updated
    assert system.search("updated") != []


def test_packages_of_duckdb_that_cannot_be_had_are_not_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDC_VIEWS_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(NotAvailable, match=r"^duckdb: ERROR: No matching distribution found for duckdb==1\.5\.5"):
        DuckDb("", tmp_path, tmp_path, SIZES).prepare()


def test_readings_of_the_warm_up_do_not_count(tmp_path: Path) -> None:
    class Counted(Searched):
        name = "counted"
        calls = 0

        def prepare(self) -> dict[str, Any]:
            return {}

        @property
        def operations(self) -> dict[str, searched.Operation]:
            return {"search": self._count}

        def _count(self, random: Random) -> None:
            self.calls += 1

    system, found = Counted("", tmp_path, tmp_path, SIZES), Readings()
    read({"counted": system}, {"counted": found}, 0.02, 0.02)
    assert 0 < len(found.ms["search"]) < system.calls
    read({"counted": system}, {"counted": Readings()}, 0.01, 0)


def test_figures_have_a_prefix_for_baselines_and_say_what_is_missing() -> None:
    ours = {"ms": {"search": [1.0, 2.0, 3.0]}, "first_ms": {"search": 9.0}, "facts": {"scan_rows_per_s": 5},
            "missing": None}  # fmt: skip
    missing = {"ms": {}, "first_ms": {}, "facts": {}, "missing": "duckdb: no network"}
    figures = reading_figures({"cdc_views": ours, "postgres": ours, "duckdb": missing})
    assert figures["search_p50_ms"] == figures["postgres_search_p50_ms"] == 2.0
    assert figures["search_max_ms"] == 3.0
    assert figures["postgres_scan_rows_per_s"] == 5
    assert figures["duckdb_available"] == "not available: duckdb: no network"
    assert [name for name in figures if name.startswith("duckdb")] == ["duckdb_available"]


def test_fanout_is_the_median_and_the_longest() -> None:
    assert fanout_figures([3.0, 1.0, 2.0]) == {
        "fanout_posts_s": [3.0, 1.0, 2.0],
        "fanout_p50_s": 2.0,
        "fanout_max_s": 3.0,
    }
