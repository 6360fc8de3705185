"""docs/faults.md, made from the tests that prove it: what each says in its mark `proves`.

`@pytest.mark.proves(wrong=..., seen=..., do=...)`, all three texts of Markdown. Read from the source, so that no test
module need be imported: `CDC_VIEWS_GOLDEN=write pytest tests/unit/test_fault_page.py` writes the page.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent
PAGE: Final = TESTS.parent / "docs" / "faults.md"

# The rooms of the page, by the files whose tests prove what is in them.
PARTS: Final = {
    "Services and processes": ("stack/test_engine.py", "stack/test_connector.py", "spark/test_engine_recovery.py",
                               "faults/test_crash_pairs.py", "stack/test_services.py", "stack/test_soak.py",
                               "stack/test_cut_property.py", "stack/test_copy.py", "stack/test_lost_rows.py",
                               "stack/test_source.py", "stack/test_read_ahead.py"),
    "Two writers": ("stack/test_two_writers.py", "faults/test_two_writers.py", "faults/test_late_writer.py"),
    "The log": ("stack/test_log_faults.py", "stack/test_random_ddl.py", "stack/test_stopped_tables.py"),
    "Events": ("stack/test_bad_events.py", "spark/test_bad_events.py"),
    "The disk": ("faults/test_disk_full.py", "unit/test_store_disk.py", "stack/test_bad_input.py"),
}  # fmt: skip


@dataclass(frozen=True)
class Proof:
    """What can go wrong, what one sees then, what to do, and the test that shows it."""

    wrong: str
    seen: str
    do: str
    test: str


def proofs(file: str) -> Iterator[Proof]:
    """Those of a file of tests, in its order."""
    for statement in ast.parse((TESTS / file).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.FunctionDef):
            for mark in filter(_is_proof, statement.decorator_list):
                assert isinstance(mark, ast.Call)
                texts = {str(keyword.arg): str(ast.literal_eval(keyword.value)) for keyword in mark.keywords}
                yield Proof(**texts, test=f"{file}::{statement.name}")


def page() -> str:
    """The whole page."""
    lines = [
        "# What can go wrong",
        "",
        "Made from the tests that prove it (`tests/fault_page.py`); the last column names each. An error of ours is",
        "printed as `Name: what was found` and a line `hint: what to do`. Readers keep the last good epoch meanwhile.",
        "`SlotChanged` and `LogDiscontinuity` of a running engine are remembered in `_epochs/_broken.json` of the",
        "warehouse until a reset, since later starts may find nothing of what was lost. What `cdc-views reset` does:",
        "[reset.md](reset.md).",
    ]
    for part, files in PARTS.items():
        lines += ["", f"## {part}", "", "| what can go wrong | what you see | what to do | test |", "|---|---|---|---|"]
        found = [proof for file in files for proof in proofs(file)]
        lines += [f"| {each.wrong} | {each.seen} | {each.do} | `{each.test}` |" for each in found]
    return "\n".join(lines) + "\n"


def _is_proof(mark: ast.expr) -> bool:
    return isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.func.attr == "proves"
