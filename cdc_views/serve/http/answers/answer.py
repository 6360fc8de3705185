"""Rows with their ETag: what the routes that read rows return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import orjson
import pyarrow as pa
from fastapi import Header, Response

from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.http.answers.etags import WEAK, is_unchanged, tag_of, tag_of_rows
from cdc_views.serve.http.answers.formats import Encoded, Format
from cdc_views.serve.http.limits import Unsent
from cdc_views.serve.http.moments import REVALIDATE, headers_of
from cdc_views.serve.values.json_value import json_rows

Accept = Annotated[str | None, Header()]
IfNoneMatch = Annotated[str | None, Header()]


@dataclass(frozen=True)
class OneRow:
    """A row as JSON, with its ETag."""

    etag: str
    body: bytes

    @classmethod
    def of(cls, rows: pa.Table, etag: str | None = None) -> Self:
        """Encode the only one of some rows, whose ETag is that of its body if it has no other."""
        [row] = json_rows(rows)
        body = orjson.dumps(row)
        return cls(etag or tag_of(body), body)

    def response(self, epoch: PublishedEpoch, if_none_match: str | None) -> Response:
        """The response; without the row if the client has it."""
        headers = headers_of(epoch, REVALIDATE, self.etag)
        if is_unchanged(if_none_match, self.etag):
            return Response(status_code=304, headers=headers)
        return Response(self.body, 200, headers, Format.JSON.value)


@dataclass(frozen=True)
class Answer:
    """Rows, or None if the client has what the ETag names. `headers` are further ones."""

    etag: str
    rows: Encoded | None
    headers: Mapping[str, str]

    @classmethod
    def unchanged(cls, etag: str) -> Self:
        """The answer to a client that has it."""
        return cls(etag, None, {})

    @classmethod
    def by_content(
        cls,
        rows: pa.Table,
        form: Format,
        if_none_match: str | None,
        around: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> Self:
        """An answer that is the same as another one if its rows are."""
        etag = WEAK + tag_of_rows(rows, form.value, str(headers or ""))
        return cls(etag, None if is_unchanged(if_none_match, etag) else Encoded(rows, form, around), headers or {})

    def response(self, epoch: PublishedEpoch, unsent: Unsent) -> Response:
        """The response. Raises ServerBusy if clients have not read too much already."""
        headers = {**headers_of(epoch, REVALIDATE, self.etag), **self.headers}
        if self.rows is None:
            return Response(status_code=304, headers=headers)
        return self.rows.response(headers, unsent)
