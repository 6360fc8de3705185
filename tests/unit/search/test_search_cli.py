"""`cdc-views search`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cdc_views.cli.main import main
from tests.unit.search.test_search_reading import Posts, at
from tests.unit.test_cli import FILE_NAME, SETTINGS


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CDC_VIEWS_STATE", str(tmp_path / "no-stack"))
    (tmp_path / FILE_NAME).write_text(SETTINGS)
    Posts(tmp_path / "warehouse").put(
        [(1, "Cats", "A [b]cat[/b] and a dog", "ada", at(1)), (2, None, "A dog", "bob", at(2))]
    )
    return tmp_path


def search(project: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["-C", str(project), "search", *arguments])


def test_search_prints_scores_and_what_matched(project: Path) -> None:
    shown = search(project, "posts", "+dog cat")
    assert shown.exit_code == 0, shown.stderr
    assert "**Cats**" in shown.stdout
    assert "A [b]**cat**[/b] and a **dog**" in shown.stdout
    assert shown.stderr.splitlines()[-1] == "2 of 2 documents"


def test_search_with_json_prints_the_documents_of_a_page(project: Path) -> None:
    first = search(project, "posts", "dog", "--sort=-created_at", "--limit=1", "--json")
    assert [json.loads(line)["id"] for line in first.stdout.splitlines()] == [2]
    cursor = first.stderr.split("next page: --cursor ")[1].strip()
    second = search(project, "posts", "dog", "--sort=-created_at", "--limit=1", "--json", "--cursor", cursor)
    assert [json.loads(line)["body"] for line in second.stdout.splitlines()] == ["A [b]cat[/b] and a dog"]
    assert "next page" not in second.stderr


@pytest.mark.parametrize("options", [(), ("--explain",)])
def test_search_that_finds_nothing_has_the_header_of_one_that_does(project: Path, options: tuple[str, ...]) -> None:
    found, nothing = (search(project, "posts", text, "--csv", *options).stdout for text in ("dog", "absent"))
    assert nothing.splitlines() == found.splitlines()[:1]


def test_search_with_a_filter(project: Path) -> None:
    shown = search(project, "posts", "dog", "--filter", "author=bob", "--filter", "id>=1", "--csv")
    assert [line.split(",")[1] for line in shown.stdout.splitlines()] == ["id", "2"]


def test_search_explains_scores(project: Path) -> None:
    shown = search(project, "posts", "cat", "--explain", "--json")
    parts = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [(part["key"], part["clause"], part["field"]) for part in parts] == [(1, "cat", "title"), (1, "cat", "body")]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("posts", '"dog'), "BadSearch"),
        (("posts", "dog", "--filter", "author"), "BadSearch"),
        (("posts", "dog", "--cursor", "x"), "BadPage"),
        (("posts", "dog", "--limit", "0"), "BadPage"),
        (("absent", "dog"), "UnknownView"),
    ],
)
def test_search_with_bad_input_has_exit_status_2(project: Path, arguments: tuple[str, ...], error: str) -> None:
    shown = search(project, *arguments)
    assert shown.stderr.partition(":")[0] == error
    assert shown.exit_code == 2
