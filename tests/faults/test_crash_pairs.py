"""Pairs of crashes: one at a point, and one at a point of the start after it; the third start must be right.

What needs no JVM, in one process by raising; with views: tests/spark/test_crash_pairs.py. All of them:
`just crash-pairs`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_views.faults import POINTS
from cdc_views.testing import crash_at
from tests.crash_pairs import crashes, pairs
from tests.ledger import EIGHT_DAYS_S, OFTEN, Ledger, MirrorEngine, assert_right

pytestmark = pytest.mark.usefixtures("without_fsync")

# The others need Spark, or are a rebuild's.
PARTS = ("takeover", "epoch", "index", "mirrors", "recovery", "abandon", "upkeep")
REACHED = sorted(point for point in POINTS if point.split(".")[0] in PARTS)
EPOCHS = 40  # within so many all upkeep is due
SOME = 8


class Crashing:
    """A ledger whose engine is started again after each crash."""

    def __init__(self, root: Path) -> None:
        self.root, self.ledger = root, Ledger()
        self.engine = self.started()
        self.engine.epochs(3)

    def started(self) -> MirrorEngine:
        engine = MirrorEngine(self.root, self.ledger)
        engine.start()
        return engine

    def crash(self, point: str) -> None:
        """Start, and run epochs until the point is reached. Raises FaultNotReached."""
        if point == "upkeep.after_leftover_moved":
            (self.root / "views" / "old" / "1" / "_delta_log").mkdir(parents=True, exist_ok=True)
        if point == "abandon.after_first_restore":
            self.ledger.clock.advance(EIGHT_DAYS_S)
        with crash_at(point):
            self.started().epochs(EPOCHS)


@pytest.mark.proves(
    wrong="Two crashes in a row, the second during the recovery from the first",
    seen="no error",
    do="start the engine again",
)
@pairs(REACHED, SOME)
def test_third_start_after_two_crashes_is_right(tmp_path: Path, first: str, second: str) -> None:
    crashing = Crashing(tmp_path)
    for point in crashes(first, second):
        crashing.crash(point)
    engine = crashing.started()
    assert_right(tmp_path, crashing.ledger, OFTEN.keep_epochs)
    engine.epochs(4)
    assert_right(tmp_path, crashing.ledger, OFTEN.keep_epochs)
