"""The settings of Kafka and Connect."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from cdc_views.config.section import TEN_YEARS_S, Section


class LogSettings(Section):
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
    marker_timeout_s: float = Field(
        120, gt=0, le=TEN_YEARS_S, description="how long to wait for a marker to arrive through the log"
    )
    snapshot_timeout_s: float = Field(
        24 * 3600, gt=0, le=TEN_YEARS_S, description="how long the initial snapshot may take"
    )
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

    @field_validator("connect_url")
    @classmethod
    def _require_address(cls, value: str) -> str:
        if "@" in value:  # messages name the address
            raise ValueError("it has a user or password, wanted scheme, host and port: logins are not supported")
        address = urlsplit(value)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError("it is no address, wanted http://host:port or https://host:port")
        if address.port == 0:  # raises ValueError for what is no port
            raise ValueError("its port is 0, wanted 1 to 65535")
        return value

    @property
    def exactly_once(self) -> bool:
        """Whether Connect delivers nothing twice, and everything before a marker is readable when the marker is."""
        return self.offsets_topic is None
