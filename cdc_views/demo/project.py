"""The project of the demo: a folder as `cdc-views init` creates it, with its own database."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import yaml
from psycopg import sql
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from cdc_views.config import FILE_NAME, SHORT_LIVED, Settings, load_settings
from cdc_views.demo.data import SIZES
from cdc_views.engine.capture.start import forget_capture
from cdc_views.source.connection import connect

VIEWS: Final = Path(__file__).with_name("views")


@dataclass(frozen=True)
class DemoProject:
    """`name` is the name of this run's database, slot, publication, connector and topics."""

    folder: Path
    name: str
    dsn: str

    def settings(self) -> Settings:
        """The settings, as every command reads them."""
        return load_settings(self.folder)


def make_project(folder: Path, admin_dsn: str) -> DemoProject:
    """Create an empty database and the files of the project. Earlier content of the folder is removed."""
    name = f"demo_{uuid4().hex[:8]}"
    with connect(admin_dsn) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    dsn = make_conninfo(admin_dsn, dbname=name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with open(folder / "dsn", "x", opener=lambda path, flags: os.open(path, flags, 0o600)) as secret:
        secret.write(dsn)
    shutil.copytree(VIEWS, folder / "views")
    settings = {
        "stack": "native",
        "source": {
            "dsn": "${file:dsn}",
            "tables": [f"public.{table}" for table in SIZES],
            "slot": name,
            "publication": name,
        },
        "log": {"connector": name, "topic_prefix": name},
        "engine": {"spark_conf": SHORT_LIVED},
    }
    (folder / FILE_NAME).write_text(yaml.safe_dump(settings, sort_keys=False))
    return DemoProject(folder, name, dsn)


def forget_project(folder: Path, admin_dsn: str) -> None:
    """Remove what an earlier project has in the services: connector, slot, topics and database.

    Its own dsn may be that of a server that is gone.
    """
    if not (folder / FILE_NAME).exists():
        return
    settings = load_settings(folder)
    name = settings.source.slot
    with connect(admin_dsn) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
            return
        source = settings.source.model_copy(update={"dsn": SecretStr(make_conninfo(admin_dsn, dbname=name))})
        forget_capture(settings.model_copy(update={"source": source}))
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
