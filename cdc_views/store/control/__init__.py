"""The control log `_epochs`: every decision of the writer, in order, and what must be kept because of it."""

from __future__ import annotations

from cdc_views.store.control.control_log import (
    FOLDER,
    ControlLog,
    known_attempts,
    last_published,
    last_published_of,
    last_reset,
    last_takeover,
    open_intent,
    published_after,
    read_control,
)
from cdc_views.store.control.details import (
    CaptureNames,
    CutDetail,
    IntentDetail,
    KeptView,
    PublishedDetail,
    QuarantineDetail,
    ResetDetail,
    ShadowTable,
    TakeoverDetail,
    changes_mirror,
    request_of,
    updates_view,
)
from cdc_views.store.control.known_log import KnownLog, KnownRecords
from cdc_views.store.control.records import (
    BUILDING,
    INTERNAL_VIEW_FOLDER,
    MIRROR_FOLDER,
    PUBLISHING,
    VIEW_FOLDER,
    ControlRecord,
    TableVersion,
    table_kind,
)
from cdc_views.store.control.retention import Needed, needed

__all__ = [
    "BUILDING",
    "FOLDER",
    "INTERNAL_VIEW_FOLDER",
    "MIRROR_FOLDER",
    "PUBLISHING",
    "VIEW_FOLDER",
    "CaptureNames",
    "ControlLog",
    "ControlRecord",
    "CutDetail",
    "IntentDetail",
    "KeptView",
    "KnownLog",
    "KnownRecords",
    "Needed",
    "PublishedDetail",
    "QuarantineDetail",
    "ResetDetail",
    "ShadowTable",
    "TableVersion",
    "TakeoverDetail",
    "changes_mirror",
    "known_attempts",
    "last_published",
    "last_published_of",
    "last_reset",
    "last_takeover",
    "needed",
    "open_intent",
    "published_after",
    "read_control",
    "request_of",
    "table_kind",
    "updates_view",
]
