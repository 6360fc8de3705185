"""The settings of the Postgres database."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator

from cdc_views.base.column_options import ColumnOptions, DecimalColumn
from cdc_views.base.names import ColumnName, TableName
from cdc_views.config.lists import split
from cdc_views.config.section import Section


def _table_name(value: object) -> object:
    return TableName.parse(value) if isinstance(value, str) else value


def _column_name(value: object) -> object:
    return ColumnName.parse(value) if isinstance(value, str) else value


def _decimal_columns(value: object) -> object:
    """Parse a mapping from column to type, or a text that lists its entries."""
    if isinstance(value, str):
        entries = [entry.rpartition(":") for entry in split(value)]
        if len({name for name, _, _ in entries}) != len(entries):
            raise ValueError("a column is named twice")
        value = {name.strip(): type_name for name, _, type_name in entries}
    if not isinstance(value, Mapping):
        return value
    return tuple(DecimalColumn.parse(str(name), str(type_name)) for name, type_name in value.items())


ConfiguredTable = Annotated[TableName, BeforeValidator(_table_name)]
ConfiguredColumn = Annotated[ColumnName, BeforeValidator(_column_name)]
ConfiguredDecimals = Annotated[tuple[DecimalColumn, ...], BeforeValidator(_decimal_columns)]


class SourceSettings(Section):
    """The Postgres database."""

    dsn: SecretStr = Field(description="libpq connection string or URL of the database")
    tables: tuple[ConfiguredTable, ...] = Field(min_length=1, description="tables to mirror, as schema.table")
    text_columns: tuple[ConfiguredColumn, ...] = Field(
        (),
        description="numbers and times to mirror as text, as Postgres prints them, given as schema.table.column: for "
        "columns with NaN, infinities or years outside of 1 to 9999",
    )
    decimal_columns: ConfiguredDecimals = Field(
        (),
        description="numeric columns to mirror as a decimal, as a mapping from schema.table.column to "
        "decimal(precision, scale); a value that does not fit stops the epoch",
    )
    exclude_columns: tuple[ConfiguredColumn, ...] = Field(
        (),
        description="columns that are not published, logged or mirrored, as schema.table.column, for personal data "
        "and unsupported types; such a table needs REPLICA IDENTITY DEFAULT (docs/types.md)",
    )
    slot: str = Field("cdc_views", pattern=r"^[a-z0-9_]{1,63}$", description="the connector's replication slot")
    publication: str = Field("cdc_views", pattern=r"^[a-z0-9_]{1,63}$", description="the connector's publication")
    toast: Literal["full", "lookup"] = Field(
        "full",
        description="full: tables with columns that can be TOASTed need REPLICA IDENTITY FULL; lookup: unchanged "
        "values are read from the mirror, and such a table cannot be rebuilt from the log",
    )

    @field_validator("dsn")
    @classmethod
    def _require_no_service(cls, value: SecretStr) -> SecretStr:
        import psycopg  # here, since readers need no database, and its import takes a tenth of a second
        from psycopg.conninfo import conninfo_to_dict

        with suppress(psycopg.ProgrammingError):  # not a connection string, which `connect` refuses
            if "service" in conninfo_to_dict(value.get_secret_value()):
                raise ValueError("it names a service of libpq, which the connector cannot read; wanted host and dbname")
        return value

    @field_validator("tables")
    @classmethod
    def _require_distinct(cls, value: tuple[TableName, ...]) -> tuple[TableName, ...]:
        for table in value:
            if value.count(table) > 1:
                raise ValueError(f'table "{table}" is listed twice')
        return value

    @property
    def columns(self) -> ColumnOptions:
        """The settings of single columns."""
        return ColumnOptions(frozenset(self.text_columns), self.decimal_columns, frozenset(self.exclude_columns))

    @model_validator(mode="after")
    def _require_one_form(self) -> Self:
        seen: dict[ColumnName, str] = {}
        for setting, column in self.columns.named():
            if column in seen:
                raise ValueError(f'column "{column}" is in {setting} and in {seen[column]}')
            seen[column] = setting
        return self
