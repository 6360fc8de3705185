"""The parameters that say at which moment to read, and the headers that say what was read."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends, Query

from cdc_views.serve.epochs.moment import Moment
from cdc_views.serve.epochs.published import PublishedEpoch

REVALIDATE: Final = "private, no-cache"
"""Cache-Control of answers with an ETag: a cache may keep them, and asks each time."""
NO_STORE: Final = "no-store"


async def moment_of(  # not in a thread: it would wait for those that encode answers
    at: Annotated[str | None, Query(description="read the last epoch up to this number, position or time")] = None,
    at_least: Annotated[
        str | None, Query(description="wait until everything committed up to this position can be read")
    ] = None,
    wait: Annotated[
        float | None, Query(ge=0, description="seconds to wait for that, or for the first epoch; 10 with at_least")
    ] = None,
    max_age: Annotated[
        float | None, Query(ge=0, description="seconds that the source may have gone on since the epoch")
    ] = None,
) -> Moment:
    """The moment of the common parameters. Raises BadMoment, BadLsn."""
    when = None if at is None else Moment.parse_at(at)
    return Moment(at=when, at_least=at_least, timeout_s=wait, max_age=max_age)


TheMoment = Annotated[Moment, Depends(moment_of)]


def headers_of(epoch: PublishedEpoch, cache: str, etag: str | None = None) -> dict[str, str]:
    """The headers of an answer: its epoch and position, its ETag, and how it may be cached."""
    headers = {"Last-Epoch": str(epoch.number), "Last-Position": str(epoch.position), "Cache-Control": cache}
    headers |= {"Vary": "Accept"}
    return headers if etag is None else headers | {"ETag": etag}


def around_of(epoch: PublishedEpoch) -> dict[str, Any]:
    """The epoch and its position, as bodies of JSON have them around the rows."""
    return {"epoch": epoch.number, "position": str(epoch.position)}


def next_page(cursor: str | None) -> dict[str, str]:
    """The header that has the cursor of the next page, also where the body has no place for it."""
    return {} if cursor is None else {"Next-Cursor": cursor}
