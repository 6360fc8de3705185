"""Names in the service schema of the source, which both the source's and the log's side know."""

from __future__ import annotations

from typing import Final

from cdc_views.names import TableName

SCHEMA: Final = "cdc_views"
HEARTBEAT: Final = TableName(SCHEMA, "heartbeat")
DDL: Final = TableName(SCHEMA, "ddl")
TRUNCATES: Final = TableName(SCHEMA, "truncates")

# Captured by the connector, and neither mirrored nor counted.
SERVICE_TABLES: Final = (HEARTBEAT, DDL, TRUNCATES)
