"""Lists in one text, as the environment and flags give them."""

from __future__ import annotations

import re

# Commas separate the parts, except in double quotes and in parentheses.
_PARTS = re.compile(r"""(?:"(?:[^"]|"")*"|\([^()]*\)|[^,])+""")


def split(text: str) -> list[str]:
    """Split at commas that are not in quotes or parentheses, and strip the blanks around the parts."""
    return [found for part in _PARTS.findall(text) if (found := part.strip())]
