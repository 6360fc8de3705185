"""The description of the interface for people, made from its OpenAPI document. It loads nothing, and works offline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2rem; font: 600 1.1rem ui-monospace, monospace; overflow-wrap: anywhere; }
td { padding: .2rem 1rem .2rem 0; vertical-align: top; }
p { white-space: pre-line; }
"""


def described(document: Mapping[str, Any]) -> str:
    """The description of an OpenAPI document, as HTML."""
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    operations = [
        "\n".join(_operation(method, path, operation))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f"{head}<h1>{title}</h1><p>{_text(document['info'])}</p>" + "\n".join(operations) + "</html>"


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2>{method.upper()} {escape(path)}</h2><p>{_text(operation)}</p><table>"
    for parameter in operation.get("parameters", ()):
        yield f"<tr><td><code>{escape(parameter['name'])}</code></td><td>{_text(parameter)}</td></tr>"
    yield "</table>"


def _text(described: Mapping[str, Any]) -> str:
    return escape(described.get("description", ""))
