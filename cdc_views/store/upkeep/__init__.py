"""Upkeep of tables and of the control log: compaction, checkpoints, clean-up, vacuum."""

from __future__ import annotations

from cdc_views.store.upkeep.compaction import FULL_ROWS, compact
from cdc_views.store.upkeep.control_upkeep import ControlUpkeep
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from cdc_views.store.upkeep.vacuum import remove_tables

__all__ = ["FULL_ROWS", "ControlUpkeep", "TableUpkeep", "compact", "remove_tables"]
