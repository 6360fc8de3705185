"""The page of `cdc-views serve`: plain HTML, CSS and ES modules, which use the public routes of HTTP and nothing else.

index.html  the frame: header, navigation, and where the panels are
theme.css   colours, light and dark, and what all elements look like
*.css       the parts of the panels, by where they are; narrow.css for phones
main.js     which panel is shown, and the header
api.js      requests, the token, problems
dom.js      makes elements; what comes from the server becomes text, never markup
format.js   numbers, durations, sizes and positions for people
parts/      graphs, tables, pages of entries, forms, problems, kinds, and the question for the token
panels/     one file for each panel

No file is generated, and none is loaded from elsewhere.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}
"""The media type of each kind of file."""


@cache
def page_files() -> dict[str, bytes]:
    """The files of the page by their path."""
    return dict(_files_in(files(__name__), ""))


def _files_in(folder: Traversable, before: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _files_in(each, f"{before}{each.name}/")
        elif each.name.rpartition(".")[2] in KINDS:
            found.append((before + each.name, each.read_bytes()))
    return found
