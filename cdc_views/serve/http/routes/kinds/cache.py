"""Rows of a cache by key: hit or miss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson
import pyarrow as pa
from fastapi import APIRouter, Request, Response

from cdc_views.serve.http.answers import ROWS, Accept, Answer, Format, IfNoneMatch, chosen, is_unchanged
from cdc_views.serve.http.keys import Keys, key_in_path, keys_of, not_found
from cdc_views.serve.http.moments import REVALIDATE, TheMoment, headers_of
from cdc_views.serve.http.service import TheService
from cdc_views.serve.json_value import json_value
from cdc_views.serve.kinds.cache import CachedRow
from cdc_views.serve.published import PublishedEpoch

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
        found = _as_rows(cache.at(epoch, keys_of(table, key)), table.schema)
        return Answer.by_content(found, form, if_none_match, {"epoch": epoch.number, "position": str(epoch.position)})

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

    def work(epoch: PublishedEpoch) -> CachedRow:
        cache = service.cache(epoch, name)
        return cache.at(epoch, [cache.table(epoch).key_of_text(texts)])[0]

    epoch, found = await service.read(moment, work)
    if found.etag is None:
        raise not_found(epoch, name)
    headers = headers_of(epoch, REVALIDATE, found.etag)
    if is_unchanged(if_none_match, found.etag):
        return Response(status_code=304, headers=headers)
    return Response(orjson.dumps(json_value(found.row)), 200, headers, Format.JSON.value)


def _as_rows(found: Sequence[CachedRow], schema: pa.Schema) -> pa.Table:
    return pa.table(
        {
            "state": pa.array([each.state for each in found], pa.string()),
            "etag": pa.array([each.etag for each in found], pa.string()),
            "row": pa.array([each.row for each in found], pa.struct(list(schema))),
        }
    )
