"""The epoch that is read."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.http.moments import TheMoment
from cdc_views.serve.http.service import TheService

ROUTER: Final = APIRouter(tags=["epochs"])


class EpochDescription(BaseModel):
    """A published epoch."""

    epoch: int
    position: str = Field(description="it holds everything committed up to here, and nothing after")
    complete_to: str = Field(description="at_least is met up to here")
    committed_at: datetime = Field(description="when the source was as the epoch shows it, by the source's clock")
    age_s: float = Field(description="how long ago that was")
    unequal: dict[str, str] = Field(description="mirrors that do not equal their Postgres table, and why")


@ROUTER.get("/epoch", response_model=EpochDescription)
async def get_epoch(service: TheService, moment: TheMoment) -> Response:
    """Describe the last epoch, or that of a moment."""
    return await service.describe_at(moment, _describe)


def _describe(epoch: PublishedEpoch) -> EpochDescription:
    return EpochDescription(
        epoch=epoch.number,
        position=str(epoch.position),
        complete_to=str(epoch.complete_to),
        committed_at=epoch.committed_at,
        age_s=max(0.0, epoch.age_s),
        unequal=epoch.unequal,
    )
