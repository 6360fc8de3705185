"""Wires what the epochs of an engine need: those of the engine itself, and of the test harness over a log in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cdc_views.engine.epoch.steps import EpochWriter
from cdc_views.engine.input.bulk import BulkReader
from cdc_views.engine.input.lost_rows import LostRows
from cdc_views.engine.input.quarantine import Quarantine
from cdc_views.engine.tables import FindPath, Tables, as_defined
from cdc_views.engine.views.maintain import ViewRunner
from cdc_views.log.cuts.cut import CutLog
from cdc_views.source.catalog import SourceTable
from cdc_views.store.control import ControlLog
from cdc_views.store.warehouse import Warehouse

DeclareViews = Callable[[Tables], ViewRunner]


@dataclass(frozen=True)
class Mirrored:
    """The tables of one generation that are mirrored, where their mirrors are, and how many are committed at once."""

    generation: str
    sources: Iterable[SourceTable]
    find_path: FindPath = as_defined
    parallel_commits: int = 2


def wire(
    log: CutLog,
    warehouse: Warehouse,
    mirrored: Mirrored,
    declare_views: DeclareViews,
    control: ControlLog,
    *,
    parks: bool = False,
    bulk: BulkReader | None = None,
    lost_rows: LostRows | None = None,
) -> EpochWriter:
    """Create the tables that do not exist yet, the views' by `declare_views`, and wire them to the log.

    `parks` is whether bad events are parked; `bulk` and `lost_rows` are as of Input.
    """
    tables = Tables(warehouse, mirrored.generation, mirrored.sources, mirrored.parallel_commits, mirrored.find_path)
    quarantine = Quarantine(tables, parks=parks)
    return EpochWriter(log, tables, declare_views(tables), control, quarantine, bulk, lost_rows)
