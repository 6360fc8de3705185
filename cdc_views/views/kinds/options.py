"""How the options of kinds are written. A function here raises BadView with the problem, without its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from cdc_views.errors import BadView

_COLUMN: Final = r"(`(?:[^`]|``)+`|[A-Za-z_]\w*)"
_COLUMNS: Final = re.compile(rf"\s*{_COLUMN}\s*(?:,|$)")
_ORDERED: Final = re.compile(rf"\s*{_COLUMN}(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\s*(?:,|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Option:
    """An option of a kind: `parse` turns its text into its value. Without a `default`, it must be given."""

    parse: Callable[[str], Any]
    default: Any = None
    is_required: bool = False


@dataclass(frozen=True)
class Ordered:
    """A column of an order. NULL comes first if `nulls_first`; as in Spark, that is the default if it ascends."""

    column: str
    descends: bool = False
    nulls_first: bool = True


def columns(text: str) -> tuple[str, ...]:
    """Parse `a, b`: names of columns, which may be in backticks."""
    return tuple(_unquoted(found[1]) for found in _items(_COLUMNS, text, "the names of columns, as in 'a, b'"))


def column(text: str) -> str:
    """Parse the name of one column."""
    found = columns(text)
    if len(found) != 1:
        raise BadView(f"found {len(found)} columns, wanted one")
    return found[0]


def order(text: str) -> tuple[Ordered, ...]:
    """Parse `a DESC, b`: what follows ORDER BY, with columns only."""
    found = []
    for item in _items(_ORDERED, text, "columns with ASC or DESC, as in 'created_at DESC, id DESC'"):
        descends = (item[2] or "").lower() == "desc"
        nulls_first = item[3].lower() == "first" if item[3] else not descends
        found.append(Ordered(_unquoted(item[1]), descends, nulls_first))
    return tuple(found)


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return a function that parses a whole number within these limits."""

    def parse(text: str) -> int:
        number = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None
        if number is None or not least <= number <= most:
            raise BadView(f'found "{text}", wanted a whole number from {least} to {most}')
        return number

    return parse


def spelled(name: str, known: Sequence[str]) -> str:
    """The column of these that a name means, whatever its case. Raises BadView."""
    found = next((each for each in known if each.lower() == name.lower()), None)
    if found is None:
        close = get_close_matches(name, known, n=1)
        hint = f'did you mean "{close[0]}"' if close else f"columns: {', '.join(known)}"
        raise BadView(f'the view has no column "{name}"', hint=hint)
    return found


def _items(pattern: re.Pattern[str], text: str, wanted: str) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    position = 0
    while position < len(text) or not found:
        item = pattern.match(text, position)
        if item is None or item.end() == position:
            raise BadView(f'found "{text}", wanted {wanted}')
        found.append(item)
        position = item.end()
    if text.rstrip().endswith(","):
        raise BadView(f'found "{text}", wanted {wanted}')
    return found


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
