"""Tables whose replica identity was changed behind our back: their events stop by name, and no placeholder is stored.

The events are read from the topics as they are, without a cut: what a cut says of the ALTER TABLE is another matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from psycopg import sql

from cdc_views.base.names import TableName
from cdc_views.capture.fold import Fold
from cdc_views.capture.latest import Latest
from cdc_views.capture.unchanged import forms
from cdc_views.errors import UnresolvedToast, WrongReplicaIdentity
from cdc_views.log.cuts.ranges import read_piece
from cdc_views.log.debezium.placeholder import read_placeholder
from cdc_views.log.kafka.record import RawRecord, TopicPartition, parse_records
from cdc_views.log.kafka.topics import admin_client, end_offsets, topic_name
from cdc_views.source.catalog import SourceTable
from cdc_views.stack.local import LocalStack
from tests.fix_kafka import Capture, captures
from tests.fix_postgres import new_database
from tests.stack.type_cases import LARGE, SETUP
from tests.waiting import wait_for

BIG = "(SELECT string_agg(md5(g::text), '') FROM generate_series(1, 400) g)"
DEBEZIUMS = "__debezium_unavailable_value"
# Types that an unchanged value is written of as a placeholder; for others the connector fails.
TYPES = ("bytea", "jsonb", "text[]", "xml", "numeric", "tsvector", "hstore", "pair", "longtext", "uuid[]", "int4[]")
VALUES = {**dict(LARGE), "longtext": BIG, "int4[]": dict(LARGE)["integer[]"]}

# Of each case: statements before the snapshot (id is the key, body is stored out of line), and those that follow it.
TABLE = "CREATE TABLE {t} (id int PRIMARY KEY, n int, code text NOT NULL UNIQUE, body text)"
ROW = f"INSERT INTO {{t}} SELECT id, 0, 'c' || id, {BIG} FROM generate_series(1, 3) id"
BY_INDEX = "ALTER TABLE {t} REPLICA IDENTITY USING INDEX {t}_code_key"
CASES: Mapping[str, tuple[str, ...]] = {
    "by_key": ("ALTER TABLE {t} REPLICA IDENTITY DEFAULT", "UPDATE {t} SET id = id + 100"),
    "by_key_update": ("ALTER TABLE {t} REPLICA IDENTITY DEFAULT", "UPDATE {t} SET n = 1"),
    "by_index": (BY_INDEX, "UPDATE {t} SET code = code || 'x'"),
    "by_index_update": (BY_INDEX, "UPDATE {t} SET n = 1"),
    "and_back": ("ALTER TABLE {t} REPLICA IDENTITY DEFAULT", "UPDATE {t} SET id = id + 100 WHERE id = 1",
                 "ALTER TABLE {t} REPLICA IDENTITY FULL", "UPDATE {t} SET n = 2"),
    "of_a_partition": ("ALTER TABLE {t}_one REPLICA IDENTITY DEFAULT", "UPDATE {t} SET id = id + 10"),
    # Its event names the new key, and no other says that the old one is gone.
    "hidden_key_change": (BY_INDEX, "UPDATE {t} SET id = id + 100, body = 'short'"),
}  # fmt: skip
PARTITIONED = (
    "CREATE TABLE {t} (id int PRIMARY KEY, n int, code text NOT NULL, body text) PARTITION BY RANGE (id)",
    "CREATE TABLE {t}_one PARTITION OF {t} FOR VALUES FROM (0) TO (100)",
    "ALTER TABLE {t}_one REPLICA IDENTITY FULL",
)


@dataclass
class Changed:
    """What a connector wrote after the identity of each table was changed, and of tables that hold Debezium's text."""

    captured: Capture
    tables: Mapping[str, SourceTable]

    def records(self, name: str) -> list[RawRecord]:
        """All records of a table's topic."""
        log = self.captured.settings.log
        partition = TopicPartition(topic_name(log.topic_prefix, TableName("public", name)), 0)
        end = end_offsets(admin_client(log), [partition], committed=True)[partition]
        return [record for records in read_piece(log, partition, 0, end) for record in records]

    def fold(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table as the driver reads them."""
        fold = Fold(self.tables[name])
        for record in parse_records(self.records(name)):
            fold.add(record)
        return fold.finish({}).upserts.to_pylist()

    def latest(self, name: str) -> list[dict[str, Any]]:
        """The same as a task of Spark reads them."""
        latest = Latest(self.tables[name])
        latest.add(self.records(name))
        return latest.finish().upserts.to_pylist()


@pytest.fixture(scope="module")
def changed(stack: LocalStack) -> Iterator[Changed]:
    """All cases through one connector."""
    with new_database(stack.postgres.dsn) as database, captures(stack, database) as capture:
        with closing(database.connect()) as connection:

            def run(statement: str, table: str = "") -> None:
                connection.execute(sql.SQL(statement.replace("{t}", table)))

            for statement in (*SETUP, "CREATE DOMAIN longtext AS text"):
                run(statement)
            for name in CASES:
                for statement in PARTITIONED if name == "of_a_partition" else (TABLE,):
                    run(statement, name)
                run("ALTER TABLE {t} REPLICA IDENTITY FULL", name)
                run("ALTER TABLE {t} ALTER body SET STORAGE EXTERNAL", name)
                run(ROW, name)
            for number, type_ in enumerate(TYPES):
                run(f"CREATE TABLE v{number} (id int PRIMARY KEY, n int, body {type_})")
                run("ALTER TABLE {t} ALTER body SET STORAGE EXTERNAL", f"v{number}")
                run("ALTER TABLE {t} REPLICA IDENTITY FULL", f"v{number}")
                run(f"INSERT INTO v{number} SELECT 1, 0, ({VALUES[type_]})::{type_}")
            run("CREATE TABLE texts (id int PRIMARY KEY, n int, body text, list text[])")
            run("ALTER TABLE texts REPLICA IDENTITY FULL")
            run(f"INSERT INTO texts VALUES (1, 0, '{DEBEZIUMS}', '{{{DEBEZIUMS}}}')")
            names = [*CASES, *(f"v{number}" for number in range(len(TYPES))), "texts"]
            captured = capture(*names, partitions=1, snapshot_timeout_s=120)
            captured.start()
            found = Changed(captured, {name.table: table for name, table in captured.tables().items()})
            before = {name: len(found.records(name)) for name in names}
            for name, statements in CASES.items():
                for statement in statements:
                    run(statement, name)
            for number in range(len(TYPES)):
                run("ALTER TABLE {t} REPLICA IDENTITY DEFAULT", f"v{number}")
                run("UPDATE {t} SET n = 1", f"v{number}")
            run("UPDATE texts SET n = 1")
            wait_for(lambda: all(len(found.records(name)) > before[name] for name in reversed(names)), 60)
        yield found


@pytest.mark.proves(
    wrong="The REPLICA IDENTITY of a captured table is no longer FULL",
    seen="`WrongReplicaIdentity` with table and column",
    do="run `cdc-views check --fix`, then `cdc-views rebuild TABLE --from snapshot --swap`",
)
@pytest.mark.parametrize(
    ("name", "read"),
    [(name, read) for name in CASES for read in (Changed.fold, Changed.latest)
     if (name, read) != ("and_back", Changed.latest)],
)  # fmt: skip
def test_changed_identity_stops_at_its_first_event(changed: Changed, name: str, read: Any) -> None:
    with pytest.raises(WrongReplicaIdentity, match=f'table "public.{name}": .*wanted REPLICA IDENTITY FULL') as stop:
        read(changed, name)
    assert stop.value.table == f"public.{name}"
    assert stop.value.column == (None if name == "hidden_key_change" else "body")
    assert "check --fix" in str(stop.value.hint)


def test_placeholder_that_a_later_whole_row_replaces_is_not_needed_by_a_task(changed: Changed) -> None:
    rows = changed.latest("and_back")
    assert {row["id"]: (row["n"], len(row["body"])) for row in rows} == dict.fromkeys((2, 3, 101), (2, 400 * 32))


@pytest.mark.proves(
    wrong="An event leaves a TOAST value unchanged, and neither the log nor the mirror has the value",
    seen="`UnresolvedToast` with table and column",
    do="run `cdc-views check --fix`, then `cdc-views rebuild TABLE --from snapshot --swap`",
)
@pytest.mark.parametrize("number", range(len(TYPES)), ids=TYPES)
def test_placeholder_of_each_type_is_recognised(changed: Changed, number: int) -> None:
    for read in (changed.fold, changed.latest):
        with pytest.raises(UnresolvedToast, match='column "body" was left unchanged'):
            read(f"v{number}")


def test_text_that_is_debeziums_own_placeholder_is_stored(changed: Changed) -> None:
    wanted = [{"id": 1, "n": 1, "body": DEBEZIUMS, "list": [DEBEZIUMS]}]
    assert changed.fold("texts") == changed.latest("texts") == wanted


def test_every_table_is_decoded_with_the_placeholder_of_its_log(changed: Changed) -> None:
    placeholder = read_placeholder(changed.captured.settings.log)
    assert {forms(table).text for table in changed.tables.values()} == {placeholder}
    assert changed.captured.config()["unavailable.value.placeholder"] == placeholder
