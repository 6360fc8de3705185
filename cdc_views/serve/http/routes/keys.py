"""Keys of rows in paths and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final
from urllib.parse import unquote_to_bytes

import orjson
from fastapi import Query, Request

from cdc_views.errors import BadParameter, RowNotFound
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.table_reader import TableReader

MOST_KEYS: Final = 1000
_BEFORE_KEY: Final = 4  # parts of the path: "", "views", the name, "rows" or "cache"

_OF_KEYS: Final = Query(description="a key, or several; one of several columns is an array of JSON")

Keys = Annotated[list[str], _OF_KEYS]
KeysOrNone = Annotated[list[str] | None, _OF_KEYS]


def key_in_path(request: Request) -> list[str]:
    """The values in a path, which is not decoded: a value may have a slash. Raises BadParameter."""
    try:
        return [unquote_to_bytes(part).decode() for part in request.scope["raw_path"].split(b"/")[_BEFORE_KEY:]]
    except UnicodeDecodeError:
        raise BadParameter("the key in the path is not UTF-8", hint="encode it in UTF-8") from None


def keys_of(table: TableReader, texts: Sequence[str]) -> list[list[object]]:
    """The keys that texts stand for. Raises BadParameter, BadKey."""
    if len(texts) > MOST_KEYS:
        raise BadParameter(f"found {len(texts)} keys, wanted at most {MOST_KEYS}", hint="send several requests")
    is_single = len(table.key) == 1
    return [table.key_of_text([text] if is_single else _values(text)) for text in texts]


def not_found(epoch: PublishedEpoch, name: str) -> RowNotFound:
    """The error for a key without a row."""
    return RowNotFound(
        f'epoch {epoch.number} has no row with this key in "{name}"', hint="at_least= waits for a write of your own"
    )


def _values(text: str) -> list[str | None]:
    try:
        values = orjson.loads(text)
    except orjson.JSONDecodeError:
        values = None
    if not isinstance(values, list) or not all(isinstance(value, str | int | float | None) for value in values):
        raise BadParameter("a key of several columns is an array of JSON", hint='write key=["ada",1]')
    if any(isinstance(value, float) for value in values):  # whole numbers of more than 64 bits are among these
        hint = 'write it as a text, as in key=["ada","1.50"]'
        raise BadParameter("a number of a key may be inexact in JSON", hint=hint)
    return [value if isinstance(value, str | None) else orjson.dumps(value).decode() for value in values]
