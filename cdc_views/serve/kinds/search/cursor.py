"""Where the next page of an answer begins: an opaque text, bound to the index, the query and the epoch.

All pages are of the epoch of the first one, so no document comes twice or is missed while others arrive.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, Self

from cdc_views.errors import BadPage
from cdc_views.serve.values.opaque import facts_of, opaque

_MOST: Final = 1 << 31


@dataclass(frozen=True)
class Cursor:
    """`skipped` documents of the answer are on earlier pages. `question` is a hash of everything that was asked."""

    question: str
    epoch: int
    skipped: int

    def __str__(self) -> str:
        return opaque([self.question, self.epoch, self.skipped])

    @classmethod
    def parse(cls, text: str, question: str) -> Self:
        """Read a cursor for a question. Raises BadPage."""
        try:
            of_question, epoch, skipped = facts_of(text)
            is_one = isinstance(of_question, str) and type(epoch) is int and type(skipped) is int
            is_one = is_one and 0 <= skipped < _MOST
        except (ValueError, TypeError):
            is_one = False
        if not is_one:
            raise BadPage("the cursor was not returned by a search", hint="begin with the first page")
        if of_question != question:
            raise BadPage(
                "the cursor is of another index, query, filter or sort",
                hint="give each page what the first one was given, or begin with the first page",
            )
        return cls(of_question, epoch, skipped)


def question_of(index: str, *facts: object) -> str:
    """A hash of a question: the index, and the query, the filter and the order."""
    return hashlib.sha256(repr((index, facts)).encode()).hexdigest()[:16]
