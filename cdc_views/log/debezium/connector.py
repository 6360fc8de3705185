"""The connector's settings: connectors/postgres.json with its placeholders filled in."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from cdc_views.base.names import ColumnName, TableName
from cdc_views.base.rendering import PINNED, options
from cdc_views.base.service_schema import SERVICE_TABLES
from cdc_views.config import Settings
from cdc_views.errors import BadConfig, SourceUnreachable

CONNECTOR_CLASS: Final = "io.debezium.connector.postgresql.PostgresConnector"
LEAST_VERSION: Final = (3, 7, 0)

_PLACEHOLDER = re.compile(r"\$\{([a-z_.]+)\}")
_NOT_LITERAL = re.compile(r"([^A-Za-z0-9_])")


def template_file() -> Traversable:
    """Return the template: inside the package in a wheel, beside it in a checkout. Raises BadConfig."""
    package = files("cdc_views")
    for folder in (package, package / ".."):
        file = folder / "connectors" / "postgres.json"
        if file.is_file():
            return file
    raise BadConfig(
        f'the installation of cdc_views in "{package}" lacks connectors/postgres.json', hint="install the package again"
    )


def connector_config(
    settings: Settings, placeholder: str, template: Traversable | None = None, excluded: Iterable[ColumnName] = ()
) -> dict[str, str]:
    """Fill in the template; `placeholder` is the log's (placeholder.py), events omit the `excluded` columns.

    The result holds the password. It goes to Connect, which stores it in its config topic.
    """
    values = {
        **_values(settings),
        "unavailable_value_placeholder": placeholder,
        "excluded_columns": ",".join(map(_column_pattern, excluded)),
    }
    template = template or template_file()

    def fill(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise BadConfig(f'"{template.name}" has the unknown placeholder "{match[1]}"')
        return values[match[1]]

    entries: dict[str, str] = json.loads(template.read_text())
    return {name: _PLACEHOLDER.sub(fill, entry) for name, entry in entries.items()}


def version_of(text: str) -> tuple[int, ...] | None:
    """Return a version of Debezium to compare: (3, 7, 0) for "3.7.0.Final"; a pre-release counts as the one before."""
    match = re.match(r"^(\d+)\.(\d+)\.(\d+)(?:\.([A-Za-z]+)\d*)?", text)
    if not match:
        return None
    major, minor, patch = (int(part) for part in match.group(1, 2, 3))
    final = match[4] in (None, "Final")
    return (major, minor, patch) if final else (major, minor, patch - 1)


def _values(settings: Settings) -> dict[str, str]:
    source, log = settings.source, settings.log
    return {
        **_dsn_values(source.dsn.get_secret_value()),
        "topic_prefix": log.topic_prefix,
        "tables": ",".join(_pattern(table) for table in (*source.tables, *SERVICE_TABLES)),
        "slot": source.slot,
        "publication": source.publication,
        "session_options": options(PINNED),
        "exactly_once_support": "required" if log.exactly_once else "requested",
        "poll_interval_ms": str(log.poll_interval_ms),
        "transaction_timeout_ms": str(log.transaction_timeout_ms),
        "partitions": str(log.partitions),
        "min_compaction_lag_ms": str(log.min_compaction_lag_ms),
    }


def _dsn_values(dsn: str) -> dict[str, str]:
    try:
        given: Mapping[str, object] = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # The text of libpq's error can repeat any part of the string, including the password.
        raise SourceUnreachable("the source's dsn is not a libpq connection string") from None
    host = str(given.get("host") or given.get("hostaddr") or os.environ.get("PGHOST") or "localhost")
    if "," in host or host.startswith("/"):
        raise BadConfig(
            f'the source\'s dsn has host "{host}", wanted one host name or address',
            hint="Debezium connects over TCP to one server",
        )
    user = str(given.get("user") or os.environ.get("PGUSER") or "postgres")
    return {
        "dsn.host": host,
        "dsn.port": str(given.get("port") or os.environ.get("PGPORT") or 5432),
        "dsn.user": user,
        "dsn.password": str(given.get("password") or os.environ.get("PGPASSWORD") or ""),
        "dsn.dbname": str(given.get("dbname") or os.environ.get("PGDATABASE") or user),
        "dsn.sslmode": str(given.get("sslmode") or os.environ.get("PGSSLMODE") or "prefer"),
    }


def _pattern(table: TableName) -> str:
    # Matched case-insensitively unless stated otherwise.
    return rf"(?-i){_quoted(table.schema)}\.{_quoted(table.table)}"


def _column_pattern(column: ColumnName) -> str:
    return rf"{_pattern(column.table)}\.{_quoted(column.column)}"


def _quoted(name: str) -> str:
    # By its number: the list is split at commas, and blanks around a pattern are stripped.
    return _NOT_LITERAL.sub(lambda found: rf"\x{{{ord(found[1]):x}}}", name)
