"""Rows of a view or mirror: some, or those with given keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final
from urllib.parse import unquote_to_bytes

import orjson
import pyarrow as pa
from fastapi import APIRouter, Header, Query, Request, Response

from cdc_views.errors import BadParameter, ResultTooLarge, RowNotFound
from cdc_views.serve.http.etags import WEAK, is_unchanged, tag_of
from cdc_views.serve.http.formats import ROWS, Encoded, Format, chosen
from cdc_views.serve.http.moments import REVALIDATE, TheMoment, headers_of
from cdc_views.serve.http.service import Service, TheService
from cdc_views.serve.json_value import json_value
from cdc_views.serve.published import PublishedEpoch
from cdc_views.serve.table_reader import TableReader

ROUTER: Final = APIRouter(tags=["rows"])

_MOST_KEYS: Final = 1000
_BATCH_ROWS: Final = 16384
_BEFORE_KEY: Final = 4  # parts of the path: "", "views", the name, "rows"

Accept = Annotated[str | None, Header()]
IfNoneMatch = Annotated[str | None, Header()]


@ROUTER.get("/views/{name}/rows")
async def get_rows(
    service: TheService,
    moment: TheMoment,
    name: str,
    key: Annotated[
        list[str] | None, Query(description="a key, or several; one of several columns is an array of JSON")
    ] = None,
    limit: Annotated[int, Query(ge=0, description="the most rows without key=")] = 1000,
    columns: Annotated[str | None, Query(description="only these columns, separated by commas")] = None,
    accept: Accept = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Read some rows, in no particular order; with `key`, those with these keys, in their order.

    `is_complete` is false if there are more rows than `limit`. A single key that has no row is a 404.
    """
    form = chosen(accept, ROWS)
    if limit > service.settings.result_rows:
        raise ResultTooLarge(f"limit is {limit}, wanted at most {service.settings.result_rows}")
    if key is not None and len(key) > _MOST_KEYS:
        raise BadParameter(f"found {len(key)} keys, wanted at most {_MOST_KEYS}")
    question = [key, None if key is not None else limit, columns, form.value]

    def work(epoch: PublishedEpoch) -> tuple[str, Encoded | None]:
        table = TableReader(epoch, name, service.stored)
        identity = service.stored.identity(table.relative_path, table.version)
        etag = WEAK + tag_of([table.relative_path, table.version, identity, *question])
        if is_unchanged(if_none_match, etag):
            return etag, None
        names = _columns(table, columns)
        around: dict[str, Any] = {"epoch": epoch.number, "position": str(epoch.position)}
        if key is None:
            rows = _some(service, table, names, limit + 1)
            around["is_complete"] = rows.num_rows <= limit
            return etag, Encoded(rows.slice(0, limit), form, around)
        found, absent = _with_keys(table, key)
        if absent and len(key) == 1:
            raise _not_found(epoch, name)
        around["absent"] = absent
        return etag, Encoded(pa.Table.from_pylist(found, table.schema).select(names), form, around)

    epoch, (etag, rows) = await service.read(moment, work)
    headers = headers_of(epoch, REVALIDATE, etag)
    return Response(status_code=304, headers=headers) if rows is None else rows.response(headers, service.unsent)


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
    parts = _key_in(request.scope["raw_path"])

    def work(epoch: PublishedEpoch) -> bytes:
        row = TableReader(epoch, name, service.stored).get_by_text(*parts)
        if row is None:
            raise _not_found(epoch, name)
        return orjson.dumps(json_value(row))

    epoch, body = await service.read(moment, work)
    etag = tag_of(body)
    headers = headers_of(epoch, REVALIDATE, etag)
    if is_unchanged(if_none_match, etag):
        return Response(status_code=304, headers=headers)
    return Response(body, 200, headers, Format.JSON.value)


def _key_in(raw_path: bytes) -> list[str]:
    """The values in a path, which is not decoded: a value may have a slash. Raises BadParameter."""
    try:
        return [unquote_to_bytes(part).decode() for part in raw_path.split(b"/")[_BEFORE_KEY:]]
    except UnicodeDecodeError:
        raise BadParameter("the key in the path is not UTF-8") from None


def _columns(table: TableReader, text: str | None) -> list[str]:
    known: list[str] = table.schema.names
    if text is None:
        return known
    names = list(dict.fromkeys(text.split(",")))
    if unknown := [name for name in names if name not in known]:
        raise BadParameter(
            f'"{table.name}" has no column {", ".join(unknown)}', hint=f"columns are {', '.join(known)}"
        )  # fmt: skip
    return names


def _some(service: Service, table: TableReader, names: Sequence[str], count: int) -> pa.Table:
    """So many rows. Raises ResultTooLarge if they are larger than an answer may be."""
    taken: list[pa.RecordBatch] = []
    left, size, most = count, 0, service.settings.result_mb << 20
    for batch in table.batches(_BATCH_ROWS, names):
        taken.append(batch.slice(0, left))
        left, size = left - taken[-1].num_rows, size + taken[-1].nbytes
        if size > most:
            raise ResultTooLarge(
                f"the rows are larger than {most >> 20} MiB, which is the limit", hint="lower limit=, or name columns="
            )
        if left == 0:
            break
    return pa.Table.from_batches(taken, pa.schema([table.schema.field(name) for name in names]))


def _with_keys(table: TableReader, keys: Sequence[str]) -> tuple[list[dict[str, object]], list[str]]:
    """The rows that there are, and the keys that have none."""
    found, absent = [], []
    is_single = len(table.key) == 1
    for text in keys:
        row = table.get_by_text(*([text] if is_single else _values(text)))
        if row is None:
            absent.append(text)
        else:
            found.append(row)
    return found, absent


def _values(text: str) -> list[str | None]:
    try:
        values = orjson.loads(text)
    except orjson.JSONDecodeError:
        values = None
    if not isinstance(values, list) or not all(isinstance(value, str | int | float | None) for value in values):
        raise BadParameter("a key of several columns is an array of JSON", hint='write key=["ada",1]')
    return [value if isinstance(value, str | None) else orjson.dumps(value).decode() for value in values]


def _not_found(epoch: PublishedEpoch, name: str) -> RowNotFound:
    return RowNotFound(
        f'epoch {epoch.number} has no row with this key in "{name}"', hint="at_least= waits for a write of your own"
    )
