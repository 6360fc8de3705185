"""Names in Spark SQL."""

from __future__ import annotations

import re
from typing import Final

from sqlglot.dialects.spark import Spark

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# `SELECT true FROM t` has no column "true".
_KEYWORDS: Final = frozenset(word.lower() for keyword in Spark.Tokenizer.KEYWORDS for word in keyword.split())


def quoted_name(name: str) -> str:
    """Return a name for Spark SQL: in backticks unless it is plain, and no keyword."""
    is_plain = _PLAIN.fullmatch(name) and name.lower() not in _KEYWORDS
    return name if is_plain else "`" + name.replace("`", "``") + "`"
