"""Connections to the source. No message contains a password."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cdc_views.base.dsn import completed
from cdc_views.base.rendering import PINNED, options
from cdc_views.errors import SourceUnreachable

Connection = psycopg.Connection[tuple[Any, ...]]

_CONNECT_TIMEOUT_S: Final = 10
# Notice after about 30 s that a server has vanished. The kernel's defaults take hours.
_SILENCE: Final = {
    "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4, "tcp_user_timeout": 30_000,
}  # fmt: skip


# First characters of the SQLSTATEs for a lost connection or a server that is shutting down.
_LOST: Final = ("08", "57P")


class _Cursor(psycopg.Cursor[tuple[Any, ...]]):
    """Raises SourceUnreachable whenever the connection is lost."""

    def execute(self, *arguments: Any, **options: Any) -> Self:
        with self._named():
            return super().execute(*arguments, **options)

    @contextmanager
    def copy(self, *arguments: Any, **options: Any) -> Iterator[psycopg.Copy]:
        with self._named(), super().copy(*arguments, **options) as copy:
            yield copy

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except psycopg.OperationalError as error:
            # Without a SQLSTATE, the client noticed the loss.
            if error.sqlstate is not None and not error.sqlstate.startswith(_LOST):
                raise
            raise SourceUnreachable(
                f"lost the connection to the source: {_reason(error, self.connection.info.password)}",
                hint="is its server running? see its log",
            ) from None


def connect(
    dsn: str, *, autocommit: bool = True, limit_s: int = _CONNECT_TIMEOUT_S, pinned: Mapping[str, str] = PINNED
) -> Connection:
    """Connect to the source with pinned session settings (cdc_views/base/rendering.py).

    It takes at most `limit_s`, unless the dsn has a connect_timeout.
    Raises SourceUnreachable, now and whenever the connection is lost later; and BadConfig.
    """
    password = completed(dsn).get("password")
    parameters = conninfo_to_dict(dsn)
    timeout_s = parameters.get("connect_timeout") or limit_s
    given = {**_SILENCE, **{name: parameters[name] for name in _SILENCE if name in parameters}}
    # If two options set the same parameter, the later one wins.
    settings = f"{parameters.get('options') or ''} {options(pinned)}".strip()
    conninfo = make_conninfo(dsn, connect_timeout=timeout_s, application_name="cdc_views", options=settings, **given)
    try:
        return psycopg.connect(conninfo, autocommit=autocommit, cursor_factory=_Cursor)
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:  # the latter for a bad connect_timeout
        raise SourceUnreachable(
            f"cannot connect to {describe_dsn(dsn)}: {_reason(error, password)}",
            hint="check host, port, database, user and password in source.dsn, and pg_hba.conf of the server",
        ) from None


def require_primary(connection: Connection) -> None:
    """Raise SourceUnreachable on a standby, which knows neither the primary's slots nor the end of its WAL."""
    row: Any = connection.execute("SELECT pg_catalog.pg_is_in_recovery()").fetchone()
    if row[0]:
        raise SourceUnreachable(
            f"{describe_dsn(connection.info.dsn)} is a standby, wanted a primary", hint="use the dsn of the primary"
        )


def describe_dsn(dsn: str) -> str:
    """Name a source for people: database, host, port and user, but no password."""
    found = completed(dsn)
    return _described(found["dbname"], found["host"], found["port"], found["user"])


def describe_server(connection: Connection) -> str:
    """Name, in the same form, the server that a connection has reached."""
    info = connection.info
    return _described(info.dbname, info.host, info.port, info.user)


def _described(database: object, host: object, port: object, user: object) -> str:
    return f'database "{database}" at {host}:{port} as "{user}"'


def _reason(error: psycopg.Error, password: object) -> str:
    lines = str(error).strip().splitlines()
    text = lines[-1].strip() if lines else type(error).__name__
    return text.replace(str(password), "***") if password else text
