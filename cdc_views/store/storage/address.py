"""Where a warehouse is, as somebody gives it to a reader: a folder, or its `file:` URL."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from cdc_views.errors import BadWarehouse

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_HERE: Final = ("", "localhost")
_HINTS: Final = {
    "http": "give the folder; a server is read by requests, such as GET /query (docs/http.md)",
    "file": "a file: URL has three slashes and no host, as in file:///data/warehouse",
}


def folder_at(address: str | PathLike[str]) -> Path:
    """The folder of a warehouse. A path-like object is always a path. Raises BadWarehouse for any other URL.

    As a path, "s3://bucket/lake" would be the folder "s3:/bucket/lake". The message has no URL, which may have a
    password.
    """
    found = _URL.match(address) if isinstance(address, str) else None
    if found is None:
        return Path(address).absolute()
    scheme, parts = found[1].lower(), urlsplit(str(address))
    if scheme == "file" and parts.netloc in _HERE:
        return Path(unquote(parts.path))
    raise BadWarehouse(
        f'found a URL of scheme "{scheme}", wanted the folder of a warehouse, or its file: URL',
        hint=_HINTS.get(scheme.rstrip("s"), "object stores are not supported: copy the warehouse, or mount it"),
    )
