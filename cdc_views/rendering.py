"""Settings of a session that change how Postgres prints a value, or whether we can read and write at all.

A server, a database and a role can each set any of them, at any time. So all sessions, ours and the connector's, pin
them as options of the connection: what a client sets there beats what is set elsewhere, also what changes while it is
connected, and it is the only way that reaches the session that streams the WAL. docs/printing.md explains each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SHARED: Final[Mapping[str, str]] = {
    # How values are printed.
    "DateStyle": "ISO,YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",  # the connector's driver sets that of its Java, whatever the options say
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "quote_all_identifiers": "off",
    "client_encoding": "UTF8",
    # How statements are read.
    "standard_conforming_strings": "on",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "xmloption": "content",
    "xmlbinary": "base64",
    # Whether they run, and to their end. Row security is to fail a statement, not to hide rows from it.
    "row_security": "off",
    "default_transaction_read_only": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}

OURS: Final = _SHARED
"""What our own sessions pin."""

CONNECTORS: Final[Mapping[str, str]] = {**_SHARED, "search_path": "pg_catalog"}
"""What the connector's sessions pin. Names that values print (`regclass`) have their schema then."""

_MOMENTS: Final = ("1900-01-01 00:00:00+00", "2026-01-15 12:00:00+00", "2026-07-15 12:00:00+00")

TIMES: Final = "{" + ",".join(f'["{moment}","{moment}"]' for moment in _MOMENTS) + "}"
"""A tstzmultirange, as a session prints it whose TimeZone is UTC; no other zone has these three offsets."""

FRACTION: Final = 0.1 + 0.2
"""A double that `extra_float_digits` below 1 rounds."""


def options(pinned: Mapping[str, str]) -> str:
    """The settings as the `options` of a connection."""
    return " ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in pinned.items())
