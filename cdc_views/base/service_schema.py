"""Names in the source's service schema, which `source` and `log` share."""

from __future__ import annotations

from typing import Final

from cdc_views.base.names import TableName

SCHEMA: Final = "cdc_views"
HEARTBEAT: Final = TableName(SCHEMA, "heartbeat")
DDL: Final = TableName(SCHEMA, "ddl")
TRUNCATES: Final = TableName(SCHEMA, "truncates")

# The connector captures them, but they are neither mirrored nor counted.
SERVICE_TABLES: Final = (HEARTBEAT, DDL, TRUNCATES)
