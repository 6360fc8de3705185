"""View files: what is read, and what is refused with file, line and column."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cdc_views.errors import BadView
from cdc_views.views.definition import parse_view, read_views

FILE = Path("views/totals.sql")


def test_parse_view_plain_gives_the_select_as_written() -> None:
    view = parse_view("CREATE MATERIALIZED VIEW totals AS\n  SELECT  a, -- why\n b FROM t ;\n-- end\n", FILE)
    assert (view.name, view.columns, view.kind, dict(view.options)) == ("totals", None, "sql", {})
    assert view.sql == "SELECT  a, -- why\n b FROM t"
    assert (view.first_line, view.first_column) == (2, 3)


def test_parse_view_with_columns_and_kind_reads_both() -> None:
    view = parse_view("create materialized view totals (a, `b c`) with (kind = 'sql') as select 1, 2", FILE)
    assert (view.columns, view.kind, view.options) == (("a", "b c"), "sql", {})


def test_parse_view_after_comments_finds_the_header() -> None:
    view = parse_view("-- one\n/* two */ CREATE MATERIALIZED VIEW totals AS WITH c AS (SELECT 1) SELECT * FROM c", FILE)
    assert view.sql == "WITH c AS (SELECT 1) SELECT * FROM c"
    assert (view.name_line, view.name_column) == (2, 36)


def test_place_counts_lines_and_columns_of_the_file() -> None:
    view = parse_view("CREATE MATERIALIZED VIEW totals AS SELECT 'é',\n  x", FILE)
    assert view.place(view.sql.index("'é'")) == "views/totals.sql:1:43"
    assert view.place(view.sql.index("x")) == "views/totals.sql:2:3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: found the end of the file, wanted CREATE"),
        ("SELECT 1", '1:1: found "SELECT", wanted CREATE'),
        ("CREATE VIEW totals AS SELECT 1", '1:8: found "VIEW", wanted MATERIALIZED'),
        ("CREATE MATERIALIZED VIEW\n  Totals AS SELECT 1", '2:3: view name "Totals", wanted lower-case letters'),
        ("CREATE MATERIALIZED VIEW `totals` AS SELECT 1", '1:26: view name "totals", wanted'),
        ("CREATE MATERIALIZED VIEW a.totals AS SELECT 1", '1:26: view name "a" has a schema'),
        ("CREATE MATERIALIZED VIEW _cv_x AS SELECT 1", '1:26: view name "_cv_x" begins with "_cv_"'),
        ("CREATE MATERIALIZED VIEW other AS SELECT 1", '1:26: view "other" in file "totals.sql"'),
        ("CREATE MATERIALIZED VIEW totals (a, A) AS SELECT 1, 2", '1:37: column "A" appears twice'),
        ("CREATE MATERIALIZED VIEW totals (_cv_a) AS SELECT 1", '1:34: column "_cv_a" begins with "_cv_"'),
        ("CREATE MATERIALIZED VIEW totals (1) AS SELECT 1", '1:34: found "1", wanted a column name'),
        ("CREATE MATERIALIZED VIEW totals (a b) AS SELECT 1", '1:36: found "b", wanted )'),
        ("CREATE MATERIALIZED VIEW totals WITH (kind = cache2) AS SELECT 1", '1:46: unknown kind "cache2"'),
        ("CREATE MATERIALIZED VIEW totals WITH (knd = 'sql') AS SELECT 1", '1:39: unknown option "knd" of kind "sql"'),
        ("CREATE MATERIALIZED VIEW totals WITH (kind = sql, kind = a) AS SELECT 1", '1:51: option "kind" appears'),
        ("CREATE MATERIALIZED VIEW totals WITH (kind = ,) AS SELECT 1", '1:46: option "kind" has value ","'),
        ("CREATE MATERIALIZED VIEW totals WITH (layout) AS SELECT 1", '1:45: found ")", wanted ='),
        ("CREATE MATERIALIZED VIEW totals WITH (strict, strict) AS SELECT 1", '1:47: option "strict" appears twice'),
        ("CREATE MATERIALIZED VIEW totals WITH (strict = maybe) AS SELECT 1", '1:48: unknown strict "maybe"'),
        ("CREATE MATERIALIZED VIEW totals WITH (strict true) AS SELECT 1", '1:46: found "true", wanted )'),
        ("CREATE MATERIALIZED VIEW totals SELECT 1", '1:33: found "SELECT", wanted AS'),
        ("CREATE MATERIALIZED VIEW totals AS", "1:35: found the end of the file, wanted a SELECT"),
        ("CREATE MATERIALIZED VIEW totals AS ;", "1:36: found the end of the statement, wanted a SELECT"),
        ("CREATE MATERIALIZED VIEW totals AS SELECT 1;\nSELECT 2;", "2:1: a second statement"),
        ("CREATE MATERIALIZED VIEW totals AS\nSELECT 'a", "2:8: a text, name or comment that does not end"),
        ("CREATE MATERIALIZED VIEW totals AS\nSELECT 'it''s' /* a", "2:16: a text, name or comment that does not end"),
    ],
)
def test_parse_view_wrong_names_file_line_and_column(text: str, message: str) -> None:
    with pytest.raises(BadView) as caught:
        parse_view(text, FILE)
    assert caught.value.message.startswith(f"views/totals.sql:{message}")
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("options", "is_strict"),
    [
        ("WITH (strict)", True),
        ("WITH (STRICT, layout = 'plain')", True),
        ("WITH (kind = 'sql', strict = true)", True),
        ("WITH (strict = 'false')", False),
        ("WITH (kind = 'sql')", False),
        ("", False),
    ],
)
def test_parse_view_strict_needs_no_value(options: str, is_strict: bool) -> None:
    view = parse_view(f"CREATE MATERIALIZED VIEW totals {options} AS SELECT 1", FILE)
    assert (view.is_strict, view.sql) == (is_strict, "SELECT 1")


def test_parse_view_unknown_option_suggests_the_near_one() -> None:
    with pytest.raises(BadView) as caught:
        parse_view("CREATE MATERIALIZED VIEW totals WITH (knd = sql) AS SELECT 1", FILE)
    assert caught.value.hint == 'did you mean "kind"'


def test_read_views_takes_sql_files_by_name(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.sql").write_text(f"CREATE MATERIALIZED VIEW {name} AS SELECT 1")
    (tmp_path / "readme.md").write_text("no view")
    assert [view.name for view in read_views(tmp_path)] == ["a", "b"]


def test_read_views_of_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_bytes(b"\xff\xfe")
    with pytest.raises(BadView, match=r"a\.sql:1:1: the file is not UTF-8"):
        read_views(tmp_path)


@pytest.mark.parametrize("name", [".#a.sql", "._a.sql", ".a.sql"])
def test_read_views_skips_hidden_files(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.sql").write_text("CREATE MATERIALIZED VIEW a AS SELECT 1")
    (tmp_path / name).symlink_to("user@host.123:456")  # what Emacs makes while a file is edited
    assert [view.name for view in read_views(tmp_path)] == ["a"]
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(b"\0\5\x16\7")
    assert [view.name for view in read_views(tmp_path)] == ["a"]


def test_read_views_of_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.sql").symlink_to("nowhere")
    with pytest.raises(BadView, match=r"a\.sql:1:1: the file cannot be read: No such file or directory"):
        read_views(tmp_path)
    (tmp_path / "a.sql").unlink()
    (tmp_path / "a.sql").mkdir()
    with pytest.raises(BadView, match=r"a\.sql:1:1: the file cannot be read: Is a directory"):
        read_views(tmp_path)


def test_read_views_of_a_folder_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert read_views(tmp_path / "views") == []


def test_read_views_of_a_folder_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "views").write_text("no folder")
    with pytest.raises(BadView, match=r'^folder ".*/views" of views cannot be read: Not a directory'):
        read_views(tmp_path / "views")
    monkeypatch.setattr(os, "listdir", denied)
    with pytest.raises(BadView, match=r"views cannot be read: Permission denied"):
        read_views(tmp_path)


def denied(_: object) -> list[str]:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
