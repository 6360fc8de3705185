"""Postgres: unpacked from its archive, run as a child process, with a password and only on the loopback.

Postgres refuses to run as root. If we are root, it runs as the user `postgres` if that exists, else as `nobody`. That
user must be able to enter every folder above the binaries and the data.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psycopg

from cdc_views.base.rendering import PINNED, options
from cdc_views.errors import BadConfig
from cdc_views.stack.fetch import postgres_home
from cdc_views.stack.folders import make_private, make_shared, write_private
from cdc_views.stack.services.service import HOST, Service, Steps

DATABASE: Final = "app"
SUPERUSER: Final = "postgres"
# The builtin locale compares by code point, but knows upper and lower case beyond ASCII.
INITDB_OPTIONS: Final = (
    "-U", SUPERUSER, "-A", "scram-sha-256", "-E", "UTF8",
    "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8",
)  # fmt: skip
_FAST_SHUTDOWN = signal.SIGINT

SETTINGS: Final = {
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
}
# With these, a crash of the machine loses data; a crash of Postgres does not.
_NOT_DURABLE: Final = {"fsync": "off", "full_page_writes": "off"}


class Postgres(Service):
    """One server with one database, `app`."""

    name = "postgres"
    stop_signal = _FAST_SHUTDOWN

    def __init__(self, state: Path, port: int, *, durable: bool) -> None:
        super().__init__(state, port)
        self.durable = durable
        self.data = self.folder / "data"
        self._password_file = self.folder / "password"

    @property
    def dsn(self) -> str:
        """The connection string, with the password."""
        return self._dsn(DATABASE)

    def _dsn(self, database: str) -> str:
        return f"postgresql://{SUPERUSER}:{self._password_file.read_text()}@{HOST}:{self.port}/{database}"

    def is_healthy(self) -> bool:
        """Whether it accepts connections. The database `app` is created if it is missing."""
        if not self.data.exists():
            return False
        try:
            with psycopg.connect(
                self._dsn("postgres"), connect_timeout=2, autocommit=True, options=options(PINNED)
            ) as connection:
                there = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
                if not there:
                    connection.execute(f"CREATE DATABASE {DATABASE}")
        except psycopg.OperationalError:
            return False
        return True

    def _prepare(self) -> Steps:
        if self.data.exists():
            return
        new = self.folder / "data.new"
        shutil.rmtree(new, ignore_errors=True)
        make_shared(self.folder)
        make_private(new)
        user = _postgres_user()
        for folder in (new, postgres_home()):
            _check_reachable(folder, user)
        if user:
            os.chown(new, user.pw_uid, user.pw_gid)
        write_private(self._password_file, secrets.token_urlsafe(24))
        yield from self._initdb(new, user)
        new.rename(self.data)

    def _initdb(self, data: Path, user: pwd.struct_passwd | None) -> Steps:
        # A copy, because the other user cannot read ours.
        password = self.folder / "password.initdb"
        write_private(password, self._password_file.read_text())
        if user:
            os.chown(password, user.pw_uid, user.pw_gid)
        try:
            yield from self._run(
                "initdb",
                [str(postgres_home() / "bin/initdb"), "-D", str(data), f"--pwfile={password}", *INITDB_OPTIONS,
                 *([] if self.durable else ["--no-sync"])],
            )  # fmt: skip
        finally:
            password.unlink(missing_ok=True)

    def _command(self) -> Sequence[str]:
        settings = SETTINGS | {"listen_addresses": HOST} | ({} if self.durable else _NOT_DURABLE)
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(postgres_home() / "bin/postgres"), "-D", str(self.data), "-p", str(self.port), *options]

    def _user(self) -> dict[str, Any]:
        user = _postgres_user()
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}


def _postgres_user() -> pwd.struct_passwd | None:
    """Return the user that runs Postgres, or None for our own."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise BadConfig(
        "postgres refuses to run as root, and there is neither a user postgres nor nobody",
        hint="run as another user",
    )


def _check_reachable(folder: Path, user: pwd.struct_passwd | None) -> None:
    if user is None:
        return
    for parent in folder.absolute().parents:
        found = parent.stat()
        if not _may_enter(found, user):
            raise BadConfig(
                f'user "{user.pw_name}", who runs Postgres because root must not, cannot enter "{parent}"',
                hint="set CDC_VIEWS_STATE and CDC_VIEWS_CACHE to folders that every user can enter, "
                "or do not run as root",
            )


def _may_enter(folder: os.stat_result, user: pwd.struct_passwd) -> bool:
    if folder.st_uid == user.pw_uid:
        return bool(folder.st_mode & stat.S_IXUSR)
    if folder.st_gid == user.pw_gid:
        return bool(folder.st_mode & stat.S_IXGRP)
    return bool(folder.st_mode & stat.S_IXOTH)
