"""What both baselines share: the topics and tables of a project, and Delta tables with the same columns.

The baselines are the two jobs that a team would write itself. They mirror the same topics into tables of the same
names. Neither keeps transactions whole or gives one position for all tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdc_views.capture.types import arrow_schema
from cdc_views.config import Settings, load_settings
from cdc_views.log.kafka.record import Offsets, TopicPartition
from cdc_views.log.kafka.topics import (
    admin_client,
    begin_offsets,
    describe_topics,
    end_offsets,
    partitions_of,
    topic_name,
)
from cdc_views.source.catalog import SourceTable, read_tables
from cdc_views.source.connection import connect
from cdc_views.store.delta_log import TableSpec


@dataclass(frozen=True)
class Baseline:
    """The tables of a project by topic, and the folder of the baseline's own Delta tables."""

    settings: Settings
    tables: Mapping[str, SourceTable]
    folder: Path

    @classmethod
    def of(cls, project: Path, folder: Path) -> Baseline:
        """Read the settings of the project and the catalog of the source."""
        settings = load_settings(project)
        with connect(settings.source.dsn.get_secret_value()) as source:
            found = read_tables(source, settings.source.tables, settings.source.columns)
        prefix = settings.log.topic_prefix
        return cls(settings, {topic_name(prefix, name): table for name, table in found.items()}, folder)

    def spec(self, table: SourceTable) -> TableSpec:
        """The Delta table of a source table, as cdc_views would create it."""
        return TableSpec(str(table.name), str(table.name), arrow_schema(table), table.key)

    def begin(self) -> Offsets:
        """The first offsets of the topics."""
        return begin_offsets(admin_client(self.settings.log), self._partitions())

    def end(self) -> Offsets:
        """The offsets after the last records."""
        return end_offsets(admin_client(self.settings.log), self._partitions())

    def _partitions(self) -> list[TopicPartition]:
        topics = describe_topics(admin_client(self.settings.log), list(self.tables))
        return [partition for topic in topics.values() for partition in partitions_of(topic)]


def result(**figures: Any) -> str:
    """The last line of a baseline that has reached the end of the topics."""
    return json.dumps(figures)
