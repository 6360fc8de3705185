"""SQL over a published epoch, by DuckDB.

query.py      answers a query
statement.py  which queries are answered: SELECT statements over published tables, and nothing else
limits.py     how much a query may take
"""

from __future__ import annotations

from cdc_views.serve.sql.limits import NO_LIMITS, QueryLimits
from cdc_views.serve.sql.query import query

__all__ = ["NO_LIMITS", "QueryLimits", "query"]
