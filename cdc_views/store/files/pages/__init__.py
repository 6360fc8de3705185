"""Reading single pages of Parquet files, which pyarrow cannot: it decodes whole row groups.

`page_map.py` finds out where the pages of a file are. `spliced.py` puts the wanted pages of several files together,
byte for byte and with a new footer, as a Parquet file in memory, which pyarrow decodes. So nothing here knows about
types and encodings.
"""

from __future__ import annotations

from cdc_views.store.files.pages.page_map import PageMap, page_map
from cdc_views.store.files.pages.spliced import WantedRows, read_rows

__all__ = ["PageMap", "WantedRows", "page_map", "read_rows"]
