"""Deletion vectors: which rows of a data file are gone, as Delta's protocol stores them.

They are always in a file, never inline in the log: VACUUM of Spark 4.2 with Delta 4.4 fails on inline ones. A file
holds a version byte and then, for each vector, its length, its bytes and their CRC-32 (PROTOCOL.md of Delta, "Deletion
Vectors"). The bytes are a magic number and a 64-bit Roaring bitmap in portable form.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from pyroaring import BitMap64

from cdc_views.errors import StoreError

RowNumbers: TypeAlias = BitMap64
"""Rows of one data file, by their number in the file."""

StoredRows: TypeAlias = dict[str, RowNumbers]
"""Rows of a table version: the numbers of live rows, by the path of their file in the log."""

_FORMAT: Final = b"\x01"
_MAGIC: Final = struct.pack("<I", 1681511377)
_UUID_LENGTH: Final = 20  # 16 bytes in Z85

# Z85 is base 85 with another alphabet than Python's.
_B85: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85: Final = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO_Z85: Final = bytes.maketrans(_B85, _Z85)
_FROM_Z85: Final = bytes.maketrans(_Z85, _B85)


def read_rows(table: Path, descriptor: Mapping[str, Any] | None) -> RowNumbers:
    """The rows that a descriptor hides in its data file; none without a descriptor. Raises StoreError."""
    if descriptor is None:
        return RowNumbers()
    file = file_of(table, descriptor)
    size = descriptor["sizeInBytes"]
    with file.open("rb") as stored:
        stored.seek(descriptor["offset"])
        framed = stored.read(4 + size + 4)
    data = framed[4:-4]
    if framed != struct.pack(">I", size) + data + struct.pack(">I", zlib.crc32(data)) or data[:4] != _MAGIC:
        raise StoreError(f'table "{table.name}": deletion vector in "{file.name}" is damaged', hint="rebuild the table")
    return RowNumbers.deserialize(data[4:])


def file_of(table: Path, descriptor: Mapping[str, Any]) -> Path:
    """The file that holds a vector. Raises StoreError for a vector that is not in a file of the table."""
    if descriptor["storageType"] != "u":
        raise StoreError(f'table "{table.name}": found a deletion vector of storage "{descriptor["storageType"]}"')
    name = descriptor["pathOrInlineDv"]
    folder, encoded = name[:-_UUID_LENGTH], name[-_UUID_LENGTH:].encode()
    identity = uuid.UUID(bytes=base64.b85decode(encoded.translate(_FROM_Z85)))
    return Path(table, folder, f"deletion_vector_{identity}.bin")


class VectorFile:
    """A new file of deletion vectors: `add` one after the other, then write `content`."""

    def __init__(self) -> None:
        self._id = uuid.uuid4()
        self._content = bytearray(_FORMAT)

    @property
    def name(self) -> str:
        """Name of the file, in the table's folder."""
        return f"deletion_vector_{self._id}.bin"

    @property
    def holds_any(self) -> bool:
        """Whether a vector was added."""
        return len(self._content) > len(_FORMAT)

    @property
    def content(self) -> bytes:
        """The whole file."""
        return bytes(self._content)

    def add(self, rows: RowNumbers) -> dict[str, Any]:
        """Append a vector, and return its descriptor for the log."""
        data = _MAGIC + rows.serialize()
        descriptor = {
            "storageType": "u",
            "pathOrInlineDv": base64.b85encode(self._id.bytes).translate(_TO_Z85).decode(),
            "offset": len(self._content),
            "sizeInBytes": len(data),
            "cardinality": len(rows),
        }
        self._content += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        return descriptor
