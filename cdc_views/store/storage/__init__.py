"""The file system under the warehouse: durable writes, the storage port, errors of the operating system as ours."""

from __future__ import annotations

from cdc_views.store.storage import durable
from cdc_views.store.storage.disk import require_folder, touching, unusable, unusable_by

__all__ = [
    "durable",
    "require_folder",
    "touching",
    "unusable",
    "unusable_by",
]
