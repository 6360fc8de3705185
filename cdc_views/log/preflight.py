"""What must hold in Kafka and Connect before the engine reads, and before a connector is started or resumed."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_views.base.lsn import Lsn
from cdc_views.base.service_schema import SERVICE_TABLES
from cdc_views.config import LogSettings, Settings
from cdc_views.errors import RESET, BadConfig, NotRunning, SlotChanged
from cdc_views.findings import Finding
from cdc_views.log.debezium.connect import ConnectClient
from cdc_views.log.debezium.connector import CONNECTOR_CLASS, LEAST_VERSION, connector_config, version_of
from cdc_views.log.debezium.ownership import OTHER_NAMES, other_owner
from cdc_views.log.debezium.placeholder import new_placeholder
from cdc_views.log.kafka.at_least_once import HINT
from cdc_views.log.kafka.topics import (
    LEAST_COMPACTION_LAG_MS,
    admin_client,
    check_topic,
    cluster_of,
    describe_topics,
    topic_facts,
    topic_names,
)


def check_log(settings: Settings, confirmed_flush_lsn: Lsn | None = None) -> list[Finding]:
    """Check Connect, Debezium, the connector and the topics that exist.

    `confirmed_flush_lsn` is the slot's (cdc_views.source.slot), None if there is no slot yet.
    """
    findings: list[Finding] = []
    try:
        topic_names(settings.log.topic_prefix, settings.source.tables)
    except BadConfig as error:
        return [Finding("error", "setting source.tables", error.message, error.hint or "")]
    try:
        findings += _check_connect(settings, confirmed_flush_lsn)
    except NotRunning as error:
        findings.append(Finding("error", "Kafka Connect", error.message, error.hint or ""))
    try:
        findings += _check_topics(settings)
    except NotRunning as error:
        findings.append(Finding("error", "Kafka", error.message, error.hint or ""))
    return findings


def require_slot_matches(settings: LogSettings, confirmed_flush_lsn: Lsn | None) -> None:
    """Compare the slot with what Connect has stored; call it before every start of the connector.

    The server sends nothing that comes before the slot's confirmed_flush_lsn. If the slot is beyond the stored
    lsn_commit, because somebody advanced it or created it again, the changes between are lost silently, whatever
    offset.mismatch.strategy says. Raises SlotChanged.
    """
    problem = _slot_problem(ConnectClient(settings.connect_url), settings, confirmed_flush_lsn)
    if problem:
        raise SlotChanged(
            f"{problem}: the changes in between are lost",
            hint=RESET,
        )


def require_same_cluster(settings: LogSettings) -> None:
    """Raise BadConfig if Connect writes to other brokers than those that the engine reads from."""
    found, wanted = ConnectClient(settings.connect_url).kafka_cluster(), cluster_of(admin_client(settings))
    if found != wanted:
        raise BadConfig(
            f'Kafka Connect at {settings.connect_url} writes to the cluster "{found}", wanted "{wanted}"',
            hint="log.connect_url and log.bootstrap_servers belong to different systems",
        )


def _check_connect(settings: Settings, confirmed_flush_lsn: Lsn | None) -> Iterator[Finding]:
    try:
        require_same_cluster(settings.log)
    except BadConfig as error:
        yield Finding("error", "Kafka Connect", error.message, error.hint or "")
        return
    connect = ConnectClient(settings.log.connect_url)
    version = connect.plugin_version(CONNECTOR_CLASS)
    wanted = ".".join(str(part) for part in LEAST_VERSION)
    if version is None:
        missing = f"install Debezium's Postgres connector {wanted}.Final or later on the worker's plugin.path"
        yield Finding("error", "Kafka Connect", "does not have Debezium's Postgres connector", missing)
        return
    if (version_of(version) or (0,)) < LEAST_VERSION:
        problem = f"is {version}, wanted {wanted}.Final or later: before it, restarts lose committed rows"
        yield Finding("error", "Debezium", problem, "upgrade the connector plugin of every worker")
        return
    config = connector_config(settings, new_placeholder())  # any placeholder will do: only the settings are validated
    for name, errors in connect.config_errors({"name": settings.log.connector, **config}).items():
        remedy = "correct what the setting is made from; connectors/README.md explains each"
        if name == "exactly.once.support":
            remedy = "set exactly.once.source.support=enabled in the settings of every worker, and restart them"
            remedy += "; where that cannot be, name their offset.storage.topic as log.offsets_topic"
        yield Finding("error", f"connector setting {name}", "; ".join(errors), remedy)
    if (other := other_owner(settings, may_have_moved=True)) is not None:
        yield Finding(
            "error", f'connector "{settings.log.connector}"', f"is that of another project: {other}", OTHER_NAMES
        )
        return
    if (mismatch := _slot_problem(connect, settings.log, confirmed_flush_lsn)) is not None:
        yield Finding("error", f'replication slot "{settings.source.slot}"', mismatch, RESET)


def _slot_problem(connect: ConnectClient, settings: LogSettings, confirmed_flush_lsn: Lsn | None) -> str | None:
    stored = connect.stored_commit(settings.connector, settings.topic_prefix)
    if stored is None:
        return None
    if confirmed_flush_lsn is None:
        return f"there is no slot, and Connect has stored {stored}"
    if confirmed_flush_lsn > stored:
        return f"confirmed_flush_lsn is {confirmed_flush_lsn}, wanted at most {stored}, which Connect has stored"
    return None


def _check_topics(settings: Settings) -> Iterator[Finding]:
    admin, stored = admin_client(settings.log), settings.log.offsets_topic
    if stored is not None and not topic_facts(admin, [stored]):
        yield Finding("error", f'topic "{stored}"', "does not exist", HINT)
    least_ms = min(LEAST_COMPACTION_LAG_MS, settings.log.min_compaction_lag_ms)
    names = topic_names(settings.log.topic_prefix, settings.source.tables)
    for name, topic in describe_topics(admin, names).items():
        remedy = f'set it with "kafka-configs --alter"; if the topic was compacted too early, {RESET}'
        for problem in check_topic(topic, least_ms):
            yield Finding("error", f'topic "{name}"', problem, remedy)
        if names[name] in SERVICE_TABLES and topic.partitions != 1:
            problem = f"has {topic.partitions} partitions, wanted 1"
            yield Finding("warning", f'topic "{name}"', problem, "markers of several partitions cost more to watch")
