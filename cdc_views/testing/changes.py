"""The changes that a test makes to the tables of a harness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Values: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Insert:
    """A new row; columns left out take their default, or NULL."""

    table: str
    row: Values


@dataclass(frozen=True)
class Update:
    """The row that has the values `old` (its key is enough) gets those of `new`; the rest stays as it is."""

    table: str
    old: Values
    new: Values


@dataclass(frozen=True)
class Delete:
    """The row that has the values `old` (its key is enough) vanishes."""

    table: str
    old: Values


Change: TypeAlias = Insert | Update | Delete
