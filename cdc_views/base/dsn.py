"""The connection string of the source, completed as libpq completes it from its environment.

The engine connects through libpq and the connector does not. Both must reach the same database as the same role.
"""

from __future__ import annotations

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from cdc_views.errors import BadConfig, SourceUnreachable


def completed(dsn: str) -> dict[str, str]:
    """Return all parameters that have a value, with `host`, `port`, `user` and `dbname`.

    Raises SourceUnreachable if the text is no connection string, and BadConfig if PGSERVICE is set.
    """
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value not in (None, "")}
    except psycopg.ProgrammingError:
        # libpq's error text can repeat any part of the string, including the password.
        raise SourceUnreachable(
            "the source's dsn is not a libpq connection string",
            hint='wanted "host=... dbname=... user=..." or "postgresql://user@host/database"',
        ) from None
    defaults = {option.keyword.decode(): option.val.decode() for option in pq.Conninfo.get_defaults() if option.val}
    if "service" in defaults:
        raise BadConfig(
            f'the environment has PGSERVICE="{defaults["service"]}", which the connector cannot read',
            hint="unset PGSERVICE, and give host, dbname and user in source.dsn",
        )
    found = {**defaults, **given}
    address = given.get("host") or given.get("hostaddr") or defaults.get("host") or defaults.get("hostaddr")
    found["host"] = address or "localhost"
    found.setdefault("user", "")  # libpq has no default for a process whose user has no name
    found.setdefault("dbname", found["user"])
    return found
