"""Swaps back the tables that a swap has replaced, after they have caught up with the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession

from cdc_views.config import Settings
from cdc_views.engine.capture.captures import require_no_reset
from cdc_views.engine.epoch.swap import SwapRequest
from cdc_views.engine.spark.session import session_for
from cdc_views.engine.tables import SHADOW_SEPARATOR
from cdc_views.errors import BadReplay
from cdc_views.replay.exchange import exchange
from cdc_views.store.control import (
    PUBLISHING,
    ControlRecord,
    PublishedDetail,
    ShadowTable,
    known_attempts,
    read_control,
)
from cdc_views.store.delta_log import copy_table
from cdc_views.store.warehouse import Warehouse


def rollback(settings: Settings, jars: Sequence[Path], name: str) -> ControlRecord:
    """Undo the last swap of a table or view, for all tables that it swapped in.

    The replaced tables first catch up with the log. `jars` are Delta's. Raises BadReplay, LogGap.
    """
    require_no_reset(settings.warehouse)
    swapped = _last_swap(read_control(settings.warehouse), name)
    with session_for(settings.engine, jars) as spark:
        replaced = PublishedDetail.read(swapped).replaced
        request = SwapRequest(uuid4().hex[:8], "rollback", _clean(settings.warehouse, spark, replaced))
        return exchange(settings, lambda: spark, request)


def _last_swap(records: list[ControlRecord], name: str) -> ControlRecord:
    generation = next((record.generation for record in reversed(records) if record.published_at is not None), None)
    for record in reversed(records):
        if record.generation != generation:
            continue  # a reset has replaced its generation
        replaced = PublishedDetail.read(record).replaced if record.kind in PUBLISHING else {}
        if name in replaced or f"public.{name}" in replaced:
            return record
    raise BadReplay(
        f'no swap has replaced "{name}"', hint='"cdc-views epochs" lists swaps; "cdc-views rebuild --swap" makes one'
    )


def _clean(root: Path, spark: SparkSession, tables: Mapping[str, ShadowTable]) -> dict[str, ShadowTable]:
    """The tables, with a copy of the published version in place of each that another writer has written to."""
    warehouse, records = Warehouse(root, spark), read_control(root)
    ours = known_attempts(records)
    clean = {}
    for name, table in tables.items():
        clean[name] = table
        if warehouse.history.unknown_commits(table.path, table.version, ours):
            path = f"{table.path}{SHADOW_SEPARATOR}{uuid4().hex[:8]}"
            copy_table(root, table.path, table.version, path)
            clean[name] = replace(table, path=path)
    return clean
