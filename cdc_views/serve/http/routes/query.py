"""SQL over one epoch."""

from __future__ import annotations

from typing import Annotated, Final

import orjson
from fastapi import APIRouter, Query, Request, Response

from cdc_views.errors import BadParameter
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.http.answers import ROWS, Accept, Answer, Encoded, IfNoneMatch, chosen
from cdc_views.serve.http.moments import NO_STORE, TheMoment, around_of, headers_of
from cdc_views.serve.http.service import TheService

ROUTER: Final = APIRouter(tags=["query"])

_MOST_BYTES: Final = 1 << 20
_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "text/plain": {"schema": {"type": "string"}},
            "application/json": {
                "schema": {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}
            },
        },
    }
}


@ROUTER.get("/query")
async def get_query(
    service: TheService,
    moment: TheMoment,
    sql: Annotated[str, Query(description="one SELECT of DuckDB's SQL")],
    accept: Accept = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Answer a SELECT over the views (`name`) and mirrors (`schema.table`, or `table` in schema public).

    Its ETag is that of the rows, which are computed each time.
    """
    form = chosen(accept, ROWS)

    def work(epoch: PublishedEpoch) -> Answer:
        return Answer.by_content(service.query(epoch, sql), form, if_none_match, around_of(epoch))

    epoch, answer = await service.read(moment, work)
    return answer.response(epoch, service.unsent)


@ROUTER.post("/query", openapi_extra=_BODY)
async def post_query(service: TheService, moment: TheMoment, request: Request, accept: Accept = None) -> Response:
    """The same with the SELECT as the body: as plain text, or as `{"sql": ...}`."""
    form, sql = chosen(accept, ROWS), await _sql_of(request)

    def work(epoch: PublishedEpoch) -> Encoded:
        return Encoded(service.query(epoch, sql), form, around_of(epoch))

    epoch, rows = await service.read(moment, work)
    return rows.response(headers_of(epoch, NO_STORE), service.unsent)


async def _sql_of(request: Request) -> str:
    """The query in a body. Raises BadParameter."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise BadParameter(f"the body has more than {_MOST_BYTES} bytes", hint="send the SELECT alone")
    is_json = request.headers.get("content-type", "").startswith("application/json")
    try:
        sql = orjson.loads(body)["sql"] if is_json else body.decode()
    except (ValueError, KeyError, TypeError):
        sql = None
    if not isinstance(sql, str):
        raise BadParameter("the body is not a query", hint='send the SELECT as text/plain, or {"sql": "SELECT ..."}')
    return sql
