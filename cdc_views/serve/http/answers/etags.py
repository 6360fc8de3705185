"""ETags: what an answer is the same as. A client that has it gets 304 and no body."""

from __future__ import annotations

import hashlib
from typing import Final

import orjson
import pyarrow as pa

from cdc_views.serve.http.answers.formats import arrow_parts

WEAK: Final = "W/"
"""Before the ETag of answers that may differ in what is around their rows, such as the epoch."""

_DIGEST_BYTES: Final = 12


def tag_of(content: object) -> str:
    """The ETag of a body, or of values of JSON that decide about it."""
    text = content if isinstance(content, bytes) else orjson.dumps(content)
    return f'"{hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()}"'


def tag_of_rows(rows: pa.Table, *facts: str) -> str:
    """The ETag of rows by their content, for a query that may give others each time, as with now()."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in arrow_parts(rows.combine_chunks()):
        digest.update(part)
    return tag_of([digest.hexdigest(), *facts])


def is_unchanged(if_none_match: str | None, etag: str) -> bool:
    """Whether a client has what the ETag names (RFC 9110, weak comparison).

    `*` names nothing: it asks whether there is any answer, which is not known before the question was checked.
    """
    if if_none_match is None:
        return False
    known = [each.strip().removeprefix(WEAK) for each in if_none_match.split(",")]
    return etag.removeprefix(WEAK) in known
