"""The changes that a test makes to the tables of a harness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Values: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Insert:
    """A new row. Omitted columns take their default, or NULL."""

    table: str
    row: Values


@dataclass(frozen=True)
class Update:
    """Sets the values `new` in the row with the values `old` (its key is enough). Other columns do not change."""

    table: str
    old: Values
    new: Values


@dataclass(frozen=True)
class Delete:
    """Deletes the row with the values `old` (its key is enough)."""

    table: str
    old: Values


Change: TypeAlias = Insert | Update | Delete
