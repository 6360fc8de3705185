"""Rows of a view or mirror: some, or those with given keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import pyarrow as pa
from fastapi import APIRouter, Query, Request, Response

from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.http.answers import (
    ROWS,
    WEAK,
    Accept,
    Answer,
    Encoded,
    Format,
    IfNoneMatch,
    OneRow,
    chosen,
    is_unchanged,
    tag_of,
)
from cdc_views.serve.http.moments import TheMoment, around_of
from cdc_views.serve.http.routes.keys import KeysOrNone, key_in_path, keys_of, not_found
from cdc_views.serve.http.service import HttpService, TheService
from cdc_views.serve.table_reader import TableReader

ROUTER: Final = APIRouter(tags=["rows"])

_BATCH_ROWS: Final = 16384


@ROUTER.get("/views/{name}/rows")
async def get_rows(
    service: TheService,
    moment: TheMoment,
    name: str,
    key: KeysOrNone = None,
    limit: Annotated[int, Query(ge=0, description="the most rows without key=")] = 1000,
    columns: Annotated[str | None, Query(description="only these columns, separated by commas")] = None,
    accept: Accept = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Read some rows, in no particular order; with `key`, those with these keys, in their order.

    `is_complete` is false if there are more rows than `limit`; `absent` has the keys without a row. NDJSON and Arrow
    have these as `Is-Complete` and, as a number, `Absent`. A single key that has no row is a 404.
    """
    form = chosen(accept, ROWS)
    service.require_rows(limit)
    question = [key, None if key is not None else limit, columns, form.value]

    def work(epoch: PublishedEpoch) -> Answer:
        table = TableReader(epoch, name, service.stored)
        etag = WEAK + tag_of([*service.identity(table), *question])
        if is_unchanged(if_none_match, etag):
            return Answer.unchanged(etag)
        names = table.columns(None if columns is None else columns.split(","))
        around = around_of(epoch)
        if key is None:
            rows, around["is_complete"] = _some(service, table, names, limit)
            return Answer(etag, Encoded(rows, form, around), {"Is-Complete": str(around["is_complete"]).lower()})
        found = table.get_many(keys_of(table, key))
        if found == [None]:
            raise not_found(epoch, name)
        absent = [text for text, row in zip(key, found, strict=True) if row is None]
        rows = service.as_table([row for row in found if row is not None], _fields(table, names))
        return Answer(etag, Encoded(rows, form, {**around, "absent": absent}), {"Absent": str(len(absent))})

    epoch, answer = await service.read(moment, work)
    return answer.response(epoch, service.unsent)


@ROUTER.get("/views/{name}/rows/{key:path}")
async def get_row(
    service: TheService,
    moment: TheMoment,
    name: str,
    key: str,
    request: Request,
    accept: Accept = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Read the row with a key: its values in their order, separated by slashes. A slash in a value is %2F."""
    chosen(accept, [Format.JSON])
    texts = key_in_path(request)

    def work(epoch: PublishedEpoch) -> OneRow:
        table = TableReader(epoch, name, service.stored)
        row = table.get(*table.key_of_text(texts))
        if row is None:
            raise not_found(epoch, name)
        return OneRow.of(service.as_table([row], table.schema))

    epoch, found = await service.read(moment, work)
    return found.response(epoch, if_none_match)


def _some(service: HttpService, table: TableReader, names: Sequence[str], limit: int) -> tuple[pa.Table, bool]:
    """At most `limit` rows, and whether these are all. Raises ResultTooLarge."""
    is_complete = True

    def first() -> Iterator[pa.RecordBatch]:
        nonlocal is_complete
        left = limit
        for batch in table.batches(_BATCH_ROWS, names):
            yield batch.slice(0, left)
            if batch.num_rows > left:
                is_complete = False
                return
            left -= batch.num_rows

    rows = pa.Table.from_batches(service.within(first()), _fields(table, names))
    return rows, is_complete


def _fields(table: TableReader, names: Sequence[str]) -> pa.Schema:
    return pa.schema([table.schema.field(name) for name in names])
