"""Finding stored rows by key without Spark: fingerprints, the index over them, and reading the rows that it finds."""

from __future__ import annotations

from cdc_views.store.index.hashing import Fingerprints, fingerprints
from cdc_views.store.index.key_index import KeyIndex
from cdc_views.store.index.stored_keys import read_keys

__all__ = ["Fingerprints", "KeyIndex", "fingerprints", "read_keys"]
