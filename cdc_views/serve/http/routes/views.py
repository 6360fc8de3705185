"""The views and mirrors that can be read."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from cdc_views.base.names import HIDDEN
from cdc_views.errors import UnknownView
from cdc_views.serve.http.moments import NO_STORE, TheMoment, headers_of
from cdc_views.serve.http.service import Service, TheService
from cdc_views.serve.published import PublishedEpoch
from cdc_views.store.control import TableVersion
from cdc_views.store.reading import row_count

ROUTER: Final = APIRouter(tags=["views"])


class Column(BaseModel):
    """A column of a view or mirror."""

    name: str
    type: str = Field(description="its type in Arrow")


class ViewDescription(BaseModel):
    """A view or mirror."""

    name: str = Field(description="that of the view, or schema.table of the mirror")
    kind: str = Field(description="view or mirror")
    status: str
    age_s: float | None = Field(description="how long ago the source was as its rows are; null if it has stopped")
    rows: int | None = Field(description="null if the log of the table does not say")
    key: list[str] | None = Field(description="the columns that identify a row; null if it has no key")
    columns: list[Column]


class ViewList(BaseModel):
    """All views and mirrors of an epoch."""

    epoch: int
    position: str
    views: list[ViewDescription]


@ROUTER.get("/views")
async def get_views(service: TheService, moment: TheMoment, response: Response) -> ViewList:
    """List the views and mirrors."""

    def work(epoch: PublishedEpoch) -> list[ViewDescription]:
        return [_describe(service, epoch, name, table) for name, table in sorted(epoch.tables.items())]

    epoch, found = await service.read(moment, work)
    response.headers.update(headers_of(epoch, NO_STORE))
    return ViewList(epoch=epoch.number, position=str(epoch.position), views=found)


@ROUTER.get("/views/{name}")
async def get_view(service: TheService, moment: TheMoment, name: str, response: Response) -> ViewDescription:
    """Describe a view or mirror; also one that has failed or is stopped."""

    def work(epoch: PublishedEpoch) -> ViewDescription:
        if name not in epoch.tables:
            raise UnknownView(f'epoch {epoch.number} has no table "{name}"', hint="GET /views lists them")
        return _describe(service, epoch, name, epoch.tables[name])

    epoch, found = await service.read(moment, work)
    response.headers.update(headers_of(epoch, NO_STORE))
    return found


def _describe(service: Service, epoch: PublishedEpoch, name: str, table: TableVersion) -> ViewDescription:
    stored = service.stored.describe(table.path)
    is_keyed = stored.key is not None and not any(column.startswith(HIDDEN) for column in stored.key)
    return ViewDescription(
        name=name,
        kind=table.kind,
        status=table.status,
        age_s=max(0.0, epoch.age_s) if name in epoch.readable else None,
        rows=row_count(epoch.warehouse, table.path, table.version),
        key=list(stored.key or ()) if is_keyed else None,
        columns=[Column(name=field.name, type=str(field.type))
                 for field in stored.schema if not field.name.startswith(HIDDEN)],
    )  # fmt: skip
