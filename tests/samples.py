"""How much of its sweeps a run of the tests takes: a part for each change, and more of it in `just nightly`."""

from __future__ import annotations

import os
from typing import Final

SEEDS: Final = int(os.environ.get("CDC_VIEWS_SEEDS", "1"))
"""The length of the sweeps without Spark that have no variable of their own; `just nightly`: 5."""
EXAMPLES: Final = int(os.environ.get("CDC_VIEWS_EXAMPLES", "50"))
"""Random views without Spark; `just nightly`: 2,000."""
OF_EACH_VIEW: Final = max(1, EXAMPLES // 100)
"""Random histories of each named view without Spark."""
EPOCHS: Final = 30 if EXAMPLES >= 300 else 12
"""Epochs of a long history of a view without Spark."""


def sample(quick: int, nightly: int) -> int:
    """How often a run repeats something: less often for each change than in `just nightly`."""
    return nightly if SEEDS > 1 else quick
