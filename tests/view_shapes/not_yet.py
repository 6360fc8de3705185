"""The views whose strategy is weaker than the list of shapes wants, with the strategy that `explain` shows today.

A test compares both ways: a view that improves must leave this table, and a view that is not here must be good enough.
A view that must be FULL is here until its explanation gives the right reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NOT_YET: Final[Mapping[str, str]] = {
    "join_on_aggregate": "FULL",
}
