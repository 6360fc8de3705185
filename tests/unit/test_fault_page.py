"""docs/faults.md is generated from the `proves` markers of the tests."""

from __future__ import annotations

import os
import re

import click

from cdc_views.cli.main import main
from tests.fault_page import PAGE, PARTS, TESTS, page, proofs, sections, visible_errors

# Visible errors for which no marker describes a case. A class that gets one must be removed here; a new class needs a
# marker, or an entry here on purpose.
WITHOUT_CASES = {
    "BadLsn", "BadMoment", "CheckFailed", "ColumnsDiffer", "KeyNotUnique", "LogError", "ServiceFailed", "ServiceKilled",
    "StackError", "StoreError", "UnknownTable", "UnknownView", "WrongFeatures",
}  # fmt: skip


def test_page_is_made_from_the_tests() -> None:
    if os.environ.get("CDC_VIEWS_GOLDEN") == "write":
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_errors_that_the_page_names_exist() -> None:
    seen = [name for found in sections().values() for proof in found for name in proof.names]
    assert seen
    assert [name for name in seen if name not in visible_errors()] == []


def test_visible_errors_without_a_case_are_the_known_ones() -> None:
    seen = {name for found in sections().values() for proof in found for name in proof.names}
    assert set(visible_errors()) - seen == WITHOUT_CASES


def test_every_visible_error_has_a_line_of_the_index_in_alphabetical_order() -> None:
    index = page().split("## Index by error name")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \| \S", index, re.MULTILINE) == sorted(visible_errors())


def test_links_of_the_index_lead_to_cases_that_name_the_error() -> None:
    made = page()
    cases = dict(re.findall(r'^\| <a id="(fault-\d+)"></a>\d+ (\|.*)$', made, re.MULTILINE))
    links = [
        (line.split("`")[1], anchor) for line in made.splitlines() for anchor in re.findall(r"\(#(fault-\d+)\)", line)
    ]
    assert {anchor for _, anchor in links} <= set(cases)
    assert [(name, anchor) for name, anchor in links if f"`{name}" not in cases[anchor]] == []


def test_commands_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`cdc-views ([a-z-]+)", page()))
    assert {"reset", "rebuild", "check"} <= named
    assert named <= set(main.list_commands(click.Context(main)))


def test_no_proof_is_left_out() -> None:
    files = [file for file in TESTS.rglob("test_*.py") if "\n@pytest.mark.proves(" in file.read_text(encoding="utf-8")]
    marked = {str(file.relative_to(TESTS)) for file in files}
    assert marked == {file for files in PARTS.values() for file in files if any(proofs(file))}
