"""Which pairs of crashes to try: some, at random, or all of them."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence, Set
from itertools import product
from typing import Final

import pytest

VARIABLE: Final = "CDC_VIEWS_CRASH_PAIRS"
"""`all`, or the seed that the names of a run's tests begin with, for the same pairs again."""
SAMPLE: Final = "CDC_VIEWS_CRASH_PAIRS_SAMPLE"
"""How many pairs a module takes; `just nightly` sets it."""

_RECOVERED: Final = "recovery.after_intent"
_TAKEN_BACK: Final = "abandon.after_first_restore"
_COMMITTED: Final = frozenset({"mirrors.after_first_commit", "epoch.after_mirrors", "views.after_first_commit",
                               "epoch.before_publish", _RECOVERED})  # fmt: skip
# A crash at one of these points leaves what the recovery reaches the point with.
_LEFT_BY: Final = {_RECOVERED: _COMMITTED | {"epoch.after_intent"}, _TAKEN_BACK: _COMMITTED | {_TAKEN_BACK}}
HALF_DONE: Final = "epoch.before_publish"


def pairs(points: Sequence[str], some: int) -> pytest.MarkDecorator:
    """Parametrize a test with `first` and `second`: `some` pairs at random, or what the environment asks for."""
    wanted, some = os.environ.get(VARIABLE, ""), int(os.environ.get(SAMPLE, some))
    # After that first one the log in memory has nothing newer than eight days, so no recovery repeats a cut of it.
    everything = [pair for pair in product(sorted(points), repeat=2) if pair != (_TAKEN_BACK, _RECOVERED)]
    seed = int(wanted) if wanted.isdigit() else random.randrange(1_000_000)
    chosen = everything if wanted == "all" else random.Random(seed).sample(everything, some)
    return pytest.mark.parametrize(("first", "second"), chosen, ids=[f"{seed}-{a}-{b}" for a, b in chosen])


def crashes(first: str, second: str, outside: Set[str] = frozenset()) -> list[str]:
    """The pair, with a crash before each of the two that an epoch half done must be there for.

    The points of `outside` may be reached outside an epoch, too.
    """
    needed = [] if first not in _LEFT_BY else [HALF_DONE]
    between = [HALF_DONE] if second in _LEFT_BY and first not in _LEFT_BY[second] - outside else []
    return [*needed, first, *between, second]
