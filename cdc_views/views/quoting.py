"""Names in Spark SQL."""

from __future__ import annotations

import re
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted_name(name: str) -> str:
    """Return a name for Spark SQL: in backticks unless it is plain."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"
