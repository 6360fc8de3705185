"""Whether a mirror can be rebuilt from the log of its table alone.

A compacted topic keeps the last event of every key. So reading it from its first offset gives the table, if each of
these events holds the whole row and nothing was ever cut off at the beginning of the topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cdc_views.config import Settings
from cdc_views.findings import Finding
from cdc_views.log.kafka.record import Offsets
from cdc_views.log.kafka.topics import Topic, admin_client, begin_offsets, describe_topics, topic_name
from cdc_views.log.kafka.topics import partitions_of as partitions
from cdc_views.source.catalog import SourceTable

FROM_SNAPSHOT: Final = "rebuild it with --from snapshot"


def why_not_self_contained(table: SourceTable, topic: Topic, begin: Offsets) -> list[str]:
    """The reasons why the log alone is not enough to rebuild the mirror; empty if it is. `begin` are first offsets."""
    reasons = []
    toastable = [column.name for column in table.columns if column.toastable]
    if toastable and table.replica_identity != "full":
        reasons.append(
            f'column "{toastable[0]}" can be stored out of line, and with replica identity '
            f'"{table.replica_identity}" an update does not log such a value unless it changes it'
        )
    if topic.settings["cleanup.policy"] != "compact":
        reasons.append(
            f'cleanup.policy of topic "{topic.name}" is "{topic.settings["cleanup.policy"]}", wanted "compact"'
        )
    cut_off = next((each for each, offset in begin.items() if each.topic == topic.name and offset > 0), None)
    if cut_off is not None:
        reasons.append(f'partition "{cut_off}" begins at offset {begin[cut_off]}, wanted 0')
    return reasons


def check_self_contained(settings: Settings, tables: list[SourceTable]) -> Iterator[Finding]:
    """For each table whose topic exists, a finding that says whether it can be rebuilt from the log."""
    admin = admin_client(settings.log)
    names = {topic_name(settings.log.topic_prefix, table.name): table for table in tables}
    topics = describe_topics(admin, names)
    begin = begin_offsets(admin, [each for topic in topics.values() for each in partitions(topic)])
    for name, topic in topics.items():
        reasons = why_not_self_contained(names[name], topic, begin)
        subject = f'table "{names[name].name}"'
        if reasons:
            yield Finding("info", subject, f"log is not self-contained: {'; '.join(reasons)}", FROM_SNAPSHOT)
        else:
            yield Finding("info", subject, "log is self-contained", '"cdc-views rebuild --from earliest" can be used')
