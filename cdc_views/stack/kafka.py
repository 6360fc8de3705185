"""Kafka: one node that is broker and controller (KRaft)."""

from __future__ import annotations

import base64
import shutil
import socket
import struct
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from cdc_views.stack import jvm
from cdc_views.stack.folders import make_private
from cdc_views.stack.service import HOST, Service, Steps

SETTINGS: Final[dict[str, str | int]] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
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
    # After a kill the next broker may register only when the dead one's session has ended (default 9 s).
    "broker.session.timeout.ms": 4000,
    "broker.heartbeat.interval.ms": 1000,
    # After a kill of Connect its open transaction holds everything up until it is aborted.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "num.network.threads": 2,
    "num.io.threads": 3,
}


class Kafka(Service):
    """One broker. The controller's port is part of what is stored: it must not change afterwards."""

    name = "kafka"

    def __init__(self, state: Path, port: int, controller_port: int) -> None:
        super().__init__(state, port)
        self.controller_port = controller_port
        self.data = self.folder / "data"
        self._formatted = self.folder / "formatted"
        self._properties = self.folder / "server.properties"
        self._logging = self.folder / "log4j2.properties"

    @property
    def bootstrap_servers(self) -> str:
        """What clients are given."""
        return f"{HOST}:{self.port}"

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
        listeners = f"PLAINTEXT://{self.bootstrap_servers},CONTROLLER://{HOST}:{self.controller_port}"
        jvm.write_logging(self._logging)
        jvm.write_properties(
            self._properties,
            {
                **SETTINGS,
                "listeners": listeners,
                "advertised.listeners": listeners,
                "controller.quorum.bootstrap.servers": f"{HOST}:{self.controller_port}",
                "log.dirs": str(self.data),
            },
        )
        if not self._formatted.exists():
            shutil.rmtree(self.data, ignore_errors=True)
            what = ["format", "--standalone", "-t", _cluster_id(), "-c", str(self._properties)]
            tool = jvm.java("kafka.tools.StorageTool", *what, logging=self._logging)
            yield from self._run("format", tool, jvm.environment())
            self._formatted.touch()

    def _ports(self) -> Sequence[int]:
        return [self.port, self.controller_port]

    def _command(self) -> Sequence[str]:
        return jvm.java("kafka.Kafka", str(self._properties), logging=self._logging)

    def _environment(self) -> Mapping[str, str]:
        return jvm.environment()


_CORRELATION = 7
# Length, API 18 (ApiVersions), version 0, correlation id, no client id.
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, _CORRELATION, -1)


def _cluster_id() -> str:
    # The first letter is fixed because Kafka takes a leading "-" for an option.
    return "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:21]
