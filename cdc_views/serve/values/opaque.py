"""Tokens and cursors: places that a reader gets as a text and gives back unchanged."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

import orjson


def opaque(facts: Sequence[Any]) -> str:
    """Values of JSON as a text without blanks."""
    return urlsafe_b64encode(orjson.dumps(facts)).decode().rstrip("=")


def facts_of(text: str) -> Any:
    """The values of such a text, or others of JSON if it is none of ours. Raises ValueError."""
    return orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
