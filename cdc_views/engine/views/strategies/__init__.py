"""How the changes of a view are computed: one file per strategy.

recompute.py    the input of a strategy
full.py         runs the whole query
incremental.py  what KEYS, ADD and PATCH do alike: the changed rows, and the query over a few rows
keys.py         looks up what a change affects, and runs the query over these rows
adding/         adds the totals over the changed rows to the stored ones, and merges stored lists of values
patch.py        merges the stored first rows of each partition with the rows that are added
shown.py        changes of columns that a view only shows
timelines.py    the order of a timeline, by which the driver merges rows for patch.py
difference.py   the difference between two states of a view in the driver's memory
guards.py       conditions on a result that Spark checks while it computes it
results.py      what strategies do alike with a result

A strategy returns the changes to commit, or None if nothing changed.
"""

from __future__ import annotations

from typing import Final

from cdc_views.engine.views.strategies.adding import add, add_groups
from cdc_views.engine.views.strategies.full import full
from cdc_views.engine.views.strategies.incremental import Incremental, Plan, TooMany
from cdc_views.engine.views.strategies.keys import keys
from cdc_views.engine.views.strategies.patch import patch
from cdc_views.engine.views.strategies.recompute import Recompute, Strategy

__all__ = [
    "STRATEGIES",
    "Incremental",
    "Plan",
    "Recompute",
    "Strategy",
    "TooMany",
    "add",
    "add_groups",
    "keys",
    "patch",
]

STRATEGIES: Final[dict[str, Strategy]] = {"FULL": full}
