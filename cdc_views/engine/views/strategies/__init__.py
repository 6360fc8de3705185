"""How the change of a view is found: one file per strategy.

A strategy reads the inputs at their new versions and the view's stored rows, and returns what to
commit, or None if nothing changed.
"""

from __future__ import annotations

from typing import Final

from cdc_views.engine.views.strategies.full import full
from cdc_views.engine.views.strategies.recompute import Recompute, Strategy

__all__ = ["STRATEGIES", "Recompute", "Strategy"]

STRATEGIES: Final[dict[str, Strategy]] = {"FULL": full}
