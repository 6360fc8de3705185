"""What a strategy works on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cdc_views.engine.views.strategies.guards import Bound
from cdc_views.plan.compiled import CompiledView
from cdc_views.store.warehouse import Changes, TableSpec


@dataclass(frozen=True)
class Recompute:
    """A view to bring to an epoch.

    `relations` maps each input to the temporary view of `session` that holds it at the epoch's
    version. `stored` are the view's rows so far: an Arrow table where view and inputs are small enough
    for the driver; else a DataFrame, or None for a view that was never built. `most` is how much of a result the
    driver takes.
    """

    view: CompiledView
    spec: TableSpec
    session: SparkSession
    relations: Mapping[str, str]
    stored: pa.Table | DataFrame | None
    most: Bound


Strategy = Callable[[Recompute], Changes | None]
