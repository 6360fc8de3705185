"""The input of a strategy."""

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
    """A view to update in an epoch.

    `relations` maps each input to the temporary view of `session` that holds the input's version in the epoch.
    `stored` are the view's rows so far: an Arrow table if the view and its inputs are small enough for the driver;
    else a DataFrame, or None for a view without rows. `most` is the largest result that the driver collects.
    """

    view: CompiledView
    spec: TableSpec
    session: SparkSession
    relations: Mapping[str, str]
    stored: pa.Table | DataFrame | None
    most: Bound


Strategy = Callable[[Recompute], Changes | None]
