"""Kafka: one node that is broker and controller (KRaft)."""

from __future__ import annotations

import base64
import shutil
import socket
import struct
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from cdc_views.stack.folders import make_private
from cdc_views.stack.services import jvm
from cdc_views.stack.services.service import HOST, Service, Steps

SETTINGS: Final[dict[str, str | int]] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,RELAYED:PLAINTEXT",
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
    "log.cleaner.backoff.ms": 200,
    # No other broker could take over, and a broker that was only suspended should not be fenced (_fence).
    "broker.session.timeout.ms": 20_000,
    "broker.heartbeat.interval.ms": 1000,
    # After a kill of Connect, its open transaction blocks all readers until it is aborted.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "num.network.threads": 2,
    "num.io.threads": 3,
}


_FENCED_AFTER_MS: Final = 50
_FENCED_LIMIT_S: Final = 8.0
_FLUSHED_S: Final = 0.5  # twenty times raft's linger, the time that a record waits for others before it is written
_ACTIVATED: Final = "Performing controller activation"
_FENCED: Final = "Fencing broker 1 "
_REPLAYED: Final = "Replayed BrokerRegistrationChangeRecord"


class Relay(NamedTuple):
    """A relay between the clients and the broker. Clients connect to `port`; the relay connects to `target`."""

    port: int
    target: int


FEATURE: Final = "transaction.version=1"
"""The feature with which a new broker is formatted. Version 2 can make a producer hang forever, as Connect's did.

The producer's sender checks whether batches are left and then takes the next request, without a lock in between. If a
transaction begins, is filled and ends meanwhile, its end is sent before its batches, which then belong to no
transaction (kafka-clients 4.3.1). With version 1, the request that adds the partitions comes first, and the check is
repeated.
"""


class Kafka(Service):
    """One broker. The controller's port is stored with the data, so it must not change afterwards.

    With a `relay`, clients are directed to it, and the broker's connections to itself bypass it. `short_lived` is as
    in `jvm.java`.
    """

    name = "kafka"
    main = "kafka.Kafka"

    def __init__(
        self, state: Path, port: int, controller_port: int, relay: Relay | None = None, *, short_lived: bool
    ) -> None:
        super().__init__(state, port)
        self._short_lived = short_lived
        self._relay = relay
        self.controller_port = controller_port
        self.data = self.folder / "data"
        self._formatted = self.folder / "formatted"
        self._properties = self.folder / "server.properties"
        self._logging = self.folder / "log4j2.properties"

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients."""
        return f"{HOST}:{self._relay.port if self._relay else self.port}"

    @property
    def is_formatted(self) -> bool:
        """Whether data exist, which hold the controller's port."""
        return self._formatted.exists()

    def is_healthy(self) -> bool:
        """Whether it answers the first request of every client, ApiVersions."""
        try:
            with socket.create_connection((HOST, self.port), timeout=2) as connection:
                connection.sendall(_API_VERSIONS)
                answer = connection.recv(10, socket.MSG_WAITALL)
        except OSError:
            return False
        return len(answer) == 10 and struct.unpack(">iih", answer)[1:] == (_CORRELATION, 0)

    def _prepare(self) -> Steps:
        make_private(self.folder)
        jvm.write_logging(self._logging)
        jvm.write_properties(self._properties, self._settings())
        if not self._formatted.exists():
            shutil.rmtree(self.data, ignore_errors=True)
            what = ["format", "--standalone", "-t", _cluster_id(), "-c", str(self._properties), "--feature", FEATURE]
            tool = jvm.java("kafka.tools.StorageTool", *what, logging=self._logging, short_lived=True)
            yield from self._run("format", tool, jvm.environment())
            self._formatted.touch()
        elif not (self.data / ".kafka_cleanshutdown").exists():
            yield from self._fence()

    def _fence(self) -> Steps:
        """Run a controller alone until it has recorded that the killed broker is gone.

        Otherwise the next broker starts as the leader of its partitions, completes the transactions that it finds, and
        is fenced meanwhile. It then skips the markers that end those transactions (KAFKA-20734), and every reader of
        committed records waits forever, as Connect does for its offsets. The next broker would also have to wait until
        the session of the dead one expires.
        """
        properties = self.folder / "fence.properties"
        jvm.write_properties(properties, fencing(f"{HOST}:{self.controller_port}") | {"log.dirs": str(self.data)})
        command = jvm.java(self.main, str(properties), logging=self._logging, short_lived=True)
        seen_s: dict[str, float] = {}

        def is_fenced(log: str) -> bool:
            now = time.monotonic()
            for what, is_there in (("active", _ACTIVATED in log), ("replayed", _REPLAYED in log.partition(_FENCED)[2])):
                if is_there:
                    seen_s.setdefault(what, now)
            # Nothing is logged about a broker that was fenced before, hence the second limit.
            return now - seen_s.get("replayed", now) > _FLUSHED_S or now - seen_s.get("active", now) > _FENCED_LIMIT_S

        yield from self._run("fence", command, jvm.environment(), is_fenced)

    def _settings(self) -> dict[str, str | int]:
        ports = {"PLAINTEXT": self.port, "CONTROLLER": self.controller_port}
        relay = self._relay
        return {
            **SETTINGS,
            "listeners": _addresses(ports | ({"RELAYED": relay.target} if relay else {})),
            "advertised.listeners": _addresses(ports | ({"RELAYED": relay.port} if relay else {})),
            "controller.quorum.bootstrap.servers": f"{HOST}:{self.controller_port}",
            "log.dirs": str(self.data),
        }

    def _ports(self) -> Sequence[int]:
        return [self.port, self.controller_port]

    def _command(self) -> Sequence[str]:
        return jvm.java(self.main, str(self._properties), logging=self._logging, short_lived=self._short_lived)

    def _environment(self) -> Mapping[str, str]:
        return jvm.environment()


def fencing(controller: str) -> dict[str, str | int]:
    """Return the settings of a controller alone, at this address, that fences a silent broker at once."""
    settings = {name: value for name, value in SETTINGS.items() if name != "inter.broker.listener.name"}
    return settings | {
        "process.roles": "controller",
        "listeners": f"CONTROLLER://{controller}",
        "advertised.listeners": f"CONTROLLER://{controller}",
        "controller.quorum.bootstrap.servers": controller,
        "broker.session.timeout.ms": _FENCED_AFTER_MS,
        "broker.heartbeat.interval.ms": _FENCED_AFTER_MS // 2,
    }


_CORRELATION = 7
# Length, API 18 (ApiVersions), version 0, correlation id, no client id.
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, _CORRELATION, -1)


def _addresses(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())


def _cluster_id() -> str:
    # The first letter is fixed, because Kafka treats a leading "-" as an option.
    return "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:21]
