"""Tools for tests of views, ours and those of users (docs/testing.md).

harness.py      the engine over tables in memory: changes in, rows of views out
changes.py      Insert, Update, Delete
memory/         the source and the log of the harness
rows.py         rows compared as multisets
saved_searches.py  the rows of saved searches from scratch
crash.py        crashes at named points
hand_clock.py   a clock moved by hand
local_spark.py  a Spark session for tests
histories.py    random histories (needs hypothesis: pip install cdc-views[testing])
flatness.py     many epochs of a small table: is the cost flat?
oracle.py       the content of every table at every position of the WAL (docs/oracle.md)
epochs.py       compares every published epoch with the oracle
postgres/       what Postgres itself says: its WAL, a shadow database, queries
"""

from cdc_views.plan.explain import Explanation
from cdc_views.testing.changes import Change, Delete, Insert, Update
from cdc_views.testing.crash import POINTS, crash_at
from cdc_views.testing.hand_clock import HandClock
from cdc_views.testing.harness import Cost, ViewChanges, ViewHarness
from cdc_views.testing.local_spark import local_spark
from cdc_views.testing.rows import assert_equal, same_rows

__all__ = [
    "POINTS",
    "Change",
    "Cost",
    "Delete",
    "Explanation",
    "HandClock",
    "Insert",
    "Update",
    "ViewChanges",
    "ViewHarness",
    "assert_equal",
    "crash_at",
    "local_spark",
    "same_rows",
]
