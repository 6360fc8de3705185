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

from cdc_views.stack import jvm
from cdc_views.stack.folders import make_private
from cdc_views.stack.service import HOST, Service, Steps

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
    # There is no other broker to take over, and one that only stood still had better not be fenced (_fence).
    "broker.session.timeout.ms": 20_000,
    "broker.heartbeat.interval.ms": 1000,
    # After a kill of Connect its open transaction holds everything up until it is aborted.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "num.network.threads": 2,
    "num.io.threads": 3,
}


_FENCED_AFTER_MS: Final = 50
_FENCED_LIMIT_S: Final = 8.0
_FLUSHED_S: Final = 0.5  # twenty times what a record waits for others before it is written (raft's linger)
_ACTIVATED: Final = "Performing controller activation"
_FENCED: Final = "Fencing broker 1 "
_REPLAYED: Final = "Replayed BrokerRegistrationChangeRecord"


class Relay(NamedTuple):
    """A relay between the broker and its clients: they connect to `port`, and it to the broker at `target`."""

    port: int
    target: int


FEATURE: Final = "transaction.version=1"
"""What a new broker is formatted with: version 2 makes a producer hang for ever, as Connect's did in a snapshot.

Its sender asks whether batches are left, and then, without a lock in between, for the next request. If a transaction is
begun, filled and ended meanwhile, its end is sent before its batches, which belong to none from then on (kafka-clients
4.3.1). With version 1 a request that adds the partitions comes first, and the question is asked anew.
"""


class Kafka(Service):
    """One broker. The controller's port is part of what is stored: it must not change afterwards.

    Where there is a `relay`, clients are sent there, and what the broker has to tell itself goes around it.
    `short_lived` as for `jvm.java`.
    """

    name = "kafka"

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
        """What clients are given."""
        return f"{HOST}:{self._relay.port if self._relay else self.port}"

    @property
    def is_formatted(self) -> bool:
        """Whether there is data, which holds the controller's port."""
        return self._formatted.exists()

    def is_healthy(self) -> bool:
        """Whether it answers the first question of every client, for the versions it speaks."""
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
        """Have a controller alone put down that the broker, which was killed, is gone.

        Else the next one begins as the leader of its partitions, completes the transactions that it finds, and is
        fenced meanwhile; then it skips the marks that end them (KAFKA-20734), and whoever reads what is committed, as
        Connect its offsets, waits for ever. It would also have to wait for the dead one's session to end.
        """
        properties = self.folder / "fence.properties"
        jvm.write_properties(properties, fencing(f"{HOST}:{self.controller_port}") | {"log.dirs": str(self.data)})
        command = jvm.java("kafka.Kafka", str(properties), logging=self._logging, short_lived=True)
        seen_s: dict[str, float] = {}

        def is_fenced(log: str) -> bool:
            now = time.monotonic()
            for what, is_there in (("active", _ACTIVATED in log), ("replayed", _REPLAYED in log.partition(_FENCED)[2])):
                if is_there:
                    seen_s.setdefault(what, now)
            # Of a broker that was fenced before nothing is told.
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
        return jvm.java("kafka.Kafka", str(self._properties), logging=self._logging, short_lived=self._short_lived)

    def _environment(self) -> Mapping[str, str]:
        return jvm.environment()


def fencing(controller: str) -> dict[str, str | int]:
    """The settings of a controller alone, at this address, that takes a silent broker for gone at once."""
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
    # The first letter is fixed because Kafka takes a leading "-" for an option.
    return "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:21]
