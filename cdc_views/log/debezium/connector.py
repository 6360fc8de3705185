"""The connector's settings: connectors/postgres.json with its placeholders filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from cdc_views.base.dsn import completed
from cdc_views.base.names import ColumnName, TableName
from cdc_views.base.rendering import PINNED, options
from cdc_views.base.service_schema import SERVICE_TABLES
from cdc_views.config import Settings
from cdc_views.errors import BadConfig

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
    found = completed(dsn)
    host = found["host"]
    if "," in host or host.startswith("/"):
        raise BadConfig(
            f'the source\'s dsn has host "{host}", wanted one host name or address',
            hint="Debezium connects over TCP to one server",
        )
    names = ("host", "port", "user", "password", "dbname", "sslmode")
    return {f"dsn.{name}": found.get(name, "") for name in names}


def _pattern(table: TableName) -> str:
    # Matched case-insensitively unless stated otherwise.
    return rf"(?-i){_quoted(table.schema)}\.{_quoted(table.table)}"


def _column_pattern(column: ColumnName) -> str:
    return rf"{_pattern(column.table)}\.{_quoted(column.column)}"


def _quoted(name: str) -> str:
    # By its number: the list is split at commas, and blanks around a pattern are stripped.
    return _NOT_LITERAL.sub(lambda found: rf"\x{{{ord(found[1]):x}}}", name)
