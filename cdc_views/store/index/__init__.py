"""Finding stored rows by key without Spark: fingerprints, the index over them, and reading the rows that it finds.

hashing.py       fingerprints of keys
parts.py         sorted fingerprints with the file and row number of each
key_index.py     an index from fingerprints to file and row number
driver_table.py  what the driver holds of each table: its state, and its indexes
stored_keys.py   the stored rows that have one of some keys
lookups.py       rows of a version of a table, by key
known_file.py    what lookups know of a data file, and which of its pages they read
fetching.py      fetches rows by file and row number
changed_rows.py  the rows that differ between two versions of a table
first_values.py  the rows with the largest or smallest values of a column, without an index
row_bags.py      compares rows as bags
"""

from __future__ import annotations

from cdc_views.store.index.hashing import Fingerprints, fingerprints
from cdc_views.store.index.key_index import KeyIndex
from cdc_views.store.index.stored_keys import read_keys

__all__ = ["Fingerprints", "KeyIndex", "fingerprints", "read_keys"]
