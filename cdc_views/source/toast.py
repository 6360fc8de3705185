"""Which columns can hold a value that Postgres stores out of line (TOAST).

Such a value is missing in the WAL record of an update that does not change it, unless the table has REPLICA IDENTITY
FULL. Of a row that is too wide, Postgres moves out values that are larger than a pointer to them, rounded up to the
server's alignment (`toast_tuple_find_biggest_attribute` in toast_helper.c), so a value never moves if all values of
its type and type modifier are smaller than that. Sizes are those in a row: a header of one byte, then the value.
tests/stack/test_toast.py has the largest values of each type here, in rows from which Postgres moves what it can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

POINTER_BYTES: Final = 18  # TOAST_POINTER_SIZE
_HEADER_BYTES: Final = 1

# Types of a varying length in storage that nevertheless have a largest value (with the header).
_LARGEST: Final = {
    "inet": 19, "cidr": 19,  # family, bits, and 16 bytes of IPv6
    "int4range": 14, "daterange": 14,  # the range type's oid, two bounds and flags
    "int8range": 22, "tsrange": 22, "tstzrange": 22,
}  # fmt: skip


@dataclass(frozen=True)
class ServerFormat:
    """How the server stores values: bytes of the longest character of its encoding, and its alignment (MAXALIGN)."""

    character_bytes: int
    alignment: int

    def may_move(self, type_name: str, typmod: int) -> bool:
        """Whether a value of a type with storage of a varying length may be stored out of line."""
        largest = self._largest(type_name, typmod)
        return largest is None or largest > -(-POINTER_BYTES // self.alignment) * self.alignment

    def _largest(self, type_name: str, typmod: int) -> int | None:
        """The bytes of the largest value in a row; None if there is no limit."""
        if type_name in ("varchar", "bpchar") and typmod >= 4:
            return _HEADER_BYTES + (typmod - 4) * self.character_bytes
        if type_name == "bit" and typmod > 0:
            return _HEADER_BYTES + 4 + -(-typmod // 8)
        if type_name == "numeric" and typmod >= 4:
            return _largest_numeric(*numeric_size(typmod))
        return _LARGEST.get(type_name)


def numeric_size(typmod: int) -> tuple[int, int]:
    """Precision and scale of a numeric's type modifier; the scale is a signed number of 11 bits."""
    return ((typmod - 4) >> 16) & 0xFFFF, (((typmod - 4) & 0x7FF) ^ 0x400) - 0x400


def _largest_numeric(precision: int, scale: int) -> int:
    """Two bytes for every four digits, counted from the point; its own header is shorter for usual scales."""
    before, after = (precision - scale, scale) if 0 <= scale <= precision else (precision, 1)
    groups = -(-before // 4) + -(-after // 4)
    is_short = 0 <= scale <= 63 and precision <= 200  # NUMERIC_CAN_BE_SHORT
    return _HEADER_BYTES + (2 if is_short else 4) + 2 * groups
