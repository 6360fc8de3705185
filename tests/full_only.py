"""Lets every view be recomputed in full, for tests of that strategy."""

from __future__ import annotations

import pytest

from cdc_views.engine.views import choice
from cdc_views.engine.views.strategies import TooMany


def recompute_in_full(patched: pytest.MonkeyPatch) -> None:
    """Let every other strategy find each change too large."""

    def too_many(work: object) -> None:
        raise TooMany("in this test every change is")

    for name in ("keys", "add", "add_groups", "patch"):
        patched.setattr(choice, name, too_many)
