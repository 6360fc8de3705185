"""A negative control for each view of the shapes: it misses what is removed, which a history must notice.

Only that view is broken, and not the views that it reads. The histories are the same in every run. A run takes some of
the views, `just nightly` all of them. What breaks the rules of the engine: test_view_shape_controls.py.
"""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from cdc_views.engine.views.strategies import STRATEGIES, Incremental, Recompute, Strategy
from cdc_views.plan.incremental import Leaf
from cdc_views.store.warehouse import Changes, RowsChanged
from tests.seed import SEED
from tests.spark.test_view_shape_controls import SEEDS, is_noticed
from tests.view_shapes import VIEWS

COUNT: Final = os.environ.get("CDC_VIEWS_CONTROL_VIEWS", "3")
# If the average of all rows changes, the view is computed in full; that rule is broken in test_view_shape_controls.py.
BROKEN: Final = [name for name in VIEWS if name != "scalar_uncorrelated"]
CHOSEN: Final = BROKEN if COUNT == "all" else Random(f"controls {SEED}").sample(BROKEN, int(COUNT))


def without_removed_inputs(monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    """Let the rows that a change removes from the inputs of this view count for nothing."""
    delta = Incremental.delta

    def broken(work: Incremental[Any], leaf: Leaf) -> RowsChanged:
        found = delta(work, leaf)
        return replace(found, old=found.old.slice(0, 0)) if work.view.definition.name == view else found

    monkeypatch.setattr(Incremental, "delta", broken)


def without_deleted_rows(monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    """Let the rows that the whole SQL of this view no longer returns stay in it."""
    full: Strategy = STRATEGIES["FULL"]

    def broken(work: Recompute) -> Changes | None:
        changes = full(work)
        if changes is None or work.view.definition.name != view:
            return changes
        return replace(changes, deleted=None)

    monkeypatch.setitem(STRATEGIES, "FULL", broken)


@pytest.mark.parametrize("view", CHOSEN)
def test_history_notices_a_view_that_misses_what_is_removed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    breaks = without_deleted_rows if VIEWS[view].strategy == "FULL" else without_removed_inputs
    breaks(monkeypatch, view)
    assert any(is_noticed(spark, view, seed) for seed in SEEDS)
