"""ETags: what an answer is the same as. A client that has it gets 304 and no body."""

from __future__ import annotations

import hashlib
from typing import Final

import orjson
import pyarrow as pa

WEAK: Final = "W/"
"""Before the ETag of answers that may differ in what is around their rows, such as the epoch."""


_DIGEST_BYTES: Final = 12


def tag_of(content: object) -> str:
    """The ETag of a body, or of values of JSON that decide about it."""
    text = content if isinstance(content, bytes) else orjson.dumps(content)
    return f'"{hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()}"'


def tag_of_rows(rows: pa.Table, *facts: str) -> str:
    """The ETag of rows by their content, for a query that may give others each time, as with now()."""
    sink = _Digest()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return tag_of([sink.digest.hexdigest(), *facts])


def is_unchanged(if_none_match: str | None, etag: str) -> bool:
    """Whether a client has what the ETag names (RFC 9110, weak comparison)."""
    if if_none_match is None:
        return False
    known = [each.strip().removeprefix(WEAK) for each in if_none_match.split(",")]
    return "*" in known or etag.removeprefix(WEAK) in known


class _Digest:
    """A file that keeps only the digest of what is written to it."""

    closed = False

    def __init__(self) -> None:
        self.digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """Nothing to close."""
