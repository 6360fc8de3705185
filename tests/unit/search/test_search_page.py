"""docs/search.md: its lines run, and its tables say what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cdc_views.search.analyzer import ENGLISH_STOP_WORDS
from cdc_views.views.kinds.search_index import SearchIndexKind
from tests.unit.search.test_search_reading import Posts, at

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
    found = re.search(r"<!-- python:.*?-->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    names: dict[str, Any] = {}
    exec(found[1], names)
    shown = capsys.readouterr().out
    assert "2 of 2 documents at epoch 1\n1 " in shown
    assert "   Each epoch is published <exactly> <once>.\n" in shown
    assert [hit.key for hit in names["newest"].hits] == [2, 1]
    assert [hit.key for page in ("page", "next_page") for hit in names[page].hits] == [1, 2]


def test_page_has_every_option() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text.split("| option | meaning | default |")[1].split("\n\n")[0]
    assert re.findall(r"`(\w+)`", "".join(re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE))) == [
        *SearchIndexKind.options
    ]
    assert f"a list of {len(ENGLISH_STOP_WORDS)}" in table
