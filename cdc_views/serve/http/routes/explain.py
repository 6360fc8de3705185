"""How a view is kept: its definition, what it reads, its strategy and why."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.http.service import HttpService, TheService
from cdc_views.store.control import KeptView, TakeoverDetail, read_control

ROUTER: Final = APIRouter(tags=["views"])


class ExplainedView(BaseModel):
    """How a view is kept, as the engine has recorded it when it started."""

    name: str
    kept: KeptView | None = Field(description="null for a mirror, and for a view that the engine could not run")
    inputs: list[str] = Field(description="the tables that it reads")
    readers: list[str] = Field(description="the views that read it")


@ROUTER.get("/views/{name}/explain", response_model=ExplainedView)
async def get_explain(service: TheService, name: str) -> Response:
    """Explain a view: its definition, its strategy and key with reasons, what is looked up, and what reads it.

    `cdc-views explain` also says where its result differs from Postgres.
    """
    return await service.describe(lambda: _explain(service, name))


def _explain(service: HttpService, name: str) -> ExplainedView:
    takeovers = (record for record in reversed(read_control(service.warehouse)) if record.kind == "takeover")
    # The takeover of a rollback declares no views.
    kept = next((found for record in takeovers if (found := TakeoverDetail.read(record).kept)), {})
    if name not in kept:
        epoch = PublishedEpoch(service.warehouse, service.known.last())
        if name not in epoch.tables:
            epoch.table(name)  # raises what it is instead
    view = kept.get(name)
    readers = sorted(other for other, each in kept.items() if name in each.inputs)
    return ExplainedView(name=name, kept=view, inputs=[] if view is None else list(view.inputs), readers=readers)
