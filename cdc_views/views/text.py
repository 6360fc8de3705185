"""Positions in a view file, and its tokens.

Every error about a view says where it is: it begins with `file:line:column`, counted from 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from cdc_views.errors import BadView

_COLLATION: Final = re.compile(r"\bcollate\b", re.IGNORECASE)


def place(file: Path, text: str, offset: int, line: int = 1, column: int = 1) -> str:
    """Return `file:line:column` of an offset in a text that begins at `line` and `column` of the file."""
    before = text[:offset].split("\n")
    if len(before) > 1:
        line, column = line + len(before) - 1, 1
    return f"{file}:{line}:{column + len(before[-1])}"


def tokens_of(text: str, file: Path, line: int = 1, column: int = 1) -> list[Token]:
    """Return the tokens of Spark SQL. Raises BadView."""
    try:
        return list(Spark().tokenize(text))
    except TokenError:
        # sqlglot reports where it stopped, not where the unclosed text or comment began.
        where = place(file, text, _unclosed(text), line, column)
        raise BadView(f"{where}: a text, name or comment that does not end", hint="close it") from None


def closing(tokens: Sequence[Token], opening: int) -> int:
    """Return the index of the parenthesis that closes the one at `opening`; the number of tokens if none does."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[index].token_type, 0)
        if depth == 0:
            return index
    return len(tokens)


def has_collation(tokens: Sequence[Token]) -> bool:
    """Whether a text may have a collation: by the word COLLATE, or by a string with a type that has it.

    A string that has the word only when it is computed is refused (engine/views/analysis/determinism.py).
    """
    return any(_COLLATION.search(token.text) for token in tokens)


def _unclosed(text: str) -> int:
    """The offset of the quote or comment that is not closed."""
    position = 0
    while position < len(text):
        start = position
        if text.startswith("--", position):
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
        elif text.startswith("/*", position):
            end = text.find("*/", position + 2)
            if end < 0:
                return start
            position = end + 2
        elif text[position] in "'\"`":
            position = _end_of_quoted(text, position)
            if position < 0:
                return start
        else:
            position += 1
    return 0


def _end_of_quoted(text: str, start: int) -> int:
    quote, position = text[start], start + 1
    while position < len(text):
        if text[position] == "\\" and quote != "`":
            position += 2
        elif text[position] == quote:
            return position + 1
        else:
            position += 1
    return -1
