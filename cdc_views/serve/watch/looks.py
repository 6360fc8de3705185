"""One look at each service: Postgres for the slot, Connect for the connector's task, Kafka for the ends of the topics.

Each look takes a few milliseconds of its service, and fails after LIMIT_S seconds without an answer.
"""

from __future__ import annotations

from typing import Final

from cdc_views.config import Settings, SourceSettings
from cdc_views.log.debezium.connect import ConnectClient, TaskState
from cdc_views.log.kafka.record import offsets_by_partition
from cdc_views.log.topic_lag import TopicLag
from cdc_views.source.connection import Connection, connect
from cdc_views.source.slot_backlog import SlotBacklog, read_backlog
from cdc_views.store.control import ControlRecord

LIMIT_S: Final = 2


class _SlotLook:
    """Reads the slot over a connection that it keeps."""

    def __init__(self, source: SourceSettings) -> None:
        self._source = source
        self._connection: Connection | None = None

    def __call__(self) -> SlotBacklog | None:
        try:
            if self._connection is None:
                self._connection = connect(self._source.dsn.get_secret_value(), limit_s=LIMIT_S)
                self._connection.execute(f"SET statement_timeout = '{LIMIT_S}s'")
            return read_backlog(self._connection, self._source.slot)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class Looks:
    """The looks at the services of one capture. `close` is called when nobody looks any more."""

    def __init__(self, settings: Settings) -> None:
        self._slot = _SlotLook(settings.source)
        self._connect = ConnectClient(settings.log.connect_url, timeout_s=LIMIT_S)
        self._connector = settings.log.connector
        self._lag = TopicLag(settings.log, LIMIT_S)

    def slot(self) -> SlotBacklog | None:
        """What the server has for the slot; None if there is no slot. Raises SourceUnreachable."""
        return self._slot()

    def task(self) -> TaskState:
        """The state of the connector's task. Raises NotRunning, ConnectorFailed."""
        return self._connect.task_state(self._connector)

    def topics(self, published: ControlRecord | None) -> dict[str, int]:
        """How many offsets of each topic are not in the published epoch. Raises NotRunning, TopicChanged."""
        return {} if published is None else self._lag.behind(offsets_by_partition(published.offsets))

    @property
    def ended(self) -> int | None:
        """The sum of the ends of all topics, as the last look at them has found it; None if it failed."""
        return self._lag.ended

    def close(self) -> None:
        """Close the connection to Postgres."""
        self._slot.close()
