"""One file for each group of routes; each has a `ROUTER`.

epochs.py   GET /epoch
views.py    GET /views, /views/{name}
explain.py  GET /views/{name}/explain
rows.py     GET /views/{name}/rows, /views/{name}/rows/{key}
kinds/      GET /views/{name}/search, /views/{name}/timeline, /views/{name}/cache
query.py    GET and POST /query
changes.py  GET /views/{name}/changes
status.py   GET /status, /epochs, /history, /views/{name}/history
server.py   GET /metrics, /docs, /openapi.json
page.py     GET /, /page/{path}

keys.py has what those of rows share: keys in paths and parameters.
A new group is a file here, and its name in ROUTERS.
"""

from __future__ import annotations

from typing import Final

from cdc_views.serve.http.routes import changes, epochs, explain, page, query, rows, server, status, views
from cdc_views.serve.http.routes.kinds import cache, search, timeline

_GROUPS: Final = (epochs, views, explain, rows, search, timeline, cache, query, changes, status, server, page)

ROUTERS: Final = [module.ROUTER for module in _GROUPS]
"""The routers of all groups, in the order in which the page shows them."""
