"""Which columns can hold a value that Postgres stores out of line (TOAST).

Such a value is missing from the WAL record of an update that does not change it, unless the table has REPLICA IDENTITY
FULL. If a row is too wide, Postgres moves out the values that are larger than a TOAST pointer, rounded up to the
server's alignment (`toast_tuple_find_biggest_attribute` in toast_helper.c). So a value never moves if all values of its
type and type modifier are smaller than that. Sizes are sizes in a row: a header of one byte, then the value.
tests/stack/test_toast.py stores the largest values of each type in rows that are too wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

POINTER_BYTES: Final = 18  # TOAST_POINTER_SIZE
_HEADER_BYTES: Final = 1

# Types with a varying length in storage that still have a largest value (size with the header).
_LARGEST: Final = {
    "inet": 19, "cidr": 19,  # family, bits, and 16 bytes of IPv6
    "int4range": 14, "daterange": 14,  # the range type's oid, two bounds and flags
    "int8range": 22, "tsrange": 22, "tstzrange": 22,
}  # fmt: skip


@dataclass(frozen=True)
class ServerFormat:
    """How the server stores values: the bytes of its encoding's longest character, and its alignment (MAXALIGN)."""

    character_bytes: int
    alignment: int

    def may_move(self, type_name: str, typmod: int) -> bool:
        """Whether a value of this type, which has a varying length in storage, can be stored out of line."""
        largest = self._largest(type_name, typmod)
        return largest is None or largest > -(-POINTER_BYTES // self.alignment) * self.alignment

    def _largest(self, type_name: str, typmod: int) -> int | None:
        """Return the size in bytes of the largest value in a row; None if there is no limit."""
        if type_name in ("varchar", "bpchar") and typmod >= 4:
            return _HEADER_BYTES + (typmod - 4) * self.character_bytes
        if type_name == "bit" and typmod > 0:
            return _HEADER_BYTES + 4 + -(-typmod // 8)
        if type_name == "numeric" and typmod >= 4:
            return _largest_numeric(*numeric_size(typmod))
        return _LARGEST.get(type_name)


def numeric_size(typmod: int) -> tuple[int, int]:
    """Return precision and scale from a numeric's type modifier. The scale is a signed number of 11 bits."""
    return ((typmod - 4) >> 16) & 0xFFFF, (((typmod - 4) & 0x7FF) ^ 0x400) - 0x400


def _largest_numeric(precision: int, scale: int) -> int:
    """Return the largest size: two bytes per four digits, counted from the point, and numeric's own header."""
    before, after = (precision - scale, scale) if 0 <= scale <= precision else (precision, 1)
    groups = -(-before // 4) + -(-after // 4)
    is_short = 0 <= scale <= 63 and precision <= 200  # NUMERIC_CAN_BE_SHORT
    return _HEADER_BYTES + (2 if is_short else 4) + 2 * groups
