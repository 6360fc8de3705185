"""Stored queries: a document matches one if an index of all documents finds it, and few queries are looked at."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_views.errors import BadSearch
from cdc_views.search import IndexOptions, QueryColumns, QueryIndex, StoredQuery
from tests.unit.search.memory_index import MemoryIndex
from tests.unit.search.test_search_query import DOCUMENTS, OPTIONS

COLUMNS = QueryColumns(("id",), "query", "filter", ("id", "owner"))
QUERIES = pa.schema([("id", pa.int64()), ("owner", pa.string()), ("query", pa.string()), ("filter", pa.string())])
SCHEMA = pa.schema([("id", pa.int64()), ("title", pa.string()), ("body", pa.string()), ("likes", pa.int32())])
WORDS = ["ada", "bob", "cat", "catalog", "the"]
texts = st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join))
parts = st.one_of(st.sampled_from([*WORDS, "cat*", "zebra"]), st.lists(st.sampled_from(WORDS), min_size=2, max_size=3)
                  .map(lambda words: f'"{" ".join(words)}"'))  # fmt: skip
clauses = st.tuples(st.sampled_from(["", "+", "-"]), st.sampled_from(["", "title:"]), parts).map("".join)
queries = st.lists(clauses, min_size=1, max_size=3).map(" ".join)


def documents(*rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), SCHEMA)


def stored(*rows: tuple[int, str | None] | tuple[int, str | None, str | None]) -> pa.Table:
    named = [{"id": row[0], "owner": f"u{row[0]}", "query": row[1], "filter": [*row, None][2]} for row in rows]
    return pa.Table.from_pylist(named, QUERIES)


def index_of(*rows: tuple[int, str | None] | tuple[int, str | None, str | None]) -> QueryIndex:
    index = QueryIndex(COLUMNS, OPTIONS, SCHEMA)
    index.add(stored(*rows))
    return index


def pairs(index: QueryIndex, rows: pa.Table) -> set[tuple[int, int]]:
    found = index.matches(rows)
    return set(zip(found.queries["id"].to_pylist(), found.documents.to_pylist(), strict=True))


def from_scratch(texts: dict[int, str], rows: list[dict[str, object]]) -> set[tuple[int, int]]:
    """Every query run over an index of all documents."""
    index, found = MemoryIndex(OPTIONS, rows), set()
    for number, text in texts.items():
        try:
            found |= {(number, document) for document in index.found(text)}
        except BadSearch:
            continue
    return found


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(texts, texts), max_size=5), st.lists(queries, max_size=8), st.data())
def test_matches_equal_a_search_of_all_documents(
    of_documents: list[tuple[str | None, str | None]], of_queries: list[str], data: st.DataObject
) -> None:
    rows: list[dict[str, object]] = [{"id": n, "title": t, "body": b} for n, (t, b) in enumerate(of_documents)]
    index = index_of(*enumerate(of_queries))
    assert pairs(index, documents(*rows)) == from_scratch(dict(enumerate(of_queries)), rows)
    kept = dict(enumerate(of_queries))
    for number in data.draw(st.lists(st.sampled_from(range(10)), unique=True, max_size=8)):
        index.remove(stored((number, None)))
        kept.pop(number, None)
        if data.draw(st.booleans()):
            kept[number] = data.draw(queries)
            index.add(stored((number, kept[number])))
    assert pairs(index, documents(*rows)) == from_scratch(kept, rows)
    assert len(index) == len(kept)


def test_queries_of_the_language_match_the_documents_that_a_search_finds() -> None:
    texts = ["rust", "RÛST", "+rust +sea", "rust sea", "+rust -belt", "rust -title:rust", "body:Postgres", "post*"]
    texts += ['"once exactly"', "wi-fi", '"of the sea"', '"of sea"', "中文", "文", "the", "+the rust", "+post* +sea"]
    wanted = from_scratch(dict(enumerate(texts)), DOCUMENTS)
    assert len(wanted) > 15
    assert pairs(index_of(*enumerate(texts)), documents(*DOCUMENTS)) == wanted


def test_index_that_files_a_query_under_a_word_it_does_not_need_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QueryIndex, "_leading", lambda _, query: query.clauses[:1])
    assert pairs(index_of((1, "absent rust")), documents(*DOCUMENTS)) != from_scratch({1: "absent rust"}, DOCUMENTS)


def test_candidates_follow_the_document_and_not_the_number_of_queries() -> None:
    index = index_of(*((n, f"+shared +word{n} other{n}") for n in range(500)), (5000, "absent*"))
    found = index.matches(documents({"id": 1, "title": None, "body": "shared other3 word7 other7"}))
    assert found.examined <= 2
    assert found.queries["id"].to_pylist() == [7]
    assert found.queries["owner"].to_pylist() == ["u7"]


def test_conditions_are_read_line_by_line_and_must_all_hold() -> None:
    rows = documents(*({"id": n, "title": "cat", "body": None, "likes": likes} for n, likes in enumerate([1, 5, None])))
    index = index_of(
        (1, "cat", "likes>=1\n \nlikes != 5"), (2, "cat", None), (3, "cat", "likes<5"), (4, "dog", "likes=1")
    )
    assert pairs(index, rows) == {(1, 0), (2, 0), (2, 1), (2, 2), (3, 0)}


@pytest.mark.parametrize(
    ("text", "conditions", "problem"),
    [
        (None, None, "the query has no word"),
        ("-rust", None, 'the query has only words with "-"'),
        ("author:rust", None, 'unknown text column "author" at character 1'),
        ("rust", "likes", 'filter "likes" is no condition'),
        ("rust", "stars=1", 'unknown column "stars"'),
        ("rust", "likes=many", 'the value for column "likes" cannot be read as int32'),
    ],
)
def test_malformed_query_matches_nothing_and_is_listed(text: str | None, conditions: str | None, problem: str) -> None:
    index = index_of((1, "rust"), (2, text, conditions))
    assert pairs(index, documents(*DOCUMENTS)) == {(1, 1), (1, 2)}
    assert index.malformed().to_pylist() == [{"id": 2, "owner": "u2", "error": problem}]
    assert index.malformed(stored((1, None))).num_rows == 0
    index.remove(stored((2, None)))
    assert index.malformed().num_rows == 0


def test_many_edits_leave_no_rows_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_views.search.query_index._MOST_DEAD_ROWS", 10)
    index = index_of((1, "rust"), (2, "-bad"), (3, "post*"))
    for _ in range(100):
        index.remove(stored((1, None), (3, None)))
        index.add(stored((1, "sea"), (3, "ru*")))
    assert pairs(index, documents(*DOCUMENTS)) == {(1, 3), (3, 1), (3, 2)}
    assert index.malformed()["owner"].to_pylist() == ["u2"]
    assert index._rows is not None
    assert index._rows.num_rows < 30


def test_size_is_about_what_the_queries_take() -> None:
    rows = stored(*((n, f'+word{n} other{n} "a phrase {n}" -not{n}', f"likes>={n}") for n in range(100)))
    index = QueryIndex(COLUMNS, IndexOptions("id", {"title": 2.0, "body": 1.0}), SCHEMA)
    index.add(rows.slice(0, 0))
    tracemalloc.start()
    index.add(rows)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < index.size < 3 * taken
    full = index.size
    index.remove(rows)
    assert index.size < full / 3


def test_stored_query_without_a_text_has_no_word() -> None:
    with pytest.raises(BadSearch, match="no word"):
        StoredQuery.parse(None, None, OPTIONS, SCHEMA)
