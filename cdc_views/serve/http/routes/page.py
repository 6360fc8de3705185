"""The page, which anybody may load: it has no data, and asks for a token where the server needs one."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

from cdc_views.serve.http.answers import IfNoneMatch, is_unchanged, tag_of
from cdc_views.serve.page import KINDS, page_files

ROUTER: Final = APIRouter(include_in_schema=False)

_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        *(f"{what}-src 'self'" for what in ("script", "style", "connect")),
        *(f"{what} 'none'" for what in ("base-uri", "form-action", "frame-ancestors")),
        "require-trusted-types-for 'script'",  # so that no text can become markup
        "trusted-types 'none'",
    )
)
_HEADERS: Final = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}


@ROUTER.get("/")
async def get_page(if_none_match: IfNoneMatch = None) -> Response:
    """Show the page."""
    return _file("index.html", if_none_match)


@ROUTER.get("/page/{path:path}")
async def get_file(path: str, if_none_match: IfNoneMatch = None) -> Response:
    """A file of the page."""
    return _file(path, if_none_match)


def _file(path: str, if_none_match: str | None) -> Response:
    content = page_files().get(path)
    if content is None:
        raise HTTPException(404)
    headers = {**_HEADERS, "ETag": tag_of(content)}
    if is_unchanged(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(content, 200, headers, KINDS[path.rpartition(".")[2]])
