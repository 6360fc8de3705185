"""Random views over random histories: what KEYS, ADD and PATCH maintain equals the view's SQL, after every epoch.

Each run takes other examples; a failure names the seed that gives the same ones again, and then makes them smaller.
CDC_VIEWS_EXAMPLES says how many (tests/samples.py).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import EXAMPLES
from tests.seed import naming_the_seed, randomly
from tests.unit.incremental.random_example import example

ENOUGH: Final = 2000  # examples, for each operator to occur
OPERATORS: Final = {
    "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "comma", "USING", "NATURAL", "ON with more", "LATERAL", "EXISTS",
    "NOT EXISTS", "IN", "scalar subquery", "GROUP BY", "HAVING", "FILTER", "count(DISTINCT)", "DISTINCT", "UNION",
    "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "window row_number", "window rank",
    "window sum", "window lag", "CTE", "derived table", "stored derived table", "star", "SEMI JOIN", "ANTI JOIN",
    "LEFT LATERAL", "LIMIT in LATERAL", "group expression", "ordered list", "IN as a value", "expression alone",
    "correlation by expressions", "uncorrelated subquery", "window by another column", "total", "stored totals",
    "QUALIFY", "top-k", "ORDER BY LIMIT", "EXISTS as a value", "NOT IN", "GROUPING SETS",
    "first rows below", "join in parentheses", "computed group of sets",
}  # fmt: skip


@pytest.mark.timeout(max(600, EXAMPLES))
def test_view_that_is_maintained_by_keys_equals_its_sql_after_every_epoch() -> None:
    counts: Counter[str] = Counter()

    @randomly(EXAMPLES)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        drawn = example(data)
        if drawn is None:
            counts["refused"] += 1
            return
        for _ in drawn.epochs():
            pass
        drawn.count(counts)

    with naming_the_seed():
        run()
        assert counts["KEYS"] > EXAMPLES / 8, counts
        assert counts["ADD"], counts
        assert counts["PATCH"], counts
        if EXAMPLES >= ENOUGH:
            assert {name for name, count in counts.items() if count} >= OPERATORS
