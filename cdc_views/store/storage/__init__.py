"""The file system under the warehouse: its address, durable writes, the storage port, errors of the system as ours."""

from __future__ import annotations

from cdc_views.store.storage import durable
from cdc_views.store.storage.address import folder_at
from cdc_views.store.storage.disk import require_folder, touching, unusable, unusable_by

__all__ = [
    "durable",
    "folder_at",
    "require_folder",
    "touching",
    "unusable",
    "unusable_by",
]
