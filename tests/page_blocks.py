"""The blocks of code on our pages that tests run: each follows a comment with its name."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def block(page: str, name: str, language: str = "sh") -> str:
    """The block after `<!-- name: ... -->` on a page, which is named by its path below the root."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf"<!-- {name}:.*?-->\n```{language}\n(.*?)```", text, re.DOTALL)
    assert found, f"{page} has no block {name}"
    return found[1]
