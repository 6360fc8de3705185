"""Errors as problem details (RFC 9457), and the HTTP status of each."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from cdc_views import errors
from cdc_views.errors import BadParameter, CdcViewsError

MEDIA_TYPE: Final = "application/problem+json"

STATUS: Final[dict[type[CdcViewsError], int]] = {
    errors.Unauthorized: 401,
    errors.UnknownView: 404,
    errors.RowNotFound: 404,
    errors.NotAcceptable: 406,
    errors.KeyNotRecorded: 409,
    errors.EpochNotRetained: 410,
    errors.TableUnavailable: 410,
    errors.ForeignHost: 421,
    errors.QueryTooLong: 422,
    errors.ResultTooLarge: 422,
    errors.BadInput: 400,
    errors.ServerBusy: 503,
    errors.NothingPublished: 503,
    errors.NotPublishedYet: 503,
    errors.EpochTooOld: 503,
    errors.ViewBeingBuilt: 503,
    errors.ViewFailed: 503,
    errors.AnalyzerDiffers: 503,
    errors.SchemaChanged: 503,
    errors.TableTruncated: 503,
    errors.StoreError: 503,
    CdcViewsError: 500,
}
"""The status of an error is that of the nearest of these classes above it."""

_FACTS: Final = ("behind_bytes", "age_s", "oldest")
_RETRY_AFTER_S: Final = 1


class Problem(BaseModel):
    """An error: problem details by RFC 9457."""

    type: str = Field(description="urn:cdc-views: and the name of the error")
    title: str = Field(description="what errors of this name mean")
    status: int
    detail: str = Field(description="what happened")
    hint: str | None = Field(None, description="what to do")
    error: str = Field(description="the name of the error, as in docs/faults.md")


def status_of(error: CdcViewsError) -> int:
    """The HTTP status of an error."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem_of(error: CdcViewsError) -> dict[str, Any]:
    """The problem details of an error."""
    name = type(error).__name__
    facts = {fact: value for fact in _FACTS if (value := getattr(error, fact, None)) is not None}
    title = (type(error).__doc__ or name).split("\n\n")[0].replace("\n", " ")
    return _problem(name, status_of(error), " ".join(title.split()), error.message, error.hint) | facts


def respond(error: CdcViewsError) -> Response:
    """The response for an error."""
    headers = {}
    if isinstance(error, errors.Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    if error.retryable or isinstance(error, errors.NothingPublished):
        headers["Retry-After"] = str(_RETRY_AFTER_S)
    return _response(problem_of(error), headers)


async def on_unexpected(_request: Request, _error: Exception) -> Response:
    """Handle an error that is a bug of ours: say nothing, since its message may have values of rows."""
    detail = "an unexpected error, whose place is in the log of the server"
    return _response(_problem("Unexpected", 500, "A bug in cdc_views.", detail, "report the line of the log"))


async def on_error(_request: Request, error: Exception) -> Response:
    """Handle an error of ours."""
    assert isinstance(error, CdcViewsError)
    return respond(error)


async def on_bad_parameter(_request: Request, error: Exception) -> Response:
    """Handle parameters that FastAPI has refused."""
    assert isinstance(error, RequestValidationError)
    found = [f"{'.'.join(str(part) for part in each['loc'][1:])}: {each['msg']}" for each in error.errors()]
    return respond(BadParameter("; ".join(found), hint="GET /openapi.json has the parameters"))


async def on_http_error(_request: Request, error: Exception) -> Response:
    """Handle paths and methods that there are not."""
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    problem = _problem(phrase.replace(" ", ""), error.status_code, phrase, phrase.lower(), "GET /docs has the paths")
    return _response(problem, dict(error.headers or {}))


def _problem(name: str, status: int, title: str, detail: str, hint: str | None) -> dict[str, Any]:
    problem = Problem(
        type=f"urn:cdc-views:{name}", title=title, status=status, detail=detail, hint=hint, error=name
    )  # fmt: skip
    return problem.model_dump(exclude_none=True)


def _response(problem: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    return Response(
        orjson.dumps(problem), problem["status"], {"Cache-Control": "no-store", **(headers or {})}, MEDIA_TYPE
    )
