"""A view of saved searches equals every stored query run on every document, at the cost of what changes."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdc_views.base.names import TableName
from cdc_views.config import StoreSettings
from cdc_views.engine.views.planning import plan_of
from cdc_views.engine.views.saved import kept, matches, searches_of
from cdc_views.engine.views.saved.matches import SavedWork
from cdc_views.errors import BadView
from cdc_views.plan.compiled import compile_view
from cdc_views.plan.explain import explain
from cdc_views.testing.rows import Row
from cdc_views.testing.saved_searches import saved_from_scratch
from cdc_views.views.definition import parse_view
from cdc_views.views.graph import ViewGraph
from tests.unit.search.saved_engine import (
    COLUMNS,
    DOCUMENTS,
    INDEX,
    OPTIONS,
    SEARCHES,
    SELECT,
    SavedEngine,
    saved_view,
)

WORDS = ["cat", "dog", "catalog", "bird", "中文", "wi-fi"]
QUERIES = ["cat", "cat dog", "+cat +dog", "+cat -dog", "ca*", "+ca* -bird", '"cat dog"', "title:cat", "-cat", "title:",
           None, '"dog', "author:x", "wi-fi", "中文 -title:ca*", "+bird cat dog"]  # fmt: skip
FILTERS = [None, None, "likes>=2", "likes<2\npost_id>3", "likes=many", "stars=1"]


class History:
    """Random epochs: documents and queries that come, change and go."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._known: dict[str, set[int]] = {"searches": set(), "documents": set()}

    def epoch(self) -> dict[str, tuple[list[Row], list[Row]]]:
        """The arguments of an epoch: mostly a few changes, sometimes on one side alone."""
        sides = self._random.choice([["searches"], ["documents"], ["searches", "documents"], ["documents", "searches"]])
        return {side: self._changes(side) for side in sides}

    def _changes(self, side: str) -> tuple[list[Row], list[Row]]:
        known, chosen = self._known[side], self._random.sample(range(9), self._random.randint(1, 3))
        gone = [number for number in chosen if number in known and self._random.random() < 0.4]
        put = [number for number in chosen if number not in gone]
        self._known[side] = (known - set(gone)) | set(put)
        row = self._search if side == "searches" else self._document
        return [row(number) for number in put], [(number,) for number in gone]

    def _search(self, number: int) -> Row:
        owner, query = self._random.choice(["ada", None]), self._random.choice(QUERIES)
        return (number, owner, query, self._random.choice(FILTERS))

    def _document(self, number: int) -> Row:
        title, body = (" ".join(self._random.choices(WORDS, k=self._random.randint(0, 4))) or None for _ in range(2))
        return (number, title, body, self._random.choice([None, 0, 1, 2, 3]))


@pytest.mark.parametrize("seed", [1, 3])
def test_view_equals_all_queries_on_all_documents_after_every_epoch(tmp_path: Path, seed: int) -> None:
    engine, history = SavedEngine(tmp_path), History(seed)
    ways, most = [], 0
    for _ in range(10):
        engine.epoch(**history.epoch())
        assert engine.rows() == engine.from_scratch()
        ways.append(engine.way)
        most = max(most, len(engine.rows()))
    assert ways == ["full", *["keys"] * 9]
    assert most > 5


def test_view_that_forgets_the_rows_of_a_changed_document_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SavedEngine(tmp_path)
    engine.epoch(([(1, "ada", "cat", None)], []), ([(1, "cat", None, 0)], []))
    right = matches._stored

    def forgetting(work: SavedWork, queries: Any, documents: Any) -> Any:
        return right(work, queries, documents.slice(0, 0))

    monkeypatch.setattr(matches, "_stored", forgetting)
    engine.epoch(documents=([(1, "dog", None, 0)], []))
    assert engine.rows() != engine.from_scratch()


def test_document_that_changes_costs_what_could_match_it_and_not_all_queries(tmp_path: Path) -> None:
    engine = SavedEngine(tmp_path)
    engine.epoch(([(n, "ada", f"+shared +word{n}", None) for n in range(1000)], []), ([(1, "shared", None, 0)], []))
    engine.epoch(documents=([(2, "shared word7", "word8", 0)], []))
    assert engine.rows() == [(7, "ada", 2, None), (8, "ada", 2, None)]
    assert engine.way == "keys"
    assert engine.work.keys_looked_up < 10
    assert engine.work.rows_read < 10
    engine.epoch(documents=([], [(2,)]))
    assert engine.rows() == []
    assert engine.work.keys_looked_up < 10


def test_change_of_nothing_that_queries_mean_costs_nothing(tmp_path: Path) -> None:
    engine = SavedEngine(tmp_path)
    engine.epoch(([(1, "ada", "cat", None)], []), ([(1, "cat", None, 0)], []))
    before = engine.published.tables["alerts"].version
    engine.kept.clear()
    engine.epoch(([(1, "ada", "cat", None)], []), ([(1, "cat", None, 0)], []))  # new versions with the same rows
    assert (engine.way, engine.published.tables["alerts"].version) == ("keys", before)
    assert engine.work.keys_looked_up == 0
    assert engine.kept["alerts"]._kept is None  # the queries were not read


def test_more_rows_than_the_driver_holds_are_written_as_they_are_found(tmp_path: Path) -> None:
    engine = SavedEngine(tmp_path, StoreSettings(driver_rows=20))
    engine.epoch(([(n, "ada", "cat", None) for n in range(5)], []), ([(1, "cat", None, 0)], []))
    engine.epoch(documents=([(n, "cat", None, 0) for n in range(2, 7)], []))
    assert (engine.way, engine.rows()) == ("full", engine.from_scratch())


def test_query_that_changes_reads_the_postings_of_its_words(tmp_path: Path) -> None:
    engine = SavedEngine(tmp_path)
    engine.epoch(([(1, "ada", "word3", None)], []), ([(n, f"word{n}", "x", n) for n in range(1000)], []))
    engine.epoch(([(2, "bob", "word7 word8", "likes=8"), (1, "ada", "word4", None)], []))
    assert engine.rows() == [(1, "ada", 4, None), (2, "bob", 8, None)]
    assert engine.way == "keys"
    assert engine.work.keys_looked_up + engine.work.rows_found < 20


def test_queries_beyond_their_memory_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_BATCH_ROWS", 2)
    engine, history = SavedEngine(tmp_path, StoreSettings(query_memory_mb=0)), History(11)
    for _ in range(6):
        engine.epoch(**history.epoch())
        assert engine.rows() == engine.from_scratch()
    assert engine.way == "keys"


def test_all_documents_are_matched_where_too_much_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "_FEW_QUERIES", 0)
    monkeypatch.setattr(matches, "ROWS_PER_FILE", 1)
    engine, history = SavedEngine(tmp_path), History(12)
    for number in range(100, 103):
        engine.epoch(**history.epoch())
        engine.epoch(([(number, "eve", "cat dog", None)], []))
        assert (engine.way, engine.rows()) == ("full", engine.from_scratch())
    engine.epoch(documents=([(50, "cat", None, 1)], []))
    assert (engine.way, engine.rows()) == ("keys", engine.from_scratch())


def test_epoch_that_was_rolled_back_leaves_no_query_in_memory(tmp_path: Path) -> None:
    engine, history = SavedEngine(tmp_path), History(13)
    for _ in range(6):
        engine.epoch(**history.epoch())
        engine.epoch(
            ([(100, "eve", "cat dog bird", None), (101, None, "-bad", None)], [(0,), (1,), (2,)]), publish=False
        )
        engine.roll_back()
        assert engine.rows() == engine.from_scratch()
        engine.epoch(documents=([(50, "cat dog bird", None, 1)], []))
        assert engine.rows() == engine.from_scratch()


def test_malformed_query_is_a_row_without_a_document_until_it_is_right(tmp_path: Path) -> None:
    engine = SavedEngine(tmp_path)
    engine.epoch(([(1, "ada", '"dog', None), (2, "bob", "cat", "stars=1")], []), ([(1, "cat", "dog", 0)], []))
    phrase, column = "the phrase at character 1 has no closing quotation mark", 'unknown column "stars"'
    assert engine.rows() == [(1, "ada", None, phrase), (2, "bob", None, column)]
    engine.epoch(([(1, "ada", "dog", None)], [(2,)]))
    assert engine.rows() == [(1, "ada", 1, None)]
    engine.epoch(([(1, "ada", "-dog", None)], []))
    assert engine.rows() == [(1, "ada", None, 'the query has only words with "-"')]


def test_query_that_no_document_with_a_text_for_a_key_matches_has_no_row() -> None:
    _, view = saved_view()
    schema = DOCUMENTS.schema.set(0, pa.field("post_id", pa.string()))
    searches = searches_of(view, {"public.searches": SEARCHES, "post_search": replace(DOCUMENTS, schema=schema)})
    queries = pa.Table.from_pylist([{"id": 1, "owner": "ada", "query": "cat", "filter": None}], SEARCHES.schema)
    for title, wanted in (("dog", []), ("cat", [(1, "ada", "a", None)])):
        documents = pa.Table.from_pylist([{"post_id": "a", "title": title, "body": None, "likes": 0}], schema)
        assert saved_from_scratch(searches, queries, documents) == wanted


def test_document_without_a_key_is_told_from_a_malformed_query(tmp_path: Path) -> None:
    engine = SavedEngine(tmp_path)
    engine.epoch(([(1, "ada", "cat", None), (2, "bob", "-cat", None)], []), ([(1, "cat", None, 0)], []))
    engine.epoch(documents=([(None, "cat", None, 0)], []))
    assert engine.rows() == engine.from_scratch()
    assert (1, "ada", None, None) in engine.rows()
    engine.epoch(documents=([(None, "dog", None, 0)], []))
    assert engine.rows() == engine.from_scratch()
    assert len(engine.rows()) == 2


def test_postings_that_are_lost_lead_to_all_documents(tmp_path: Path) -> None:
    engine = SavedEngine(tmp_path)
    engine.epoch(([(1, "ada", "cat", None)], []), ([(n, "cat", None, 0) for n in range(3)], []))
    postings = engine.tables.specs["_cv_post_search_postings"].path
    for file in (tmp_path / postings).glob("*.parquet"):
        file.unlink()
    engine.parts = []
    engine.epoch(([(2, "bob", "cat", None)], []))
    assert (engine.way, engine.rows()) == ("full", engine.from_scratch())


@pytest.mark.parametrize(
    ("options", "select", "problem"),
    [
        (OPTIONS, "SELECT id, query FROM searches WHERE id > 1", "2:1: the SELECT of saved searches does more than"),
        (OPTIONS, "SELECT * FROM searches", "2:1: the SELECT of saved searches does more than"),
        (OPTIONS, "SELECT id, upper(query) AS query FROM searches", "2:1: the SELECT of saved searches does more than"),
        (OPTIONS, "SELECT DISTINCT id, query FROM searches", "2:1: the SELECT of saved searches does more than"),
        (
            OPTIONS,
            "SELECT s.id, s.query FROM searches s JOIN posts p ON p.id = s.id",
            "2:1: the SELECT of saved searches",
        ),
        (OPTIONS, "SELECT id query FRM searches", '2:17: syntax error at or near "FRM"'),
        (OPTIONS, "SELECT owner, query, filter FROM searches", "1:117: stored queries need a key"),
        (OPTIONS, "SELECT id, query FROM searches", '1:135: option "filter": the view has no column "filter"'),
        (OPTIONS, "SELECT id, owner AS error, query, filter FROM searches", '1:98: column "error" of the SELECT'),
        (OPTIONS.replace("'post_search'", "'nope'"), SELECT, '1:26: unknown table "nope"'),
        (
            OPTIONS.replace("'post_search'", "'posts'").replace("post_id", "id"),
            SELECT,
            '1:72: "public.posts" is not a view',
        ),
        (OPTIONS.replace("'query'", "'search_id'"), SELECT, "1:117: stored queries need a key"),
    ],
)
def test_view_that_is_no_saved_search_is_refused(options: str, select: str, problem: str) -> None:
    specs = {
        "public.searches": SEARCHES,
        "post_search": DOCUMENTS,
        "public.posts": replace(SEARCHES, name="public.posts"),
    }
    with pytest.raises(BadView) as caught:
        searches_of(saved_view(options, select)[1], specs)
    assert caught.value.message.startswith(f"alerts.sql:{problem}")


def test_queries_of_at_most_one_row_are_refused() -> None:
    top = "CREATE MATERIALIZED VIEW top AS SELECT max(id) AS search_id, max(query) AS query FROM searches"
    options, select = OPTIONS.replace(", filter = 'filter'", ""), "SELECT search_id, query FROM top"
    alerts = f"CREATE MATERIALIZED VIEW alerts WITH (kind = 'saved_searches', {options}) AS {select}"
    texts = {"post_search": INDEX, "top": top, "alerts": alerts}
    definitions = [parse_view(text, Path(f"{name}.sql")) for name, text in texts.items()]
    graph = ViewGraph(definitions, [TableName.parse(name) for name in COLUMNS])
    columns = {**COLUMNS, "top": {"search_id": "int8", "query": "text"}}
    keys: dict[str, tuple[str, ...]] = {**dict.fromkeys(COLUMNS, ("id",)), "top": (), "post_search": ("post_id",)}
    with pytest.raises(BadView, match="stored queries need a key, and these are at most one row"):
        compile_view(definitions[2], graph, columns, keys)


def test_explain_says_how_the_rows_are_found() -> None:
    view = saved_view()[1]
    explained = explain(view, plan_of(view, {}))
    assert (explained.strategy, explained.key) == ("KEYS", ("search_id", "post_id"))
    assert "the queries that are filed under one of their terms" in explained.reason


def test_analyzer_of_another_version_gives_another_table(monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved_view()
    monkeypatch.setattr("cdc_views.search.analyzer._VERSION", 1000)
    after = saved_view()
    assert (before[0].fingerprint, before[1].fingerprint != after[1].fingerprint) == (after[0].fingerprint, True)
