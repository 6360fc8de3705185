"""The numbers of those fields of Parquet's structures that are read or written here.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from typing import Final

MAGIC: Final = b"PAR1"


class FileMetaData:
    """The footer of a file."""

    VERSION: Final = 1
    SCHEMA: Final = 2
    ROWS: Final = 3
    ROW_GROUPS: Final = 4


class SchemaElement:
    """A column, or a part of one."""

    NAME: Final = 4
    CHILDREN: Final = 5


class RowGroup:
    """A row group."""

    CHUNKS: Final = 1
    BYTES: Final = 2
    ROWS: Final = 3


class ColumnChunk:
    """A column of a row group: where its page index is, and its description."""

    FILE_OFFSET: Final = 2
    METADATA: Final = 3
    INDEX_BEGIN: Final = 4
    INDEX_BYTES: Final = 5


class ColumnMetaData:
    """The description of a column of a row group."""

    TYPE: Final = 1
    ENCODINGS: Final = 2
    PATH: Final = 3
    CODEC: Final = 4
    VALUES: Final = 5
    DECODED_BYTES: Final = 6
    BYTES: Final = 7
    FIRST_PAGE: Final = 9
    DICTIONARY: Final = 11
