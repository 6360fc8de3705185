"""The strategy ADD: the totals over the changed rows are added to the stored ones. PATCH does the same with lists.

terms.py         the rows over which the totals of a change are computed
add.py           counts and sums of a view with one row
add_groups.py    counts, sums and ordered lists of groups
averages.py      averages, from a sum and a count
extremes.py      the smallest, the largest and the number of different values
ordered_lists.py the values of a group in their order, or the first of them
"""

from __future__ import annotations

from cdc_views.engine.views.strategies.adding.add import add
from cdc_views.engine.views.strategies.adding.add_groups import add_groups

__all__ = ["add", "add_groups"]
