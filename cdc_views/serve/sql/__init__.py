"""SQL over a published epoch, by DuckDB.

query.py      answers a query
statement.py  which queries are answered: SELECT statements over published tables, and nothing else
limits.py     how much a query may take
processes.py  queries of many clients, each in a process that holds the limits
"""

from __future__ import annotations

from cdc_views.serve.sql.limits import NO_LIMITS, QueryLimits
from cdc_views.serve.sql.processes import QueryProcesses
from cdc_views.serve.sql.query import query

__all__ = ["NO_LIMITS", "QueryLimits", "QueryProcesses", "query"]
