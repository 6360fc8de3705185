"""The settings of the Delta tables and of their upkeep."""

from __future__ import annotations

from pydantic import Field

from cdc_views.config.section import TEN_YEARS_S, Section


class StoreSettings(Section):
    """The Delta tables: the execution path of reads and commits, by size, and what the driver may hold."""

    fsync: bool = Field(
        True, description="false: commits are not flushed to disk, and a power loss may damage any table"
    )
    direct_rows: int = Field(
        500_000, ge=0, description="changes of more rows are committed by Spark, smaller ones by the driver"
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
    query_memory_mb: int = Field(
        256,
        ge=0,
        description="memory for the stored queries of each view of kind saved_searches; where they take more, each "
        "epoch reads all of them",
    )
    lookup_keys: int = Field(
        100_000, ge=0, description="more keys are not looked up: Spark commits, or computes the view in full"
    )
    driver_rows: int = Field(500_000, ge=0, description="the driver reads tables of at most this many rows by itself")
    driver_mb: int = Field(64, ge=0, description="... and of at most this size in MiB")
    task_rows: int = Field(20_000, ge=0, description="Spark reads tables of at most this many rows in one task")


class UpkeepSettings(Section):
    """The work between epochs that keeps the cost of an epoch flat."""

    share: float = Field(0.2, ge=0, le=1, description="share of the engine's time that upkeep may take; 0: no upkeep")
    merged_files: int = Field(3, ge=2, le=1000, description="this many files of similar size are merged into one")
    target_mb: float = Field(16, gt=0, le=1_000_000, description="files of at least this size in MB are not merged")
    deleted_part: float = Field(
        0.1, gt=0, le=1, description="share of a larger file's rows that may be deleted before the file is rewritten"
    )
    checkpoint_versions: int = Field(20, ge=1, description="versions of a table between two checkpoints")
    sweep_versions: int = Field(100, ge=1, description="versions of a table between two vacuums")
    keep_epochs: int = Field(
        100, ge=1, description="this many of the latest epochs with changes can be read, whatever their age"
    )
    keep_hours: float = Field(
        1, ge=0, le=TEN_YEARS_S / 3600, description="how long an epoch can be read after the next one was published"
    )
    keep_tables_hours: float = Field(
        24,
        ge=0,
        le=TEN_YEARS_S / 3600,
        description="how long replaced tables are kept for a rollback, and what a rebuild has left",
    )
    keep_records: int = Field(
        1000, ge=1, description="at least this many of the latest records stay in the control log"
    )
