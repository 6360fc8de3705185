"""Settings: typed and validated, from `cdc-views.yaml`. Flags override the environment, which overrides the file.

A value may be a reference, `${env:NAME}` or `${file:PATH}`. The value that it refers to is read when the settings are
loaded, and is never printed. The environment variable of a setting is `CDC_VIEWS_` and its path in capitals, joined by
two underscores: `CDC_VIEWS_SOURCE__DSN`.

With `stack: native`, addresses of Postgres, Kafka and Connect that the file omits come from the stack that
`cdc-views up` started.

pydantic-settings is not used: it would replace `_from_environment` only, and add sources of its own for references,
for lists with commas, for the file with our errors, and for the addresses of the native stack.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from cdc_views.base.column_options import ColumnOptions, DecimalColumn
from cdc_views.base.names import ColumnName, TableName
from cdc_views.errors import BadConfig, NotRunning
from cdc_views.host.locations import state_folder
from cdc_views.http_settings import HttpSettings

FILE_NAME: Final = "cdc-views.yaml"
ENVIRONMENT_PREFIX: Final = "CDC_VIEWS_"
STACK_FILE: Final = "stack.json"

_LISTS: Final = ("source.tables", "source.text_columns", "source.exclude_columns", "http.tokens")
_SETTINGS_HINT: Final = "docs/settings.md lists every setting"
# Commas separate the parts, except in double quotes and in parentheses.
_PARTS = re.compile(r"""(?:"(?:[^"]|"")*"|\([^()]*\)|[^,])+""")
_REFERENCE = re.compile(r"^\$\{(env|file):([^}]+)\}$")
_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/|://")


def _table_name(value: object) -> object:
    return TableName.parse(value) if isinstance(value, str) else value


def _column_name(value: object) -> object:
    return ColumnName.parse(value) if isinstance(value, str) else value


def _decimal_columns(value: object) -> object:
    """Parse a mapping from column to type, or a text that lists its entries."""
    if isinstance(value, str):
        entries = [entry.rpartition(":") for entry in _split(value)]
        if len({name for name, _, _ in entries}) != len(entries):
            raise ValueError("a column is named twice")
        value = {name.strip(): type_name for name, _, type_name in entries}
    if not isinstance(value, Mapping):
        return value
    return tuple(DecimalColumn.parse(str(name), str(type_name)) for name, type_name in value.items())


def _split(text: str) -> list[str]:
    """Split at commas that are not in quotes or parentheses, and strip the blanks around the parts."""
    return [found for part in _PARTS.findall(text) if (found := part.strip())]


def _folder(value: object) -> object:
    # As a path, "s3://bucket/lake" would be the local folder "s3:/bucket/lake". A URI may contain a password.
    if isinstance(value, str | Path) and _URI.search(str(value)):
        raise ValueError("wanted a local folder, found a URI: object stores are not supported")
    return value


ConfiguredTable = Annotated[TableName, BeforeValidator(_table_name)]
ConfiguredColumn = Annotated[ColumnName, BeforeValidator(_column_name)]
ConfiguredDecimals = Annotated[tuple[DecimalColumn, ...], BeforeValidator(_decimal_columns)]
Folder = Annotated[Path, BeforeValidator(_folder)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class SourceSettings(_Section):
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


class LogSettings(_Section):
    """Kafka and Connect."""

    bootstrap_servers: str = Field(description="Kafka brokers, as host:port, comma-separated")
    connect_url: str = Field(description="REST address of Kafka Connect")
    connector: str = Field("cdc-views", pattern=r"^[A-Za-z0-9._-]{1,200}$", description="name of the connector")
    topic_prefix: str = Field("app", pattern=r"^[A-Za-z0-9._-]{1,100}$", description="first part of topic names")
    partitions: int = Field(
        4,
        ge=1,
        le=1000,
        description="partitions of a new topic; in a bulk read, this many cores read the topic of a table",
    )
    min_compaction_lag_ms: int = Field(
        7 * 24 * 3600 * 1000, ge=0, description="how long the log keeps every version of a row"
    )
    poll_interval_ms: int = Field(
        20, ge=1, le=10_000, description="poll interval of Debezium: the lower bound of latency"
    )
    transaction_timeout_ms: int = Field(15_000, ge=1000, description="transaction timeout of the connector's producer")
    marker_timeout_s: float = Field(120, gt=0, description="how long to wait for a marker to arrive through the log")
    snapshot_timeout_s: float = Field(24 * 3600, gt=0, description="how long the initial snapshot may take")
    bulk_offsets: int = Field(
        100_000,
        ge=1,
        description="from this many offsets of a table on, Spark reads its topic, one task per partition; fewer are "
        "held in the driver's memory",
    )
    driver_mb: int | None = Field(
        None,
        ge=1,
        description="memory in MiB for the events of all tables that the driver holds at once (an event takes about "
        "2 KiB plus four times its size); above it, Spark reads the largest tables; by default a quarter of the "
        "machine's memory",
    )
    offsets_topic: str | None = Field(
        None,
        description="offset.storage.topic of the Connect worker; only for a worker that cannot have exactly-once "
        "support: each epoch then waits until the worker has stored its offsets (offset.flush.interval.ms)",
    )
    on_bad_event: Literal["stop", "park"] = Field(
        "stop",
        description="stop: the engine stops before an event that cannot be applied; park: that event and later ones of "
        "its key are set aside, and everything else goes on (docs/bad_events.md)",
    )

    @property
    def exactly_once(self) -> bool:
        """Whether Connect delivers nothing twice, and everything before a marker is readable when the marker is."""
        return self.offsets_topic is None


SHORT_LIVED: Final = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"}
"""`engine.spark_conf` of a driver that runs for minutes: the JVM's second compiler pays off after about ten.

Without that compiler, the JVM reserves 48 MB for compiled code instead of 240. The classes that Spark generates for its
queries fill 48 MB in half an hour, and then the JVM fails with a `VirtualMachineError`.
"""
INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""The same for a driver with few rows: generating and compiling Java for a query takes longer than interpreting it."""
# Settings of Spark SQL that say how a query is run, not what it means. Others, such as the time zone, ANSI mode and the
# legacy ones, are the same in every project: a stored view would be wrong after a change of them.
_TUNING: Final = (
    *("adaptive.", "autoBroadcastJoinThreshold", "broadcastTimeout", "codegen.", "debug.maxToStringFields"),
    *("execution.arrow.maxRecordsPerBatch", "files.maxPartition", "files.minPartition", "files.openCostInBytes"),
    *("inMemoryColumnarStorage.", "join.", "maxPlanStringLength", "objectHashAggregate.", "shuffle.", "ui."),
)


class EngineSettings(_Section):
    """The PySpark driver."""

    spark_master: str = Field("local[2]", description="Spark master URL")
    driver_memory: str = Field("2g", description="heap of the driver's JVM")
    spark_conf: dict[str, str] = Field(
        default_factory=dict,
        description="additional Spark settings; of those of Spark SQL only such as cannot change a result",
    )
    parallel_commits: int = Field(
        2,
        ge=1,
        le=64,
        description="how many tables Spark commits or reads in bulk, or views it computes, at the same time",
    )
    idle_epoch_interval_s: float = Field(
        5, gt=0, description="how often the position is published while nothing changes"
    )
    lock_timeout_s: float = Field(30, ge=0, description="how long to wait for the lock of an engine that is ending")
    retry_s: float = Field(
        300,
        ge=0,
        description="how long after its last epoch a running engine waits for services that are down, before it ends",
    )

    @property
    def is_local(self) -> bool:
        """Whether the tasks of Spark run on this machine."""
        return self.spark_master.startswith("local")

    @field_validator("spark_conf")
    @classmethod
    def _require_tuning(cls, value: dict[str, str]) -> dict[str, str]:
        prefix = "spark.sql."
        for name in value:
            if name.startswith(prefix) and not name.removeprefix(prefix).startswith(_TUNING):
                raise ValueError(
                    f'"{name}" may change the result of a view; wanted settings that only say how a query is run'
                )
        return value


class StoreSettings(_Section):
    """The Delta tables: the execution path of reads and commits, by size, and what the driver may hold."""

    fsync: bool = Field(
        True, description="false: commits are not flushed to disk, and a power loss may damage any table"
    )
    direct_rows: int = Field(
        200_000, ge=0, description="changes of more rows are committed by Spark, smaller ones by the driver"
    )
    index_memory_mb: int = Field(
        1024, ge=0, description="memory for indexes from key to row, which take 12 to 24 bytes per row of a table"
    )
    index_disk_mb: int = Field(
        16384, ge=0, description="disk below the warehouse for indexes that this memory has no room for"
    )
    scanned_rows: int = Field(
        2_000_000,
        ge=0,
        description="a table without an index is committed by Spark if it has more rows; of a smaller one the driver "
        "reads all keys",
    )
    row_disk_mb: int = Field(
        4096, ge=0, description="disk below the warehouse for rows that lookups have decoded, until the engine ends"
    )
    lookup_keys: int = Field(100_000, ge=0, description="lookups of more keys are done by Spark")
    driver_rows: int = Field(500_000, ge=0, description="the driver reads tables of at most this many rows by itself")
    driver_mb: int = Field(64, ge=0, description="... and of at most this size in MiB")
    task_rows: int = Field(20_000, ge=0, description="Spark reads tables of at most this many rows in one task")


class UpkeepSettings(_Section):
    """The work between epochs that keeps the cost of an epoch flat."""

    share: float = Field(0.2, ge=0, le=1, description="share of the engine's time that upkeep may take; 0: no upkeep")
    merged_files: int = Field(3, ge=2, le=1000, description="this many files of similar size are merged into one")
    target_mb: float = Field(16, gt=0, description="files of at least this size in MB are not merged")
    deleted_part: float = Field(
        0.1, gt=0, le=1, description="share of a larger file's rows that may be deleted before the file is rewritten"
    )
    checkpoint_versions: int = Field(20, ge=1, description="versions of a table between two checkpoints")
    sweep_versions: int = Field(100, ge=1, description="versions of a table between two vacuums")
    keep_epochs: int = Field(
        100, ge=1, description="this many of the latest epochs with changes can be read, whatever their age"
    )
    keep_hours: float = Field(1, ge=0, description="how long an epoch can be read after the next one was published")
    keep_tables_hours: float = Field(
        24, ge=0, description="how long replaced tables are kept for a rollback, and what a rebuild has left"
    )
    keep_records: int = Field(
        1000, ge=1, description="at least this many of the latest records stay in the control log"
    )


_SECTIONS: Final[Mapping[str, type[BaseModel]]] = {
    "source": SourceSettings,
    "log": LogSettings,
    "engine": EngineSettings,
    "store": StoreSettings,
    "upkeep": UpkeepSettings,
    "http": HttpSettings,
}


class Settings(_Section):
    """All settings of a project."""

    stack: Literal["native", "none"] = Field(
        "none", description="native: addresses come from `cdc-views up`; none: you give them"
    )
    warehouse: Folder = Field(Path("warehouse"), description="local folder of the Delta tables")
    views: Folder = Field(Path("views"), description="local folder of the view files")
    source: SourceSettings
    log: LogSettings
    engine: EngineSettings = EngineSettings()
    store: StoreSettings = StoreSettings()
    upkeep: UpkeepSettings = UpkeepSettings()
    http: HttpSettings = HttpSettings()


def load_settings(project: Path, overrides: Mapping[str, str] | None = None) -> Settings:
    """Read the project's settings.

    `overrides` are flags, by dotted path (`source.slot`). Relative paths are relative to `project`.
    Raises BadConfig, and NotRunning if the addresses of a native stack are needed and the stack is down.
    """
    values, file = _read(project, overrides or {})
    if values.get("stack") == "native":
        _fill_addresses(values)
    try:
        settings = Settings.model_validate(_resolve(values, file))
    except ValidationError as error:
        raise BadConfig(_describe(error, file), hint=_SETTINGS_HINT) from None
    return settings.model_copy(
        update={"warehouse": (project / settings.warehouse).absolute(), "views": (project / settings.views).absolute()}
    )


def load_warehouse(project: Path, overrides: Mapping[str, str] | None = None) -> Path:
    """Read only the folder of the Delta tables, which needs no stack and no secrets. Raises BadConfig."""
    default = Settings.model_fields["warehouse"].default
    folder: Path = _load_one("warehouse", Folder, default, project, overrides or {})
    return (project / folder).absolute()


def load_http(project: Path, overrides: Mapping[str, str] | None = None) -> HttpSettings:
    """Read only the section `http`, which needs no stack and no other secrets. Raises BadConfig."""
    settings: HttpSettings = _load_one("http", HttpSettings, {}, project, overrides or {})
    return settings


def _load_one(name: str, kind: Any, default: Any, project: Path, overrides: Mapping[str, str]) -> Any:
    """Read one setting or section, and check the names of all."""
    values, file = _read(project, overrides)
    if unknown := _unknown_names(values):
        raise BadConfig(f'settings in "{file}" are not valid: {", ".join(unknown)} unknown', hint=_SETTINGS_HINT)
    given = _resolve({name: values.get(name, default)}, file)
    try:
        return TypeAdapter(dict[str, kind]).validate_python(given)[name]
    except ValidationError as error:
        raise BadConfig(_describe(error, file), hint=_SETTINGS_HINT) from None


def _read(project: Path, overrides: Mapping[str, str]) -> tuple[dict[str, Any], Path]:
    file = project / FILE_NAME
    if not file.is_file():
        raise BadConfig(
            f'no "{FILE_NAME}" in "{project}"', hint='run "cdc-views init" there, or give the folder with -C'
        )
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadConfig(f'"{file}" is not YAML: {_one_line(error)}') from None
    except OSError as error:
        raise BadConfig(f'"{file}" cannot be read: {error.strerror}') from None
    if not isinstance(values, dict):
        raise BadConfig(f'"{file}" holds a {type(values).__name__}, wanted a mapping')
    for section in _SECTIONS.keys() & values.keys():
        # A section with only comments is read as null.
        values[section] = {} if values[section] is None else values[section]
        if not isinstance(values[section], dict):
            raise BadConfig(f'"{section}" in "{file}" is not a mapping', hint=_SETTINGS_HINT)
    for path, value in {**_from_environment(), **overrides}.items():
        _set(values, path, value)
    return values, file


def _unknown_names(values: Mapping[str, Any]) -> list[str]:
    below = [f"{section}.{name}" for section, model in _SECTIONS.items()
             for name in values.get(section, {}) if name not in model.model_fields]  # fmt: skip
    return [*(name for name in values if name not in Settings.model_fields), *below]


def _from_environment() -> dict[str, str]:
    # Only names with a section are settings: CDC_VIEWS_STATE and CDC_VIEWS_CACHE are not.
    return {
        name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", "."): value
        for name, value in os.environ.items()
        if name.startswith(ENVIRONMENT_PREFIX) and "__" in name
    }


def _set(values: dict[str, Any], path: str, value: str) -> None:
    *sections, last = path.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise BadConfig(f'"{path}" is not a setting: "{section}" has no settings below it', hint=_SETTINGS_HINT)
    values[last] = _split(value) if path in _LISTS else value


def _fill_addresses(values: dict[str, Any]) -> None:
    source, log = values.setdefault("source", {}), values.setdefault("log", {})
    missing = [section for section, key in ((source, "dsn"), (log, "bootstrap_servers"), (log, "connect_url"))
               if key not in section]  # fmt: skip
    if not missing:
        return
    addresses = native_addresses()
    source.setdefault("dsn", addresses["dsn"])
    log.setdefault("bootstrap_servers", addresses["bootstrap_servers"])
    log.setdefault("connect_url", addresses["connect_url"])


def native_addresses() -> dict[str, str]:
    """Return the addresses of the native stack, by the names of the settings. Raises NotRunning."""
    file = state_folder() / STACK_FILE
    try:
        found: dict[str, str] = json.loads(file.read_text())
    except FileNotFoundError:
        raise NotRunning(
            f'the native stack is not running: there is no "{file}"',
            hint='start it with "cdc-views up"; one that runs was started with another CDC_VIEWS_STATE',
        ) from None
    return found


def _resolve(value: Any, file: Path) -> Any:
    if isinstance(value, dict):
        return {key: _resolve(inner, file) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolve(inner, file) for inner in value]
    if isinstance(value, str) and (reference := _REFERENCE.match(value)):
        return _secret(reference[1], reference[2], file)
    return value


def _secret(kind: str, name: str, file: Path) -> str:
    if kind == "env":
        if name not in os.environ:
            raise BadConfig(f'"{file}" refers to the environment variable "{name}", which is not set')
        return os.environ[name]
    try:
        return (file.parent / name).read_text().strip()
    except OSError as error:
        raise BadConfig(f'"{file}" refers to the file "{name}", which cannot be read: {error.strerror}') from None


def _describe(error: ValidationError, file: Path) -> str:
    # include_input=False: an input may be a secret.
    problems = [
        f"{'.'.join(str(part) for part in problem['loc'])}: {_one_line(problem['msg']).removeprefix('Value error, ')}"
        for problem in error.errors(include_input=False, include_url=False, include_context=False)
    ]
    return f'settings in "{file}" are not valid: ' + "; ".join(problems)


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
