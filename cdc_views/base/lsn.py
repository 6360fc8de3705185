"""Log sequence numbers of Postgres: byte positions in its WAL."""

from __future__ import annotations

from cdc_views.errors import BadLsn


class Lsn(int):
    """A WAL byte position, printed as Postgres prints it (`16/B374D848`)."""

    @classmethod
    def parse(cls, text: str) -> Lsn:
        """Parse `X/Y`, two hexadecimal numbers. Raises BadLsn."""
        high, slash, low = text.partition("/")
        try:
            if not slash:
                raise ValueError(text)
            return cls((int(high, 16) << 32) | int(low, 16))
        except ValueError:
            raise BadLsn(
                f'position "{text}" is not an LSN, wanted the form X/Y',
                hint='an LSN is what "SELECT pg_current_wal_insert_lsn()" prints, as in 0/16B3748',
            ) from None

    def __str__(self) -> str:
        return f"{self >> 32:X}/{self & 0xFFFFFFFF:X}"

    def __repr__(self) -> str:
        return f"Lsn({str(self)!r})"
