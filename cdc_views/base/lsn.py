"""Log sequence numbers of Postgres: byte positions in its WAL."""

from __future__ import annotations

import re
from typing import Final

from cdc_views.errors import BadLsn

_FORM: Final = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


class Lsn(int):
    """A WAL byte position, printed as Postgres prints it (`16/B374D848`)."""

    @classmethod
    def parse(cls, text: str) -> Lsn:
        """Parse `X/Y`, two hexadecimal numbers of at most 32 bits. Raises BadLsn."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise BadLsn(
                f'position "{text}" is not an LSN, wanted the form X/Y',
                hint='an LSN is what "SELECT pg_current_wal_insert_lsn()" prints, as in 0/16B3748',
            )
        return cls((int(found[1], 16) << 32) | int(found[2], 16))

    def __str__(self) -> str:
        return f"{self >> 32:X}/{self & 0xFFFFFFFF:X}"

    def __repr__(self) -> str:
        return f"Lsn({str(self)!r})"
