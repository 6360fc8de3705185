"""Session settings that change how Postgres prints a value, or whether we can read and write at all.

A server, a database and a role can each change any of them at any time. So all sessions, ours and the connector's, pin
them as connection options. These take precedence over all other places, even over changes while the session is
connected, and only they reach the session that streams the WAL. docs/printing.md explains each setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FOR_SQL_OF_USERS: Final[Mapping[str, str]] = {
    # How values are printed.
    "DateStyle": "ISO,YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",  # the connector's driver uses that of its JVM instead
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
    # Whether statements run to their end. With row_security off, a statement fails instead of missing rows.
    "row_security": "off",
    "default_transaction_read_only": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}
"""What a session that runs SQL of the user pins: all but the search_path, since that SQL may have names without one."""

PINNED: Final[Mapping[str, str]] = {**FOR_SQL_OF_USERS, "search_path": "pg_catalog"}
"""What all other sessions pin, ours and the connector's.

With this search_path, names in values (`regclass`) include their schema, and a function or operator that somebody else
has created in `public` is never called with our rights.
"""

_MOMENTS: Final = ("1900-01-01 00:00:00+00", "2026-01-15 12:00:00+00", "2026-07-15 12:00:00+00")

TIMES: Final = "{" + ",".join(f'["{moment}","{moment}"]' for moment in _MOMENTS) + "}"
"""A tstzmultirange as printed with TimeZone UTC. No other time zone has these three offsets."""

FRACTION: Final = 0.1 + 0.2
"""A double that is rounded if `extra_float_digits` is below 1."""


def options(pinned: Mapping[str, str]) -> str:
    """Return the settings as the `options` of a connection."""
    return " ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in pinned.items())
