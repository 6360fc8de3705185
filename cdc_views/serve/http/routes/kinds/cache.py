"""Rows of a cache by key: hit or miss."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from fastapi import APIRouter, Request, Response

from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.http.answers import ROWS, Accept, Answer, Format, IfNoneMatch, OneRow, chosen
from cdc_views.serve.http.moments import TheMoment, around_of
from cdc_views.serve.http.routes.keys import Keys, key_in_path, keys_of, not_found
from cdc_views.serve.http.service import TheService
from cdc_views.serve.kinds.cache import CachedRow

ROUTER: Final = APIRouter(tags=["kinds"])


@ROUTER.get("/views/{name}/cache")
async def get_cached_rows(
    service: TheService,
    moment: TheMoment,
    name: str,
    key: Keys,
    accept: Accept = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Read the rows of a view of kind cache with these keys: for each, in their order, `state`, `etag` and `row`.

    A `miss` is certain: the epoch has no row with the key. `etag` is that of the row alone, in all epochs.
    """
    form = chosen(accept, ROWS)

    def work(epoch: PublishedEpoch) -> Answer:
        cache = service.cache(epoch, name)
        table = cache.table(epoch)
        found = [_as_row(each) for each in cache.at(epoch, keys_of(table, key))]
        rows = service.as_table(found, _schema_of(table.schema))
        return Answer.by_content(rows, form, if_none_match, around_of(epoch))

    epoch, answer = await service.read(moment, work)
    return answer.response(epoch, service.unsent)


@ROUTER.get("/views/{name}/cache/{key:path}")
async def get_cached_row(
    service: TheService,
    moment: TheMoment,
    name: str,
    key: str,
    request: Request,
    accept: Accept = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Read one row of a view of kind cache: the values of its key in their order, separated by slashes.

    A miss is a 404, and certain. The ETag stays the same as long as the row does.
    """
    chosen(accept, [Format.JSON])
    texts = key_in_path(request)

    def work(epoch: PublishedEpoch) -> OneRow:
        cache = service.cache(epoch, name)
        table = cache.table(epoch)
        (found,) = cache.at(epoch, [table.key_of_text(texts)])
        if found.row is None:
            raise not_found(epoch, name)
        return OneRow.of(service.as_table([found.row], table.schema), found.etag)

    epoch, row = await service.read(moment, work)
    return row.response(epoch, if_none_match)


def _as_row(found: CachedRow) -> dict[str, object]:
    return {"state": found.state, "etag": found.etag, "row": found.row}


def _schema_of(schema: pa.Schema) -> pa.Schema:
    return pa.schema([("state", pa.string()), ("etag", pa.string()), ("row", pa.struct(list(schema)))])
