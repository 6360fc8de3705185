"""Views of a harness that are rebuilt from its mirrors, and swapped in."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from pyspark.sql import SparkSession

from cdc_views.engine.epoch.swap import SwapRequest, plan_swap, publish_swap
from cdc_views.replay.origin import Origin
from cdc_views.replay.plan import RebuildPlan
from cdc_views.replay.shadow_tables import ShadowTables, stamp_of
from cdc_views.store.control import ControlRecord, ShadowTable
from cdc_views.store.warehouse import Warehouse
from cdc_views.testing import ViewHarness
from cdc_views.testing.harness import GENERATION


def rebuilt(h: ViewHarness, spark: SparkSession, names: Collection[str], request: str = "shadow") -> SwapRequest:
    """Shadow tables of these views, and of the mirrors that they read, as of the last epoch."""
    at = h.records[-1]
    levels = [[view for view in level if view.definition.name in names] for level in h._levels()]
    plan = RebuildPlan(Origin("snapshot"), [table.source for table in h._declared], levels)
    warehouse = Warehouse(h.warehouse, spark, is_writer=False)
    ours = ShadowTables(spark, warehouse, GENERATION, plan, request, cast(Any, None))
    for name in ours.tables.sources:
        mirror = at.tables[name]
        ours.fill(name, warehouse.frame(mirror.path, mirror.version), stamp_of(at))
    ours.compute_views(at)
    tables = {
        name: ShadowTable(spec.path, ours.newest_version(name), at.epoch) for name, spec in ours.tables.specs.items()
    }
    return SwapRequest(request, "swap", tables)


def swap_in(h: ViewHarness, request: SwapRequest) -> ControlRecord:
    """Publish the tables of a request."""
    with h._writing():
        return publish_swap(h._writer, request, plan_swap(h._writer, request))
