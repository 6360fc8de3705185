"""Parts of a page in docs/ that are generated from test cases."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def compare_or_write(page: Path, parts: Mapping[str, str]) -> None:
    """Assert that a page has these parts, or write them. A comment with the name of a part stands before it."""
    found = made = page.read_text(encoding="utf-8")
    for name, text in parts.items():
        made, times = re.subn(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda found, text=text: found[1] + text + found[2], made,
            flags=re.DOTALL,
        )  # fmt: skip
        assert times == 1
    if os.environ.get("CDC_VIEWS_GOLDEN") == "write":
        page.write_text(made, encoding="utf-8")
    else:
        assert found == made
