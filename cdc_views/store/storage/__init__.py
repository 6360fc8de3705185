"""The file system under the warehouse: durable writes, the storage port, errors of the operating system as ours."""

from __future__ import annotations

from cdc_views.store.storage import durable
from cdc_views.store.storage.disk import touching, unusable, unusable_by

__all__ = [
    "durable",
    "touching",
    "unusable",
    "unusable_by",
]
