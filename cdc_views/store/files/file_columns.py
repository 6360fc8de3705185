"""Where the columns of a Parquet file are in its row groups, which count the leaves of nested columns, too."""

from __future__ import annotations

import pyarrow.parquet as pq


def column_places(footer: pq.FileMetaData) -> dict[str, int]:
    """The place of each column that is not nested, by name.

    A leaf has its path as `path_in_schema`: that of `b` in a struct `a` is the same as that of a column named "a.b".
    """
    leaves = map(footer.schema.column, range(footer.num_columns))
    return {leaf.name: place for place, leaf in enumerate(leaves) if leaf.path == leaf.name}
