"""README and docs/: every link leads somewhere, every page is in the index, and what they quote of the code is true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from cdc_views.cli.main import main
from cdc_views.cli.setup.init import VIEW
from cdc_views.config import LogSettings, load_settings
from cdc_views.log.kafka.topics import DELETE_RETENTION_MS, MAX_MESSAGE_BYTES
from cdc_views.source.service import service_sql
from tests.page_blocks import block

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "connectors" / "README.md",
         *sorted((ROOT / "bench").glob("*.md")), *sorted(DOCS.glob("**/*.md"))]  # fmt: skip
GROUPS = ["Start", "Views", "Your own services", "Operate", "Reference", "Internals"]


def links(page: Path) -> Iterator[str]:
    """Targets of the links of a page, without code."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    yield from re.findall(r"\]\(([^)\s]+)\)", text)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page, and those that the page sets itself."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)"></a>', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files_and_headings(page: Path) -> None:
    for link in links(page):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_index_names_every_page_once_in_the_order_of_need() -> None:
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == GROUPS
    named = re.findall(r"^\| \[[^]]+\]\(([a-z_]+\.md)\)", text, re.MULTILINE)
    assert sorted(named) == sorted(page.name for page in DOCS.glob("*.md") if page.name != "README.md")


def test_readme_links_the_pages_by_the_same_groups() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\*\*(.+?)\*\* ·", text, re.MULTILINE) == GROUPS


def test_first_view_of_the_readme_is_the_one_of_the_tour() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [first, *_] = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    assert first == VIEW  # tests/stack/test_readme.py runs it, with the rows that the page shows


def test_pages_show_what_init_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, ["init", "shop"]).stdout
    for page in ("cli.md", "own_services.md"):
        assert f"cdc-views init shop{' && cd shop' if page == 'cli.md' else ''}\n{shown}" in (DOCS / page).read_text()


LISTING = [ROOT / "cdc_views" / folder for folder in (
    "cli", "cli/setup", "cli/readers", "cli/operate", "engine", "engine/epoch", "engine/input", "engine/service",
    "engine/views", "engine/views/strategies", "host", "plan/incremental", "serve/watch", "stack/services",
    "store/commits", "store/index",
)]  # fmt: skip


@pytest.mark.parametrize("folder", LISTING, ids=lambda folder: folder.name)
def test_docstring_of_a_package_lists_its_modules(folder: Path) -> None:
    listed = re.findall(r"^(\w+\.py)  ", (folder / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    there = {file.name for file in folder.glob("*.py")} - {"__init__.py", "main.py"}
    assert set(listed) - {"main.py"} == there


def test_docstring_of_cdc_views_lists_its_folders() -> None:
    listed = re.findall(r"^(\w+)/ +", (ROOT / "cdc_views" / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(file.parent.name for file in (ROOT / "cdc_views").glob("*/__init__.py"))


def test_page_of_operation_names_everything_that_is_created_in_the_source() -> None:
    text = (DOCS / "operate.md").read_text(encoding="utf-8")
    made = [
        *service_sql.EVENT_TRIGGERS,
        *re.findall(r"CREATE TABLE IF NOT EXISTS cdc_views\.(\w+)", service_sql.TABLES),
    ]
    assert [name for name in made if f"`{name}`" not in text] == []


def test_settings_for_own_services_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cdc-views.yaml").write_text(block("docs/own_services.md", "settings", "yaml"), encoding="utf-8")
    monkeypatch.setenv("SHOP_DSN", "host=db.internal dbname=shop")
    settings = load_settings(tmp_path)
    assert settings.source.dsn.get_secret_value() == "host=db.internal dbname=shop"
    assert settings.stack == "none"


def test_topics_to_create_beforehand_have_the_settings_of_ours() -> None:
    text = (DOCS / "own_services.md").read_text(encoding="utf-8")
    kept = LogSettings.model_fields["min_compaction_lag_ms"].default
    assert f"`min.compaction.lag.ms={kept}`" in text
    assert f"`delete.retention.ms={DELETE_RETENTION_MS}`" in text
    assert f"`max.message.bytes={MAX_MESSAGE_BYTES}`" in text
