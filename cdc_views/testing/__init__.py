"""Tools for tests of views, ours and those of users (docs/testing.md).

harness.py        the engine over tables in memory: changes in, rows of views out
changes.py        Insert, Update, Delete
ddl.py            reads Postgres's CREATE TABLE into the source's catalog
values.py         Python values to what Postgres stores, and from there to Debezium's JSON
memory_source.py  tables that apply changes as Postgres would
memory_log.py     the log that Debezium would have written
rows.py           rows compared as multisets
crash.py          crashes at named points
hand_clock.py     a clock moved by hand
histories.py      random histories (needs hypothesis: pip install cdc-views[testing])
wal.py            decodes Postgres's WAL for the oracle (docs/oracle.md)
"""

from cdc_views.plan.explain import Explanation
from cdc_views.testing.changes import Change, Delete, Insert, Update
from cdc_views.testing.crash import POINTS, crash_at
from cdc_views.testing.hand_clock import HandClock
from cdc_views.testing.harness import Changes, Cost, ViewHarness
from cdc_views.testing.local_spark import local_spark
from cdc_views.testing.rows import assert_equal, same_rows

__all__ = [
    "POINTS",
    "Change",
    "Changes",
    "Cost",
    "Delete",
    "Explanation",
    "HandClock",
    "Insert",
    "Update",
    "ViewHarness",
    "assert_equal",
    "crash_at",
    "local_spark",
    "same_rows",
]
