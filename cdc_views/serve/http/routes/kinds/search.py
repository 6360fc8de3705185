"""Searches of an index."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Annotated, Final

import pyarrow as pa
from fastapi import APIRouter, Query, Response

from cdc_views.search import ScorePart
from cdc_views.search.columns import Condition
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.http.answers import ROWS, Accept, Answer, IfNoneMatch, chosen
from cdc_views.serve.http.moments import TheMoment, around_of, next_page
from cdc_views.serve.http.service import TheService
from cdc_views.serve.kinds.search import Hit, SearchIndex, SearchRequest, search

ROUTER: Final = APIRouter(tags=["kinds"])

_PIECES: Final = pa.list_(pa.struct([("text", pa.string()), ("matches", pa.bool_())]))
_NUMBERS: Final = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
_PART: Final = pa.struct([(each.name, _NUMBERS[str(each.type)]) for each in fields(ScorePart)])


@ROUTER.get("/views/{name}/search")
async def get_search(
    service: TheService,
    moment: TheMoment,
    name: str,
    q: Annotated[str, Query(description='words, "phrases", prefix*, +must, -not and column:word')],
    limit: Annotated[int, Query(description="the documents of a page")] = 10,
    filter: Annotated[  # noqa: A002 (what it is called in searches)
        list[str] | None, Query(description="column=value; also !=, <, <=, > and >=. All must hold")
    ] = None,
    sort: Annotated[list[str] | None, Query(description="a column, or -column for descending; or several")] = None,
    cursor: Annotated[str | None, Query(description="that of a page, for the page after it, of the same epoch")] = None,
    explain: Annotated[bool, Query(description="add what each score is the sum of")] = False,
    accept: Accept = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Search a view of kind search_index: the documents that match, best first.

    Each row has the `key`, the `score`, the `document` by column, and `snippets`: for each text column that matches,
    the pieces of its matching part. `explanation` is empty without `explain`. `total` documents match in all; NDJSON
    and Arrow have this as `Total-Hits`. `cursor` leads to the next page; it is null, and there is no header
    `Next-Cursor`, on the last one.
    """
    form = chosen(accept, ROWS)
    given = [(each.column, each.operator, each.value) for each in map(Condition.parse, filter or ())]
    request = SearchRequest.of(name, q, limit=limit, filter=given, sort=sort, cursor=cursor, explain=explain)

    def work(epoch: PublishedEpoch) -> Answer:
        result = search(epoch, service.stored, request, service.search_limits)
        schema = _schema_of(SearchIndex(epoch, name, service.stored))
        rows = service.as_table([_as_row(hit) for hit in result.hits], schema)
        around = {**around_of(epoch), "total": result.total, "cursor": result.cursor}
        return Answer.by_content(
            rows, form, if_none_match, around, {"Total-Hits": str(result.total), **next_page(result.cursor)}
        )

    epoch, answer = await service.read(request.moment(moment), work)
    return answer.response(epoch, service.unsent)


def _schema_of(index: SearchIndex) -> pa.Schema:
    return pa.schema(
        [
            ("key", index.schema.field(index.options.key).type),
            ("score", pa.float64()),
            ("document", pa.struct(list(index.schema))),
            ("snippets", pa.struct([(text, _PIECES) for text in index.options.fields])),
            ("explanation", pa.list_(_PART)),
        ]
    )


def _as_row(hit: Hit) -> dict[str, object]:
    explanation = [asdict(part) for part in hit.explanation]
    return {"key": hit.key, "score": hit.score, "document": hit.document, "snippets": _pieces(hit),
            "explanation": explanation}  # fmt: skip


def _pieces(hit: Hit) -> dict[str, list[dict[str, object]]]:
    return {
        column: [{"text": text, "matches": matches} for text, matches in found.pieces]
        for column, found in hit.snippets.items()
    }
