"""A connector of its own for each test: slot, publication and topics under a unique name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Final
from urllib.parse import quote
from uuid import uuid4

import pytest
from pydantic import SecretStr

from cdc_views.base.captured import CapturedSet
from cdc_views.base.names import TableName
from cdc_views.capture.unchanged import with_placeholder
from cdc_views.config import LogSettings, Settings, SourceSettings
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.debezium.connect import ConnectClient
from cdc_views.log.debezium.connector import connector_config
from cdc_views.log.debezium.placeholder import settle_placeholder
from cdc_views.log.debezium.snapshot import wait_snapshot
from cdc_views.log.kafka.topics import (
    admin_client,
    delete_topics,
    ensure_topics,
    notification_topic,
    topic_facts,
    topic_names,
)
from cdc_views.log.log import Log
from cdc_views.source.catalog import SourceTable, excluded_columns, read_tables
from cdc_views.source.checks.fixes import fix_source
from cdc_views.source.checks.preflight import check_source
from cdc_views.source.connection import Connection, connect
from cdc_views.source.service.marker import Marker
from cdc_views.source.service.service_tables import record_start_of_capture
from cdc_views.source.slot import drop_slot
from cdc_views.source.slot_watch import SlotWatch
from cdc_views.stack.local import LocalStack
from tests.fix_postgres import Database

# An idle connector takes 0.13 cores with the default of 20 ms, and 0.04 with this.
POLL_INTERVAL_MS: Final = 100


def resume_connector(connect: ConnectClient, name: str) -> None:
    """Resume a stopped connector."""
    connect._ordered("PUT", f"connectors/{quote(name)}/resume")


class _NoMarker:
    writer = "nobody"

    def touch(self) -> int:
        raise AssertionError("this log only reads")

    def captured(self) -> CapturedSet:
        raise AssertionError("this log only reads")


class Capture:
    """The way from some tables of a database to a Log."""

    def __init__(self, settings: Settings, resources: ExitStack) -> None:
        self.settings = settings
        self.connect = ConnectClient(settings.log.connect_url)
        self._resources = resources

    def start(self, topic_settings: Mapping[str, str] | None = None) -> None:
        """Fix the source, make the topics, and run the connector until its snapshot is complete."""
        self.start_connector(topic_settings)
        wait_snapshot(self.settings.log, lambda progress: None)

    def start_connector(
        self, topic_settings: Mapping[str, str] | None = None, connector_settings: Mapping[str, str] | None = None
    ) -> None:
        """Do as `start`, without the wait for the snapshot."""
        fix_source(self.settings, check_source(self.settings))
        ensure_topics(self.settings.log, self.settings.source.tables, topic_settings)
        with closing(self._source()) as connection:
            record_start_of_capture(connection, self.settings.source.publication)
        self.connect.put_connector(self.settings.log.connector, self.config() | dict(connector_settings or {}))
        self.connect.wait_running(self.settings.log.connector)

    def config(self) -> dict[str, str]:
        """The connector's settings; the topics are there."""
        excluded = excluded_columns(self.tables().values())
        return connector_config(self.settings, settle_placeholder(self.settings.log, None), excluded=excluded)

    def tables(self) -> dict[TableName, SourceTable]:
        """The tables as the catalog describes them now."""
        with closing(self._source()) as connection:
            found = read_tables(connection, self.settings.source.tables, self.settings.source.columns)
        if not topic_facts(admin_client(self.settings.log), [notification_topic(self.settings.log.topic_prefix)]):
            return found
        placeholder = settle_placeholder(self.settings.log, None)
        return {table.name: table for table in with_placeholder(found.values(), placeholder)}

    def log(
        self,
        bulk: Collection[TableName] = (),
        *,
        published: Cut | None = None,
        zoned: Collection[TableName] = (),
        watches_slot: bool = True,
        **log: object,
    ) -> Log:
        """A Log with a marker of its own, which watches its slot like the engine's; closed at the end of the test.

        `log` are settings that it has by itself.
        """
        connection = self._resources.enter_context(closing(self._source()))
        slot = self.settings.source.slot
        marker = Marker(connection, self.settings.source, uuid4().hex)
        watch = None
        if watches_slot:
            watch = self._resources.enter_context(closing(SlotWatch(self.settings.source.dsn.get_secret_value(), slot)))
        made = Log(
            self.settings.log.model_copy(update=log), self.settings.source.tables, marker,
            publication=self.settings.source.publication, bulk=bulk, published=published, slot=watch,
            zoned=zoned,
        )  # fmt: skip
        return self._resources.enter_context(closing(made))

    def detached_log(self) -> Log:
        """A Log that reads but writes no marker; the caller closes it."""
        return Log(self.settings.log, self.settings.source.tables, _NoMarker())

    def table_of(self, topic: str) -> TableName:
        """The table of a topic."""
        return topic_names(self.settings.log.topic_prefix, self.settings.source.tables)[topic]

    def _source(self) -> Connection:
        return connect(self.settings.source.dsn.get_secret_value())


CaptureOf = Callable[..., Capture]


@contextmanager
def captures(stack: LocalStack, database: Database) -> Iterator[CaptureOf]:
    """Make the Capture of the named tables; connector, slot and topics are gone afterwards."""
    made: list[Capture] = []
    with ExitStack() as resources:

        def make(
            *tables: str | TableName,
            dsn: str | None = None,
            toast: str = "full",
            text_columns: Sequence[str] = (),
            decimal_columns: Mapping[str, str] | None = None,
            exclude_columns: Sequence[str] = (),
            **log: object,
        ) -> Capture:
            source = {"dsn": SecretStr(dsn or database.dsn), "tables": tables, "toast": toast,
                      "text_columns": text_columns, "decimal_columns": decimal_columns or {},
                      "exclude_columns": exclude_columns,
                      "slot": database.name, "publication": database.name}  # fmt: skip
            settings = {"bootstrap_servers": stack.addresses.bootstrap_servers,
                        "connect_url": stack.addresses.connect_url, "connector": database.name,
                        "topic_prefix": database.name, "transaction_timeout_ms": 5000,
                        "poll_interval_ms": POLL_INTERVAL_MS, **log}  # fmt: skip
            made.append(
                Capture(
                    Settings(source=SourceSettings.model_validate(source), log=LogSettings.model_validate(settings)),
                    resources,
                )
            )
            return made[-1]

        yield make
    for each in made[:1]:
        each.connect.delete_connector(each.settings.log.connector)
        with closing(database.connect()) as connection:
            drop_slot(connection, each.settings.source.slot)
        delete_topics(each.settings.log, {table for one in made for table in one.settings.source.tables})


@pytest.fixture
def capture(stack: LocalStack, database: Database) -> Iterator[CaptureOf]:
    """Make the Capture of the named tables of the test's database."""
    with captures(stack, database) as make:
        yield make
