"""The strategy ADD: the totals over the changed rows are added to the stored ones.

add.py        counts and sums of a view with one row
add_groups.py counts and sums of groups
averages.py   averages, from a sum and a count
extremes.py   the smallest, the largest and the number of different values
"""

from __future__ import annotations

from cdc_views.engine.views.strategies.adding.add import add
from cdc_views.engine.views.strategies.adding.add_groups import add_groups

__all__ = ["add", "add_groups"]
