"""Answers: of rows, and of what describes the warehouse.

answer.py     rows, or one row, with their ETag and headers: what routes return
etags.py      what an answer is the same as, so that it is not sent again
formats.py    rows as JSON, NDJSON or Arrow
described.py  what describes the warehouse, as JSON
"""

from __future__ import annotations

from cdc_views.serve.http.answers.answer import Accept, Answer, IfNoneMatch, OneRow
from cdc_views.serve.http.answers.described import described, encoded
from cdc_views.serve.http.answers.etags import WEAK, is_unchanged, tag_of
from cdc_views.serve.http.answers.formats import ROWS, Encoded, Format, chosen, in_chunks

__all__ = [
    "ROWS",
    "WEAK",
    "Accept",
    "Answer",
    "Encoded",
    "Format",
    "IfNoneMatch",
    "OneRow",
    "chosen",
    "described",
    "encoded",
    "in_chunks",
    "is_unchanged",
    "tag_of",
]
