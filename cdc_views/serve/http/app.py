"""The application: the routes, and what applies to each request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from cdc_views import __version__
from cdc_views.config import HttpSettings
from cdc_views.errors import CdcViewsError
from cdc_views.serve.http.gate import Gate
from cdc_views.serve.http.problems import MEDIA_TYPE, Problem, on_bad_parameter, on_error, on_http_error, on_unexpected
from cdc_views.serve.http.routes import ROUTERS
from cdc_views.serve.http.service import HttpService

_ABOUT: Final = """Read the mirrors and views of cdc_views at one epoch. Errors are problem details (RFC 9457).
/openapi.json has this interface for programs."""


def create_app(service: HttpService, settings: HttpSettings) -> ASGIApp:
    """The application for a warehouse."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    problem = Problem.model_json_schema()
    app = FastAPI(
        title="cdc_views",
        version=__version__,
        description=_ABOUT,
        redirect_slashes=False,  # to the host that the request names
        openapi_url=None,  # routes/server.py has it, made in a thread; without it there is no docs_url either
        lifespan=lifespan,
        # The gate has checked the token: this only describes it.
        dependencies=[Security(HTTPBearer(auto_error=False))],
        responses={"default": {"description": "An error", "content": {MEDIA_TYPE: {"schema": problem}}}},
    )
    app.state.service = service
    app.add_exception_handler(CdcViewsError, on_error)
    app.add_exception_handler(RequestValidationError, on_bad_parameter)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(Exception, on_unexpected)
    for router in ROUTERS:
        app.include_router(router)
    return Gate(app, settings.tokens, service.requests, service.counters)
