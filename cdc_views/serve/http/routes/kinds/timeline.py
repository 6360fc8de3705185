"""Pages of a timeline."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.http.answers import ROWS, WEAK, Accept, Answer, Encoded, IfNoneMatch, chosen, is_unchanged, tag_of
from cdc_views.serve.http.moments import TheMoment, around_of, next_page
from cdc_views.serve.http.service import TheService
from cdc_views.serve.kinds.timeline import PAGE_ENTRIES, owner_of_text, read_page
from cdc_views.serve.table_reader import TableReader

ROUTER: Final = APIRouter(tags=["kinds"])


@ROUTER.get("/views/{name}/timeline")
async def get_timeline(
    service: TheService,
    moment: TheMoment,
    name: str,
    owner: Annotated[str, Query(description="whose entries")],
    limit: Annotated[int, Query(ge=1, description="the entries of a page")] = PAGE_ENTRIES,
    cursor: Annotated[str | None, Query(description="that of a page, for the page after it")] = None,
    accept: Accept = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Read a page of a view of kind timeline: the entries of an owner in the view's order.

    `cursor` leads to the next page, also from a later epoch: an entry comes once, unless what it is ordered by changes
    meanwhile. `cursor` is null, and there is no header `Next-Cursor`, if there are no further entries.
    """
    form = chosen(accept, ROWS)
    service.require_rows(limit)
    question = [owner, limit, cursor, form.value]

    def work(epoch: PublishedEpoch) -> Answer:
        table = TableReader(epoch, name, service.stored)
        of = owner_of_text(epoch, service.stored, name, owner)
        etag = WEAK + tag_of([*service.identity(table), *question])
        if is_unchanged(if_none_match, etag):
            return Answer.unchanged(etag)
        page = read_page(epoch, service.stored, name, of, limit, cursor)
        rows = service.as_table(page.entries, table.schema)
        around = {**around_of(epoch), "cursor": page.cursor}
        return Answer(etag, Encoded(rows, form, around), next_page(page.cursor))

    epoch, answer = await service.read(moment, work)
    return answer.response(epoch, service.unsent)
