"""The control log `_epochs`: every decision of the writer, in order, and what must be kept because of it."""

from __future__ import annotations

from cdc_views.store.control.control_log import (
    FOLDER,
    ControlLog,
    known_attempts,
    last_published,
    last_reset,
    last_takeover,
    read_control,
)
from cdc_views.store.control.records import PUBLISHING, ControlRecord, Kind, TableVersion
from cdc_views.store.control.retention import REPLACED, Needed, needed

__all__ = [
    "FOLDER",
    "PUBLISHING",
    "REPLACED",
    "ControlLog",
    "ControlRecord",
    "Kind",
    "Needed",
    "TableVersion",
    "known_attempts",
    "last_published",
    "last_reset",
    "last_takeover",
    "needed",
    "read_control",
]
