"""The server itself: its metrics, and what describes the interface."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from prometheus_client import CONTENT_TYPE_LATEST

from cdc_views.serve.http.description import described
from cdc_views.serve.http.service import TheService

ROUTER: Final = APIRouter(tags=["server"])


@ROUTER.get("/metrics")
async def get_metrics(service: TheService) -> Response:
    """Metrics of this server for Prometheus; those of the engine are at `cdc-views run --metrics-port`."""
    # Not by a thread that reads: a scrape would wait for queries. The number of metrics has a limit.
    return Response(service.counters.text(), media_type=CONTENT_TYPE_LATEST)


@ROUTER.get("/docs")
async def get_docs(service: TheService, request: Request) -> Response:
    """Show this page."""
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    return HTMLResponse(await service.run(lambda: described(request.app.openapi())), headers=headers)


@ROUTER.get("/openapi.json", include_in_schema=False)
async def get_openapi(service: TheService, request: Request) -> Response:
    """Describe the interface for programs."""
    return await service.describe(request.app.openapi)
