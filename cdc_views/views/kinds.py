"""The kinds of views: shapes on top of a SELECT, each with its own options, and the options that all of them have.

To add a kind, add it to `KINDS` with its options.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

DEFAULT_KIND: Final = "sql"


@dataclass(frozen=True)
class Kind:
    """A kind and the names of its own options."""

    name: str
    options: frozenset[str] = field(default=frozenset())


KINDS: Final = {kind.name: kind for kind in (Kind(DEFAULT_KIND),)}

# Options of every kind, and their allowed values; the first value is the default.
COMMON_OPTIONS: Final = {"layout": ("vectors", "plain"), "strict": ("false", "true")}
# Options that may be named without a value, which means true. They decide nothing about the rows of a view.
FLAGS: Final = frozenset({"strict"})
