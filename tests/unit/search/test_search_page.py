"""docs/search.md: its lines run, and its tables say what the code does."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cdc_views.base.names import TableName
from cdc_views.cli.main import main
from cdc_views.plan.compiled import compile_view
from cdc_views.search import IndexOptions
from cdc_views.search.analyzer import ENGLISH_STOP_WORDS
from cdc_views.views.definition import parse_view
from cdc_views.views.graph import ViewGraph
from cdc_views.views.kinds import KINDS
from cdc_views.views.kinds.saved_searches import SavedSearchesKind
from cdc_views.views.kinds.search_index import SearchIndexKind
from tests.page_blocks import block
from tests.unit.published import Published
from tests.unit.search.saved_engine import ALERTS
from tests.unit.search.test_search_reading import Posts, at
from tests.unit.test_cli import FILE_NAME, SETTINGS

TABLES = {
    "public.posts": {"id": "int8", "author_id": "int8", "title": "text", "body": "text", "created_at": "timestamptz"},
    "public.users": {"id": "int8", "name": "text"},
}
PAGE = Path(__file__).parents[3] / "docs" / "search.md"


def test_lines_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    posts = Posts(tmp_path / "warehouse", name="post_search")
    posts.put(
        [
            (1, "Delta tables", "Each epoch is published exactly once.", "ada", at(1)),
            (2, "Delta and Spark", None, "ada", at(2)),
            (3, "Rivers", "A delta of rivers", "bob", at(3)),
        ]
    )
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(block("docs/search.md", "python", "python"), names)
    shown = capsys.readouterr().out
    assert "2 of 2 documents at epoch 1\n1 " in shown
    assert "   Each epoch is published <exactly> <once>.\n" in shown
    assert [hit.key for hit in names["newest"].hits] == [2, 1]
    assert [hit.key for page in ("page", "next_page") for hit in names[page].hits] == [1, 2]


def test_command_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_VIEWS_STATE", str(tmp_path / "no-stack"))
    (tmp_path / FILE_NAME).write_text(SETTINGS)
    Posts(tmp_path / "warehouse", name="post_search").put(
        [(number, "Delta", text, "ada", at(number)) for number, text in enumerate(["", "spark", "", "", ""], 1)]
    )
    program, *arguments = shlex.split(block("docs/search.md", "search"))
    assert program == "cdc-views"
    shown = CliRunner().invoke(main, ["-C", str(tmp_path), *arguments])
    assert "\n3 of 4 documents\n" in shown.stderr


def test_index_of_the_page_is_a_search_index_over_both_tables() -> None:
    view = parse_view(block("docs/search.md", "index", "sql"), Path("post_search.sql"))
    graph = ViewGraph([view], [TableName.parse(name) for name in TABLES])
    found = compile_view(view, graph, TABLES, dict.fromkeys(TABLES, ("id",)))
    assert (view.kind, found.key, sorted(found.inputs)) == ("search_index", ("post_id",), sorted(TABLES))
    types = {"post_id": "int64", "title": "string", "body": "string", "author": "string"}
    record = KINDS[view.kind].record(view.kind_options, types, found.key)
    assert IndexOptions.of_record(record) == IndexOptions("post_id", {"title": 2.0, "body": 1.0}, "english")


def test_page_has_every_option() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tables = [each.split("\n\n")[0] for each in text.split("| option | meaning | default |")[1:]]
    for table, kind in zip(tables, (SearchIndexKind, SavedSearchesKind), strict=True):
        named = "".join(re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE))
        assert re.findall(r"`(\w+)`", named) == [*kind.options]
    assert f"a list of {len(ENGLISH_STOP_WORDS)}" in tables[0]


def test_saved_searches_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    view = parse_view(block("docs/search.md", "saved", "sql"), Path("post_alerts.sql"))
    assert view.sql.startswith("SELECT q.search_id, q.owner, d.post_id, CAST(NULL AS STRING) AS error FROM (")
    alerts = replace(ALERTS, name="post_alerts")
    published = Published(tmp_path / "warehouse")
    published.write(alerts, [(1, "ada", 1, None), (2, "bob", None, "the query has no word")])
    published.publish()
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"token": None}
    exec(block("docs/search.md", "alerts", "python"), names)
    published.write(alerts, [(1, "ada", 2, None), (3, "eve", None, "the query has no word")], [(1, 1)])
    published.publish()
    exec(block("docs/search.md", "alerts", "python"), names)
    assert capsys.readouterr().out == "2 rows at epoch 1\ntell ada of post 2\n"
