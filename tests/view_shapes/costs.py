"""Compares what one change costs a view over tables of two sizes, by counters. No time is compared."""

from __future__ import annotations

from typing import Final

from cdc_views.testing import Cost

# The most that each counter may grow by while the tables grow by the factor LARGER.
LARGER: Final = 16
MOST: Final = {
    "keys_looked_up": 1.5,
    "rows_found": 1.5,
    "rows_recomputed": 1.5,
    "rows_read": 1.5,
    "rows_written": 1.5,
    "files_read": 2.0,
}


def problems(view: str, small: Cost, large: Cost, tables: int = 1) -> list[str]:
    """What is wrong with the costs of one change over small and large tables: nothing if they are flat.

    `tables` is the number of tables that the view is kept in: its own, and those of its internal views.
    """
    found = [
        f'view "{view}": {name} grew from {before} to {after}, wanted at most {most} times'
        for name, most in MOST.items()
        if (after := getattr(large, name)) > most * (before := getattr(small, name))
    ]
    commits = max(small.commits, large.commits)
    if commits > tables:
        found.append(f'view "{view}": {commits} commits in one epoch, wanted at most {tables}')
    return found
