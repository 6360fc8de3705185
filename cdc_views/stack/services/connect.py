"""Kafka Connect: one distributed worker with exactly-once support, and Debezium as its only plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import requests

from cdc_views.stack.fetch import plugin_folder
from cdc_views.stack.folders import make_private
from cdc_views.stack.services import jvm
from cdc_views.stack.services.service import HOST, Service, Steps

_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
SETTINGS: Final[dict[str, str | int]] = {
    "group.id": "cdc-views",
    "config.storage.topic": "_connect_configs",
    "offset.storage.topic": "_connect_offsets",
    "status.storage.topic": "_connect_status",
    "config.storage.replication.factor": 1,
    "offset.storage.replication.factor": 1,
    "status.storage.replication.factor": 1,
    "offset.storage.partitions": 1,
    "status.storage.partitions": 1,
    "key.converter": _JSON,
    "value.converter": _JSON,
    "offset.flush.interval.ms": 1000,
    "plugin.discovery": "service_load",
    "topic.creation.enable": "true",
    "connector.client.config.override.policy": "All",
    # Without it, everything before a marker need not be in the log when the marker is.
    "exactly.once.source.support": "enabled",
    "task.shutdown.graceful.timeout.ms": 10_000,
    # After a kill, the next worker waits until the session of the dead one has expired.
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 1500,
    "scheduled.rebalance.max.delay.ms": 0,
}


class Connect(Service):
    """The worker for one broker. `settings` are further worker settings; `short_lived` is as in `jvm.java`."""

    name = "connect"
    main = "org.apache.kafka.connect.cli.ConnectDistributed"

    def __init__(
        self, state: Path, port: int, bootstrap_servers: str, settings: Mapping[str, str | int] | None = None, *,
        short_lived: bool,
    ) -> None:  # fmt: skip
        super().__init__(state, port)
        self._short_lived = short_lived
        self._settings = {**SETTINGS, **(settings or {})}
        self.bootstrap_servers = bootstrap_servers
        self._properties = self.folder / "worker.properties"
        self._logging = self.folder / "log4j2.properties"

    @property
    def url(self) -> str:
        """The address of the REST API."""
        return f"http://{HOST}:{self.port}"

    @property
    def exactly_once(self) -> bool:
        """Whether the worker delivers nothing twice."""
        return self._settings["exactly.once.source.support"] == "enabled"

    @property
    def offsets_topic(self) -> str:
        """The topic where the worker stores the offsets of its connectors."""
        return str(self._settings["offset.storage.topic"])

    def is_healthy(self) -> bool:
        """Whether the worker lists connectors, which it does only as a member of its group."""
        try:
            # Never use a proxy for the loopback, whatever the environment says.
            with requests.Session() as session:
                session.trust_env = False
                return session.get(f"{self.url}/connectors", timeout=2).ok
        except requests.RequestException:
            return False

    def _prepare(self) -> Steps:
        make_private(self.folder)
        jvm.write_logging(self._logging)
        jvm.write_properties(
            self._properties,
            {
                "bootstrap.servers": self.bootstrap_servers,
                "listeners": self.url,
                "plugin.path": str(plugin_folder()),
                **self._settings,
            },
        )
        yield

    def _command(self) -> Sequence[str]:
        return jvm.java(self.main, str(self._properties), logging=self._logging, short_lived=self._short_lived)

    def _environment(self) -> Mapping[str, str]:
        return jvm.environment()
