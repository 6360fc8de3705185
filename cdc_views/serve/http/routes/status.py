"""What the project does: its status, its epochs, and its last hour."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from cdc_views.serve.epochs.history import Minutes, by_minute, epoch_row, is_of, table_row
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.http.service import TheService
from cdc_views.serve.watch.stages import Stage
from cdc_views.serve.watch.status import Status

ROUTER: Final = APIRouter(tags=["status"])

_MOST: Final = 1000
Last = Annotated[int, Query(ge=1, le=_MOST, description="how many of the last epochs, at most")]


class StatusDescription(BaseModel):
    """What `cdc-views status` shows."""

    epoch: int
    position: str
    age_s: float = Field(description="how long ago the source was as the epoch shows it")
    trouble: str | None = Field(description="what is wrong, beginning with what to do; null if nothing is")
    activity: str = Field(description="what the engine does")
    stages: list[Stage] = Field(description="from the source to its readers; what is not known is null")
    lines: list[str] = Field(description="the same, and more, for people")
    tables: list[dict[str, Any]] = Field(description="a row for each mirror and view, as of cdc-views status --json")


@ROUTER.get("/status", response_model=StatusDescription)
async def get_status(service: TheService) -> Response:
    """Say what the engine does, what is wrong, and how far each stage and each table is.

    In the folder of a project, Postgres, Kafka and Connect are looked at every few seconds, from the first request on.
    """
    return await service.status(_describe)


def _describe(found: Status) -> StatusDescription:
    return StatusDescription(
        epoch=found.epoch.number,
        position=str(found.epoch.position),
        age_s=max(0.0, found.epoch.age_s),
        trouble=found.trouble,
        activity=found.activity,
        stages=list(found.stages),
        lines=list(found.lines),
        tables=[dict(row) for row in found.rows],
    )


@ROUTER.get("/epochs", response_model=list[dict[str, Any]])
async def get_epochs(
    service: TheService,
    last: Last = 20,
    idle: Annotated[bool, Query(description="also those without changes")] = False,
) -> Response:
    """List the published epochs, newest last, as `cdc-views epochs --json`."""

    def work() -> list[dict[str, Any]]:
        records = [each for each in service.known.published() if idle or not each.is_idle]
        return [epoch_row(record) for record in records[-last:]]

    return await service.describe(work)


@ROUTER.get("/history", response_model=Minutes)
async def get_history(
    service: TheService,
    minutes: Annotated[int, Query(ge=1, le=_MOST, description="how far back")] = 60,
) -> Response:
    """Sum up what the epochs of each minute did, as far as the control log has them."""
    return await service.describe(lambda: by_minute(service.known.published(), datetime.now(UTC), minutes))


@ROUTER.get("/views/{name}/history", response_model=list[dict[str, Any]])
async def get_view_history(service: TheService, name: str, last: Last = 20) -> Response:
    """List the epochs that changed a view or mirror, newest last: how, and at what cost."""

    def work() -> list[dict[str, Any]]:
        found = service.known.published()
        epoch = PublishedEpoch(service.warehouse, found[-1])
        if name not in epoch.tables:
            epoch.table(name)  # raises what it is instead
        return [table_row(record, name) for record in found if is_of(record, name)][-last:]

    return await service.describe(work)
