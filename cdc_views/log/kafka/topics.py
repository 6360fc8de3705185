"""Topics of the log: their names, ids, partitions and settings, and the offsets between which they can be read.

The engine creates all topics before the connector starts, so that their ids are known even if a table has never had a
row.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakSet

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ListOffsetsResultInfo,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from cdc_views.base.names import TableName
from cdc_views.base.service_schema import SERVICE_TABLES
from cdc_views.config import LogSettings
from cdc_views.errors import RESET, BadConfig, CdcViewsError, LogError, NotRunning, TopicChanged
from cdc_views.host.waiting import wait_while
from cdc_views.log.kafka.record import Offsets, TopicPartition

LEAST_COMPACTION_LAG_MS: Final = 10 * 60 * 1000
DELETE_RETENTION_MS: Final = 7 * 24 * 3600 * 1000
MAX_MESSAGE_BYTES: Final = 10 * 1024 * 1024
REQUEST_TIMEOUT_S: Final = 15
_POLL_S: Final = 0.05
_NEWS_S: Final = 2.0  # time in which a broker that has just started learns about topics
_NONE_LATER: Final = -1  # Kafka's answer for a time after the last record
_KEEPING: Final = ("min.compaction.lag.ms", "delete.retention.ms")

_AWAY: Final = (
    KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE,
    KafkaError._RESOLVE, KafkaError._DESTROY_BROKER, KafkaError._WAIT_COORD, KafkaError.NETWORK_EXCEPTION,
    KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
)  # fmt: skip
# What a broker answers for a partition that it was just given, such as that of a new topic, or after its restart.
_UNSETTLED: Final = (
    KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.REQUEST_TIMED_OUT,
    KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.FENCED_LEADER_EPOCH, KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE, KafkaError.NOT_CONTROLLER, KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.UNKNOWN_TOPIC_ID,  # a new topic; one that was created again has another id
    KafkaError.OFFSET_NOT_AVAILABLE,  # a new leader that does not know yet how far the others are (KIP-207)
    KafkaError._NOENT,  # no leader at all, as right after a start
)  # fmt: skip
PASSING: Final = frozenset({*_AWAY, *_UNSETTLED})
"""Codes of errors that go away by themselves."""

_CONNECTED: Final = WeakSet[AdminClient]()

# Debezium's DefaultTopicNamingStrategy: every other character becomes an underscore.
_NOT_IN_TOPIC_NAMES = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True)
class Topic:
    """A topic as the brokers describe it; `settings` are those in force, defaults included."""

    name: str
    id: str
    partitions: int
    settings: Mapping[str, str]

    @property
    def min_compaction_lag_ms(self) -> int:
        """How long every version of a row stays."""
        return int(self.settings["min.compaction.lag.ms"])

    @property
    def delete_retention_ms(self) -> int:
        """How much longer a tombstone stays."""
        return int(self.settings["delete.retention.ms"])

    def facts(self) -> dict[str, Any]:
        """Return what must never change, as JSON."""
        return _facts(self.id, self.partitions)


def _facts(identity: str, partitions: int) -> dict[str, Any]:
    return {"id": identity, "partitions": partitions}


def topic_name(prefix: str, table: TableName) -> str:
    """Return the topic to which Debezium writes a table's changes."""
    # Java replaces a character beyond 16 bits as its two halves, one by one.
    return _NOT_IN_TOPIC_NAMES.sub(
        lambda found: "_" * (len(found[0].encode("utf-16-le")) // 2), f"{prefix}.{table.schema}.{table.table}"
    )


def notification_topic(prefix: str) -> str:
    """Return the topic in which Debezium reports the progress of the snapshot."""
    return f"{prefix}.notifications"


def connector_heartbeat_topic(prefix: str) -> str:
    """Return the topic that Debezium creates for its own heartbeats; nobody reads it."""
    return f"__debezium-heartbeat.{prefix}"


def topics_of(settings: LogSettings, tables: Iterable[TableName]) -> list[str]:
    """Return the existing topics of a connector: those of these tables, and its own. Raises NotRunning."""
    prefix = settings.topic_prefix
    wanted = [*topic_names(prefix, tables), notification_topic(prefix), connector_heartbeat_topic(prefix)]
    return sorted(topic_facts(admin_client(settings), wanted))


def topics_below(settings: LogSettings) -> list[str]:
    """Return all topics whose names begin with the prefix and a dot, whoever created them. Raises NotRunning."""
    try:
        found = admin_client(settings).list_topics(timeout=REQUEST_TIMEOUT_S).topics
    except KafkaException as error:
        raise unreachable(error) from None
    return sorted(name for name in found if name.startswith(f"{settings.topic_prefix}."))


def topic_names(prefix: str, tables: Iterable[TableName]) -> dict[str, TableName]:
    """Map topics to their tables, service tables included. Raises BadConfig if two tables would share a topic."""
    names: dict[str, TableName] = {}
    alike: dict[str, str] = {}
    for table in (*tables, *SERVICE_TABLES):
        name = topic_name(prefix, table)
        # Kafka refuses a topic whose name differs from another one's only by dots and underscores.
        other = alike.setdefault(name.replace(".", "_"), name)
        if other in names:
            raise BadConfig(
                f'tables "{names[other]}" and "{table}" cannot both have a topic: "{other}" and "{name}"',
                hint="Debezium replaces what a topic's name cannot hold by underscores, and Kafka takes dots and "
                "underscores for the same; rename one table",
            )
        names[name] = table
    return names


def admin_client(settings: LogSettings) -> AdminClient:
    """Return a client for the brokers; it connects when it is used."""
    return AdminClient({"bootstrap.servers": settings.bootstrap_servers, "log_level": 2})


def describe_topics(admin: AdminClient, names: Collection[str]) -> dict[str, Topic]:
    """Describe those of the named topics that exist. Raises NotRunning."""
    facts = topic_facts(admin, names)
    settings = _settings(admin, facts)
    return {name: Topic(name, found["id"], found["partitions"], settings[name]) for name, found in facts.items()}


def topic_facts(admin: AdminClient, names: Collection[str]) -> dict[str, Any]:
    """Return what must never change (`Topic.facts`) of those of the named topics that exist. Raises NotRunning."""
    found = {}
    futures = admin.describe_topics(TopicCollection(list(names)), request_timeout=REQUEST_TIMEOUT_S)
    for name, future in futures.items():
        try:
            topic = future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise unreachable(error) from None
        else:
            found[name] = _facts(str(topic.topic_id), len(topic.partitions))
    return found


def ensure_topics(
    settings: LogSettings, tables: Iterable[TableName], overrides: Mapping[str, str] | None = None
) -> dict[str, Topic]:
    """Create the topics that are missing; `overrides` are settings of the tables' new topics.

    Existing topics are not changed: `check_topic` reports what is wrong with them.
    """
    admin = admin_client(settings)
    wanted = topic_names(settings.topic_prefix, tables)
    compact = {
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": str(settings.min_compaction_lag_ms),
        "delete.retention.ms": str(DELETE_RETENTION_MS),
        "max.message.bytes": str(MAX_MESSAGE_BYTES),
        **(overrides or {}),
    }
    notifications = notification_topic(settings.topic_prefix)
    existing = describe_topics(admin, [*wanted, notifications])
    new = [
        NewTopic(name, num_partitions=1 if table in SERVICE_TABLES else settings.partitions, config=compact)
        for name, table in wanted.items()
        if name not in existing
    ]
    if notifications not in existing:
        # Kept forever: an engine that starts later must still see that the snapshot was completed.
        keep = {"cleanup.policy": "delete", "retention.ms": "-1"}
        new.append(NewTopic(notifications, num_partitions=1, config=keep))
    if new:
        _create(admin, new)
    return describe_topics(admin, [*wanted, notifications])


def delete_topics(settings: LogSettings, tables: Iterable[TableName]) -> None:
    """Delete the topics of these tables, of the service tables and of the notifications, and wait until
    they are gone.
    """
    names = [*topic_names(settings.topic_prefix, tables), notification_topic(settings.topic_prefix)]
    delete_named_topics(admin_client(settings), names)


def delete_named_topics(admin: AdminClient, names: list[str]) -> None:
    """Delete those of these topics that exist, and wait until they are gone. Raises NotRunning."""
    for future in admin.delete_topics(names, operation_timeout=REQUEST_TIMEOUT_S).values():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise unreachable(error) from None
    if left := wait_while(lambda: topic_facts(admin, names), REQUEST_TIMEOUT_S):
        raise NotRunning(f'topic "{min(left)}" is still there {REQUEST_TIMEOUT_S} s after it was deleted')


def check_topic(topic: Topic, least_lag_ms: int = LEAST_COMPACTION_LAG_MS) -> list[str]:
    """Return what prevents exact reading of a table's topic."""
    problems = []
    if topic.settings["cleanup.policy"] != "compact":
        problems.append(f'cleanup.policy is "{topic.settings["cleanup.policy"]}", wanted "compact"')
    if topic.min_compaction_lag_ms < least_lag_ms:
        problems.append(f"min.compaction.lag.ms is {topic.min_compaction_lag_ms}, wanted at least {least_lag_ms}")
    return problems


def require_same_topics(known: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Compare earlier facts with those of now. Raises TopicChanged."""
    for name, facts in known.items():
        if found.get(name) != facts:
            state = f"is {found[name]}" if name in found else "is gone"
            raise TopicChanged(
                f'topic "{name}" {state}, wanted {facts}',
                hint="it was deleted, created again or got more partitions: earlier offsets mean nothing in it; "
                f"{RESET}",
            )


def require_kept_as_long(known: Mapping[str, Topic], found: Mapping[str, Topic]) -> None:
    """Compare how long topics keep their records with how long they did. Raises TopicChanged."""
    for name, topic in found.items():
        for setting in _KEEPING:
            if (now := int(topic.settings[setting])) < (before := int(known[name].settings[setting])):
                raise TopicChanged(
                    f'topic "{name}": {setting} is {now}, wanted at least the former {before}',
                    hint="restore the setting and start the engine again; if the topic kept less while no engine ran, "
                    "the log may have lost deletes of that time: rebuild the table from a snapshot",
                )


def partitions_of(topic: Topic) -> list[TopicPartition]:
    """Return the partitions of a topic."""
    return [TopicPartition(topic.name, number) for number in range(topic.partitions)]


def end_offsets(
    admin: AdminClient,
    partitions: Iterable[TopicPartition],
    *,
    committed: bool = False,
    limit_s: float = REQUEST_TIMEOUT_S,
) -> dict[TopicPartition, int]:
    """Return the offset after the last record of each partition; `committed`: the last that no open
    transaction hides.
    """
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    return _plain(_offsets(admin, partitions, OffsetSpec.latest(), level, limit_s=limit_s))  # type: ignore[no-untyped-call]


def committed_ends(admin: AdminClient, partitions: Iterable[TopicPartition]) -> tuple[Offsets, Offsets]:
    """Return the offset after the last committed record of each partition, and the epochs of the answering leaders."""
    found = _offsets(admin, partitions, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)  # type: ignore[no-untyped-call]
    epochs = {each: end.leader_epoch for each, end in found.items()}
    return _plain(found), {each: epoch for each, epoch in epochs.items() if epoch is not None and epoch >= 0}


def begin_offsets(admin: AdminClient, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the first offset of each partition."""
    level = IsolationLevel.READ_UNCOMMITTED
    return _plain(_offsets(admin, partitions, OffsetSpec.earliest(), level))  # type: ignore[no-untyped-call]


def offsets_at(
    admin: AdminClient, partitions: Sequence[TopicPartition], timestamp_ms: int
) -> dict[TopicPartition, int]:
    """Return the offset of each partition's first record that is not older than this time, else its end offset."""
    ends = end_offsets(admin, partitions)
    spec = OffsetSpec.for_timestamp(timestamp_ms)
    found = _plain(_offsets(admin, partitions, spec, IsolationLevel.READ_UNCOMMITTED, least=_NONE_LATER))
    return {each: ends[each] if at == _NONE_LATER else at for each, at in found.items()}


def cluster_of(admin: AdminClient) -> str:
    """Return the id of the brokers' cluster. Raises NotRunning."""
    try:
        return str(admin.describe_cluster(request_timeout=REQUEST_TIMEOUT_S).result().cluster_id)
    except KafkaException as error:
        raise unreachable(error) from None


def unreachable(error: KafkaException) -> CdcViewsError:
    """Turn an error of the client into one of ours."""
    fact = error.args[0]
    return _away(fact.str()) if fact.code() in PASSING else LogError(f"Kafka refuses: {fact.str()}")


def _away(problem: str) -> NotRunning:
    return NotRunning(f"Kafka does not answer: {problem}", hint="check log.bootstrap_servers")


def require_partitions(admin: AdminClient, partitions: Iterable[TopicPartition]) -> None:
    """Find out whether a partition that a broker does not know is gone, or new to it.

    Raises TopicChanged, NotRunning.
    """
    wanted = list(partitions)
    facts = topic_facts(admin, {each.topic for each in wanted})
    for each in sorted(wanted):
        if each.topic not in facts or facts[each.topic]["partitions"] <= each.partition:
            state = f"has no partition {each.partition}" if each.topic in facts else "is gone"
            raise TopicChanged(
                f'topic "{each.topic}" {state}',
                hint=f"if it is a table's, {RESET}; one of notifications is created by the next start",
            )


def _settings(admin: AdminClient, names: Iterable[str]) -> dict[str, dict[str, str]]:
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    if not resources:
        return {}
    futures = admin.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S)
    try:
        return {
            resource.name: {name: entry.value for name, entry in future.result().items() if entry.value is not None}
            for resource, future in futures.items()
        }
    except KafkaException as error:
        raise unreachable(error) from None


def _create(admin: AdminClient, new: list[NewTopic]) -> None:
    for future in admin.create_topics(new, operation_timeout=REQUEST_TIMEOUT_S).values():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise unreachable(error) from None


def _offsets(
    admin: AdminClient,
    partitions: Iterable[TopicPartition],
    spec: OffsetSpec,
    level: IsolationLevel,
    least: int = 0,
    limit_s: float = REQUEST_TIMEOUT_S,
) -> dict[TopicPartition, ListOffsetsResultInfo]:
    wanted = {KafkaPartition(each.topic, each.partition): spec for each in partitions}
    _connect(admin, limit_s)
    began = time.monotonic()
    while True:
        futures = admin.list_offsets(wanted, isolation_level=level, request_timeout=limit_s)
        problem = "it gives no offsets"
        try:
            found = {TopicPartition(key.topic, key.partition): each.result() for key, each in futures.items()}
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART and time.monotonic() - began > _NEWS_S:
                require_partitions(admin, [TopicPartition(each.topic, each.partition) for each in wanted])
            elif error.args[0].code() not in (*_UNSETTLED, KafkaError.UNKNOWN_TOPIC_OR_PART):
                raise unreachable(error) from None
            problem = error.args[0].str()
        else:
            # If the connection is lost during a request, librdkafka 2.16 answers -1001 and no error.
            if all(each.offset >= least for each in found.values()):
                return found
        if time.monotonic() - began > limit_s:
            raise _away(problem)
        with suppress(KafkaException):  # the client keeps the leaders that it knows, whatever a broker says
            admin.list_topics(timeout=limit_s)
        time.sleep(_POLL_S)


def _connect(admin: AdminClient, limit_s: float) -> None:
    """Let a new client connect to the brokers. Raises NotRunning.

    Once librdkafka 2.16 knows the brokers, it leaves its first connection, and makes another one when it needs one. A
    request for offsets in between does not count as a need: it waits 1 to 3 s. A request for topics does.
    """
    if admin not in _CONNECTED:
        try:
            admin.list_topics(timeout=limit_s)
        except KafkaException as error:
            raise unreachable(error) from None
        _CONNECTED.add(admin)


def _plain(found: Mapping[TopicPartition, ListOffsetsResultInfo]) -> dict[TopicPartition, int]:
    return {each: info.offset for each, info in found.items()}
