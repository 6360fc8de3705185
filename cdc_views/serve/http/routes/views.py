"""The views and mirrors that can be read."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from cdc_views.base.names import HIDDEN
from cdc_views.errors import CdcViewsError
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.http.moments import TheMoment
from cdc_views.serve.http.problems import Problem, problem_of
from cdc_views.serve.http.service import HttpService, TheService
from cdc_views.store.control import BUILDING, TableVersion
from cdc_views.store.reading import row_count
from cdc_views.views.kinds import DEFAULT_KIND

ROUTER: Final = APIRouter(tags=["views"])


class ColumnDescription(BaseModel):
    """A column of a view or mirror."""

    name: str
    type: str = Field(description="its type in Arrow")


class ViewDescription(BaseModel):
    """A view or mirror."""

    name: str = Field(description="that of the view, or schema.table of the mirror")
    kind: str = Field(description="view or mirror")
    shape: str | None = Field(None, description="of a view: sql, timeline, cache, search_index or saved_searches")
    status: str
    age_s: float | None = Field(None, description="how long ago the source was as its rows are; null if it has stopped")
    rows: int | None = Field(None, description="null if the log of the table does not say")
    key: list[str] | None = Field(None, description="the columns that identify a row; null if it has no key")
    columns: list[ColumnDescription] = Field(default_factory=list)
    problem: Problem | None = Field(None, description="why its rows cannot be read, if so")


class ViewList(BaseModel):
    """All views and mirrors of an epoch."""

    epoch: int
    position: str
    views: list[ViewDescription]


@ROUTER.get("/views", response_model=ViewList)
async def get_views(service: TheService, moment: TheMoment) -> Response:
    """List the views and mirrors, also those that cannot be read, and those that are being built."""

    def work(epoch: PublishedEpoch) -> ViewList:
        found = [_describe(service, epoch, name) for name in sorted(_names(epoch))]
        return ViewList(epoch=epoch.number, position=str(epoch.position), views=found)

    return await service.describe_at(moment, work)


@ROUTER.get("/views/{name}", response_model=ViewDescription)
async def get_view(service: TheService, moment: TheMoment, name: str) -> Response:
    """Describe a view or mirror; also one that has failed, is stopped, or is being built."""

    def work(epoch: PublishedEpoch) -> ViewDescription:
        if name not in _names(epoch):
            epoch.table(name)  # raises what it is instead
        return _describe(service, epoch, name)

    return await service.describe_at(moment, work)


def _names(epoch: PublishedEpoch) -> set[str]:
    """The tables of an epoch, and the views that are being built for later ones."""
    return {*epoch.tables, *epoch.detail.building}


def _describe(service: HttpService, epoch: PublishedEpoch, name: str) -> ViewDescription:
    table = epoch.tables.get(name)
    found = ViewDescription(
        name=name,
        kind="view" if table is None else table.kind,
        status=BUILDING if table is None else table.status,
        age_s=max(0.0, epoch.age_s) if name in epoch.readable else None,
    )
    try:
        if table is not None:
            _add_facts(found, service, table)
        epoch.table(name)
    except CdcViewsError as error:  # one table must not hide the others
        found.problem = Problem.model_validate(problem_of(error))
    return found


def _add_facts(found: ViewDescription, service: HttpService, table: TableVersion) -> None:
    """Add what the Delta table says of itself. Raises TableUnavailable, WarehouseUnusable."""
    stored = service.stored.describe(table.path)
    if table.kind == "view":
        found.shape = stored.kind.get("kind", DEFAULT_KIND)
    if stored.key is not None and not any(column.startswith(HIDDEN) for column in stored.key):
        found.key = list(stored.key)
    columns = (field for field in stored.schema if not field.name.startswith(HIDDEN))
    found.columns = [ColumnDescription(name=field.name, type=str(field.type)) for field in columns]
    found.rows = row_count(service.warehouse, table.path, table.version)
