"""What the source says of the captured set: which changes of it stop a table, with and without event triggers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdc_views.base.captured import CapturedSet
from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.config import Settings
from cdc_views.log.cuts.cut import PartitionBuffer
from cdc_views.log.cuts.ddl import DdlCheck
from cdc_views.log.kafka.record import Order, Record, TopicPartition
from cdc_views.source.checks.fixes import fix_source
from cdc_views.source.checks.preflight import check_source
from cdc_views.source.service.captured import CapturedReader
from cdc_views.source.service.service_sql import EVENT_TRIGGERS
from cdc_views.stack.services.postgres import Postgres
from cdc_views.testing.postgres.wal import WalSlot
from tests.fix_postgres import Database, new_database
from tests.stack.test_source import errors, settings

TABLES = ("public.t", "public.p")
NAMES = tuple(map(TableName.parse, TABLES))
SETUP = (
    "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE TYPE pairs AS (one pair, mood mood)",
    "CREATE DOMAIN moods AS mood[]",
    "CREATE TABLE t (id int PRIMARY KEY, v int, body text, kind mood, kinds moods, place pairs, days date[], "
    "tags text[])",
    "CREATE UNIQUE INDEX t_v ON t (id, v)",
    "ALTER TABLE t ALTER v SET NOT NULL",
    "CREATE TABLE p (id int, at date, v int, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)",
    "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
    "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2026-02-01') TO ('2026-03-01') PARTITION BY LIST (at)",
    "CREATE TABLE p2x PARTITION OF p2 DEFAULT",
    "CREATE TABLE plain (id int PRIMARY KEY)",
    "CREATE TABLE q PARTITION OF p FOR VALUES FROM ('2027-01-01') TO ('2027-02-01')",
)

# A table of which `t` becomes a partition.
ABOVE = "CREATE TABLE above (LIKE t INCLUDING ALL) PARTITION BY RANGE (id)"
ATTACH = "ALTER TABLE above ATTACH PARTITION t DEFAULT"
SERVICE = "cdc_views.heartbeat, cdc_views.ddl, cdc_views.truncates"

# Acts of a DBA after which rows or events are not what they were: each must stop its table, and say which it is.
STOPS = {
    # columns, key, name
    "ADD COLUMN": ["ALTER TABLE t ADD COLUMN extra int"],
    "DROP COLUMN": ["ALTER TABLE t DROP COLUMN body"],
    "RENAME COLUMN": ["ALTER TABLE t RENAME COLUMN body TO remark"],
    "another type": ["ALTER TABLE t ALTER v TYPE bigint"],
    "a domain over its array type": ["CREATE DOMAIN words AS text[]", "ALTER TABLE t ALTER tags TYPE words"],
    "an array for a domain": ["ALTER TABLE t ALTER kinds TYPE mood[]"],
    "same type, other values": ["ALTER TABLE t ALTER v TYPE int USING v * 10"],
    "no primary key": ["ALTER TABLE t DROP CONSTRAINT t_pkey"],
    "the key dropped and added again": ["ALTER TABLE t DROP CONSTRAINT t_pkey", "ALTER TABLE t ADD PRIMARY KEY (id)"],
    "another primary key": ["ALTER TABLE t DROP CONSTRAINT t_pkey", "ALTER TABLE t ADD PRIMARY KEY (id, v)"],
    "RENAME TABLE": ["ALTER TABLE t RENAME TO other"],
    "RENAME SCHEMA": ["ALTER SCHEMA public RENAME TO other"],
    "SET SCHEMA": ["CREATE SCHEMA other", "ALTER TABLE t SET SCHEMA other"],
    "DROP TABLE": ["DROP TABLE t"],
    "DROP TYPE CASCADE": ["DROP TYPE mood CASCADE"],
    "another table of its name": ["DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY)"],
    "a staging table swapped in": ["BEGIN; CREATE TABLE s (LIKE t INCLUDING ALL); DROP TABLE t; "
                                   "ALTER TABLE s RENAME TO t; COMMIT"],
    # replica identity
    "identity DEFAULT": ["ALTER TABLE t REPLICA IDENTITY DEFAULT"],
    "identity NOTHING": ["ALTER TABLE t REPLICA IDENTITY NOTHING"],
    "identity of an index": ["ALTER TABLE t REPLICA IDENTITY USING INDEX t_v"],
    "identity of a partition": ["ALTER TABLE p1 REPLICA IDENTITY NOTHING"],
    "identity of a nested partition": ["ALTER TABLE p2x REPLICA IDENTITY NOTHING"],
    # partitions and children
    "DROP of a partition": ["DROP TABLE p1"],
    "DROP of a nested partition": ["DROP TABLE p2x"],
    "DETACH": ["ALTER TABLE p DETACH PARTITION p1"],
    "DETACH CONCURRENTLY": ["ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY"],
    "ATTACH": ["CREATE TABLE old (LIKE p INCLUDING ALL)",
               "ALTER TABLE p ATTACH PARTITION old FOR VALUES FROM ('2025-01-01') TO ('2025-02-01')"],
    "created, filled and attached": [
        "BEGIN; CREATE TABLE old (LIKE p INCLUDING ALL); INSERT INTO old VALUES (1, '2025-01-02'); "
        "ALTER TABLE p ATTACH PARTITION old FOR VALUES FROM ('2025-01-01') TO ('2025-02-01'); COMMIT"],
    "an unlogged partition": ["CREATE UNLOGGED TABLE p4 PARTITION OF p "
                              "FOR VALUES FROM ('2026-04-01') TO ('2026-05-01')"],
    "a partition becomes unlogged": ["ALTER TABLE p1 SET UNLOGGED"],
    "a nested partition becomes unlogged and logged": ["ALTER TABLE p2x SET UNLOGGED", "ALTER TABLE p2x SET LOGGED"],
    "an inheriting table": ["CREATE TABLE child () INHERITS (t)"],
    "a table begins to inherit": ["CREATE TABLE child (LIKE t INCLUDING ALL)", "ALTER TABLE child INHERIT t"],
    # TRUNCATE
    "TRUNCATE": ["TRUNCATE t"],
    "TRUNCATE of a partition": ["TRUNCATE p1"],
    "TRUNCATE of a nested partition": ["TRUNCATE p2x"],
    "TRUNCATE of the partitioned table": ["TRUNCATE p"],
    "TRUNCATE ONLY": ["TRUNCATE ONLY t"],
    "TRUNCATE by cascade": ["ALTER TABLE t ADD FOREIGN KEY (v) REFERENCES plain", "TRUNCATE plain CASCADE"],
    "TRUNCATE in replica mode": ["SET session_replication_role = replica; TRUNCATE t"],
    "TRUNCATE with triggers disabled": ["ALTER TABLE t DISABLE TRIGGER ALL", "TRUNCATE t",
                                        "ALTER TABLE t ENABLE TRIGGER ALL"],
    "the same in one transaction": ["BEGIN; ALTER TABLE t DISABLE TRIGGER ALL; TRUNCATE t; INSERT INTO t VALUES (9, 9);"
                                    " ALTER TABLE t ENABLE TRIGGER ALL; COMMIT"],
    "the trigger enabled as it was": ["ALTER TABLE t DISABLE TRIGGER cdc_views_truncate", "TRUNCATE t",
                                      "ALTER TABLE t ENABLE ALWAYS TRIGGER cdc_views_truncate"],
    "the trigger dropped": ["DROP TRIGGER cdc_views_truncate ON t", "TRUNCATE t"],
    "the trigger renamed": ["ALTER TRIGGER cdc_views_truncate ON t RENAME TO other", "TRUNCATE t"],
    "TRUNCATE of a partition without trigger": ["DROP TRIGGER cdc_views_truncate ON p1", "TRUNCATE p1"],
    "TRUNCATE of a new partition": ["CREATE TABLE p9 PARTITION OF p FOR VALUES FROM ('2026-09-01') TO ('2026-10-01')",
                                    "INSERT INTO p9 VALUES (1, '2026-09-02')", "TRUNCATE p9"],
    "TRUNCATE of a partition that the same transaction has created": [
        "BEGIN; CREATE TABLE p7 PARTITION OF p FOR VALUES FROM ('2026-07-01') TO ('2026-08-01'); "
        "INSERT INTO p VALUES (7, '2026-07-07'); TRUNCATE p7; INSERT INTO p VALUES (8, '2026-07-08'); COMMIT"],
    # the publication
    "the publication without the table": ["ALTER PUBLICATION cdc_views DROP TABLE t"],
    "without and with it": ["ALTER PUBLICATION cdc_views DROP TABLE t", "ALTER PUBLICATION cdc_views ADD TABLE t"],
    "another owner of the publication": ["ALTER PUBLICATION cdc_views OWNER TO pg_monitor"],
    "without inserts": ["ALTER PUBLICATION cdc_views SET (publish = 'update, delete')"],
    "without and with deletes": ["ALTER PUBLICATION cdc_views SET (publish = 'insert, update')",
                                 "ALTER PUBLICATION cdc_views SET (publish = 'insert, update, delete')"],
    "not by root": ["ALTER PUBLICATION cdc_views SET (publish_via_partition_root = false)"],
    "a row filter": ["ALTER PUBLICATION cdc_views SET TABLE t WHERE (id > 1), p, " + SERVICE],
    "a column list": ["ALTER PUBLICATION cdc_views SET TABLE t (id, v), p, " + SERVICE],
    "a table above it is published": [ABOVE, ATTACH, "ALTER PUBLICATION cdc_views ADD TABLE above"],
    "it becomes a partition of a published table": [ABOVE, "ALTER PUBLICATION cdc_views ADD TABLE above", ATTACH],
    "the schema of a table above it is published": [ABOVE, ATTACH,
                                                    "ALTER PUBLICATION cdc_views ADD TABLES IN SCHEMA public"],
    # types
    "a label renamed": ["ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'"],
    "a label renamed beside one added": ["BEGIN; ALTER TYPE mood ADD VALUE 'x'; "
                                         "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'; COMMIT"],
    "an attribute added": ["ALTER TYPE pair ADD ATTRIBUTE c int CASCADE"],
    "an attribute dropped": ["ALTER TYPE pairs DROP ATTRIBUTE mood"],
    # what keeps out values that cannot be mirrored
    "a guard dropped": ["ALTER TABLE t DROP CONSTRAINT cdc_views_7"],
    "a guard dropped and added": ["ALTER TABLE t DROP CONSTRAINT cdc_views_7",
                                  "ALTER TABLE t ADD CONSTRAINT cdc_views_7 CHECK ('1582-10-15' <= ALL (days))"],
}  # fmt: skip

# Only an event trigger sees what was undone before the next marker.
UNDONE = {
    "a table above it is published and no more": [ABOVE, ATTACH, "ALTER PUBLICATION cdc_views ADD TABLE above",
                                                  "ALTER PUBLICATION cdc_views DROP TABLE above"],
    "renamed by ALTER INDEX": ["BEGIN; ALTER INDEX t RENAME TO x; INSERT INTO x VALUES (5, 5); "
                               "ALTER INDEX x RENAME TO t; COMMIT"],
    "renamed with a setting that says it is ours": [
        "SET cdc_views.adopting = 'on'; BEGIN; ALTER TABLE t RENAME TO x; INSERT INTO x VALUES (5, 5); "
        "ALTER TABLE x RENAME TO t; COMMIT"],
    "renamed in the transaction of a new partition": [
        "BEGIN; CREATE TABLE p8 PARTITION OF p FOR VALUES FROM ('2026-08-01') TO ('2026-09-01'); "
        "ALTER TABLE t RENAME TO x; INSERT INTO x VALUES (5, 5); ALTER TABLE x RENAME TO t; COMMIT"],
    "a column renamed by ALTER VIEW": ["ALTER VIEW t RENAME v TO x", "ALTER VIEW t RENAME x TO v"],
    "a column renamed by ALTER MATERIALIZED VIEW": ["ALTER MATERIALIZED VIEW t RENAME v TO x",
                                                    "ALTER MATERIALIZED VIEW t RENAME x TO v"],
}  # fmt: skip

# Acts after which rows of a service table are not in the log; then something that only they would show.
UNPUBLISHED = {
    "truncates unpublished": ("truncates", ["ALTER PUBLICATION cdc_views DROP TABLE cdc_views.truncates",
                                            "TRUNCATE t"]),
    "truncates unpublished for a while": ("truncates", ["ALTER PUBLICATION cdc_views DROP TABLE cdc_views.truncates",
                                                        "TRUNCATE t",
                                                        "ALTER PUBLICATION cdc_views ADD TABLE cdc_views.truncates"]),
    "truncates filtered": ("truncates", [f"ALTER PUBLICATION cdc_views SET TABLE t, p, {SERVICE} WHERE (false)",
                                         "TRUNCATE t"]),
    "ddl unpublished for a while": ("ddl", [
        "ALTER PUBLICATION cdc_views DROP TABLE cdc_views.ddl",
        "BEGIN; ALTER TABLE t RENAME TO x; INSERT INTO x VALUES (5, 5); ALTER TABLE x RENAME TO t; COMMIT",
        "ALTER PUBLICATION cdc_views ADD TABLE cdc_views.ddl"]),
    "the function of the trigger replaced": ("truncates", [
        "CREATE OR REPLACE FUNCTION cdc_views.record_truncate() RETURNS trigger LANGUAGE plpgsql "
        "AS 'BEGIN RETURN NULL; END'", "TRUNCATE t"]),
}  # fmt: skip

HARMLESS = {
    "identity FULL": ["ALTER TABLE plain REPLICA IDENTITY FULL", "ALTER TABLE p1 REPLICA IDENTITY FULL"],
    "SET STATISTICS": ["ALTER TABLE t ALTER body SET STATISTICS 10"],
    "DROP NOT NULL, DEFAULT": ["ALTER TABLE t ALTER v DROP NOT NULL", "ALTER TABLE t ALTER v SET DEFAULT 7"],
    "a domain over its type": ["CREATE DOMAIN note AS text", "ALTER TABLE t ALTER body TYPE note"],
    "an index": ["CREATE INDEX ON t (kind)", "REINDEX TABLE t", "DROP INDEX t_kind_idx"],
    "a comment, a grant, an owner": ["COMMENT ON TABLE t IS 'x'", "GRANT SELECT ON t TO public",
                                     "ALTER TABLE t OWNER TO CURRENT_USER"],
    "foreign keys and checks": ["ALTER TABLE t ADD CHECK (v > 0)",
                                "ALTER TABLE t ADD FOREIGN KEY (v) REFERENCES plain"],
    "another publication": ["CREATE PUBLICATION other FOR TABLE t, p", "ALTER PUBLICATION other DROP TABLE t",
                            "DROP PUBLICATION other"],
    "a publication of all tables": ["CREATE PUBLICATION everything FOR ALL TABLES", "DROP PUBLICATION everything"],
    "VACUUM FULL, CLUSTER": ["VACUUM FULL t", "CLUSTER t USING t_pkey", "VACUUM FULL p1", "ANALYZE t"],
    "a new label": ["ALTER TYPE mood ADD VALUE 'calm' BEFORE 'sad'", "ALTER TYPE mood ADD VALUE 'rename'"],
    "an unused type": ["CREATE TYPE unused AS ENUM ('a')", "ALTER TYPE unused RENAME VALUE 'a' TO 'b'",
                       "DROP TYPE unused"],
    "a new partition": ["CREATE TABLE p3 PARTITION OF p FOR VALUES FROM ('2026-03-01') TO ('2026-04-01')",
                        "INSERT INTO p3 VALUES (1, '2026-03-02')"],
    "a new partition by CREATE SCHEMA": [
        "CREATE SCHEMA parts CREATE TABLE p6 PARTITION OF public.p FOR VALUES FROM ('2026-06-01') TO ('2026-07-01')"],
    "it becomes a partition of a table that is not published": [ABOVE, ATTACH],
    "new nested partitions": ["CREATE TABLE p5 PARTITION OF p FOR VALUES FROM ('2026-05-01') TO ('2026-06-01') "
                              "PARTITION BY LIST (at)", "CREATE TABLE p5x PARTITION OF p5 DEFAULT"],
    "a partition renamed": ["ALTER TABLE p1 RENAME TO old_p1"],
    "other tables": ["CREATE TABLE other (id int)", "ALTER TABLE other ADD v int", "TRUNCATE other", "DROP TABLE other",
                     "CREATE TEMP TABLE x (id int)"],
    "triggers of others": ["CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
                           "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
                           "ALTER TABLE t DISABLE TRIGGER g", "DROP TRIGGER g ON t"],
    "triggers disabled for a load": ["ALTER TABLE t DISABLE TRIGGER ALL", "INSERT INTO t VALUES (8, 8)",
                                     "ALTER TABLE t ENABLE TRIGGER ALL"],
    "the trigger always fires again": [
        "ALTER TABLE t DISABLE TRIGGER ALL", "ALTER TABLE t ENABLE TRIGGER ALL",
        "ALTER TABLE t ENABLE ALWAYS TRIGGER cdc_views_truncate",
    ],
    "rolled back": ["BEGIN; TRUNCATE t; ALTER TABLE t DROP COLUMN body; ROLLBACK"],
    "storage parameters": ["ALTER TABLE t SET (fillfactor = 70)", "ALTER TABLE t ALTER body SET STORAGE EXTERNAL",
                           "ALTER TABLE t ENABLE ROW LEVEL SECURITY", "ALTER TABLE t DISABLE ROW LEVEL SECURITY"],
}  # fmt: skip
# Without event triggers nobody vouches for these.
UNVOUCHED = {"VACUUM FULL, CLUSTER", "a new partition", "a new partition by CREATE SCHEMA", "new nested partitions"}


@pytest.fixture(scope="module")
def template(postgres: Postgres) -> Iterator[Database]:
    """A database with an ordinary and a partitioned table, ready to be captured."""
    with new_database(postgres.dsn) as database:
        database.execute(*SETUP)
        fix_source(ours(database), check_source(ours(database)))
        assert errors(check_source(ours(database))) == []
        database.execute(
            "INSERT INTO plain VALUES (1), (2)", "INSERT INTO t VALUES (1, 1), (2, 2)",
            "INSERT INTO p VALUES (1, '2026-01-02'), (2, '2026-02-02')", "DELETE FROM cdc_views.ddl",
        )  # fmt: skip
        yield database


@pytest.fixture
def prepared(postgres: Postgres, template: Database) -> Iterator[Database]:
    """A copy of it."""
    with new_database(postgres.dsn, template.name) as database:
        yield database


def ours(database: Database) -> Settings:
    """The settings of the project."""
    return settings(database.dsn, *TABLES)


def captured(database: Database) -> CapturedSet:
    """What the marker's writer sees now."""
    with database.connect() as connection:
        return CapturedReader(connection, "cdc_views", NAMES).read()


def judge(database: Database, known: CapturedSet) -> tuple[bool, str | None]:
    """Whether a recorded command stopped a table at its commit, and what a cut would raise; None if it goes on."""
    found = captured(database)
    judge = DdlCheck("cdc_views", NAMES, known, found)
    judged = judge.apply([rows(database, "ddl")], [rows(database, "truncates")], Lsn(10**9))
    stop = judged.stop or judge.unexplained(judged)
    return stop is not None and stop.position is not None, None if stop is None else str(stop.error)


def rows(database: Database, table: str) -> PartitionBuffer:
    """The rows of a service table as Debezium writes them."""
    held = PartitionBuffer(TopicPartition(f"app.cdc_views.{table}", 0), 0, None)
    found = database.execute(f"SELECT row_to_json(r)::jsonb FROM cdc_views.{table} r ORDER BY id")
    for number, (row,) in enumerate(found):
        if row.get("description") is not None:
            [(row["description"],)] = database.execute(
                f"SELECT description::text FROM cdc_views.{table} WHERE id = {row['id']}"
            )
        value = {"op": "c", "before": None, "after": row, "source": {"ts_us": 1}}
        order = Order(100 + number, 101 + number)
        held.add(Record(f"app.cdc_views.{table}", 0, number, 0, {"id": row["id"]}, value, {}, order))
    return held


@pytest.mark.parametrize("case", STOPS)
def test_change_that_cannot_be_applied_stops_its_table(prepared: Database, case: str) -> None:
    with prepared.connect() as connection:
        reader = CapturedReader(connection, "cdc_views", NAMES)
        known = reader.read()
        assert reader.read() is known
        prepared.execute(*STOPS[case])
        assert reader.read() == captured(prepared)
    _, error = judge(prepared, known)
    assert error is not None
    assert 'table "public.' in error


@pytest.mark.parametrize("case", STOPS)
def test_change_without_event_triggers_stops_its_table_at_the_next_marker(prepared: Database, case: str) -> None:
    prepared.execute(*(f"DROP EVENT TRIGGER {name}" for name in EVENT_TRIGGERS))
    known = captured(prepared)
    prepared.execute(*STOPS[case])
    is_dated, error = judge(prepared, known)
    assert error is not None
    assert not is_dated or "emptied" in error


@pytest.mark.parametrize("case", UNDONE)
def test_change_that_was_undone_stops_its_table(prepared: Database, case: str) -> None:
    known = captured(prepared)
    prepared.execute(*UNDONE[case])
    _, error = judge(prepared, known)
    assert error is not None
    assert 'table "public.t"' in error


@pytest.mark.parametrize("case", UNPUBLISHED)
def test_change_that_no_published_row_shows_stops_its_table(prepared: Database, case: str) -> None:
    table, statements = UNPUBLISHED[case]
    with prepared.connect() as connection:
        reader = CapturedReader(connection, "cdc_views", NAMES)
        known = reader.read()
        prepared.execute(*statements, f"DELETE FROM cdc_views.{table}")
        assert reader.read() == captured(prepared)
    assert judge(prepared, known)[1] is not None


@pytest.mark.parametrize("case", HARMLESS)
def test_harmless_change_stops_nothing(prepared: Database, case: str) -> None:
    known = captured(prepared)
    prepared.execute(*HARMLESS[case])
    assert judge(prepared, known) == (False, None)


@pytest.mark.parametrize("case", sorted(HARMLESS.keys() - UNVOUCHED))
def test_harmless_change_without_event_triggers_stops_nothing(prepared: Database, case: str) -> None:
    prepared.execute(*(f"DROP EVENT TRIGGER {name}" for name in EVENT_TRIGGERS))
    known = captured(prepared)
    prepared.execute(*HARMLESS[case])
    assert judge(prepared, known) == (False, None)


@pytest.mark.parametrize("case", sorted(UNVOUCHED))
def test_change_that_nobody_vouches_for_is_a_stop(prepared: Database, case: str) -> None:
    prepared.execute(*(f"DROP EVENT TRIGGER {name}" for name in EVENT_TRIGGERS))
    known = captured(prepared)
    prepared.execute(*HARMLESS[case])
    assert judge(prepared, known)[1] is not None


@pytest.mark.parametrize("publication", ["other", "cdc_views"])
def test_large_description_is_complete_in_every_event(prepared: Database, publication: str) -> None:
    """Postgres leaves a value that is stored out of line and did not change out of an UPDATE."""
    columns = ", ".join(f"a_long_name_of_a_column_{number} int" for number in range(300))
    prepared.execute(f"CREATE TABLE wide (id int PRIMARY KEY, {columns})", "CREATE PUBLICATION other FOR TABLE plain")
    wide = settings(prepared.dsn, "public.wide")
    fix_source(wide, check_source(wide))
    with prepared.connect() as connection:
        slot = WalSlot.create(connection, prepared.name)
        prepared.execute(f"ALTER PUBLICATION {publication} SET (publish = 'insert')")
        recorded = [change for each in slot.transactions() for change in each.changes if change.table.table == "ddl"]
    assert {change.kind for change in recorded} == {"INSERT", "UPDATE"}
    assert all("a_long_name_of_a_column_299" in str(change.new) for change in recorded)


def test_projects_of_one_database_do_not_touch_each_other(prepared: Database) -> None:
    theirs = settings(prepared.dsn, "public.t", "public.plain")
    theirs = theirs.model_copy(update={"source": theirs.source.model_copy(update={"publication": "theirs"})})
    known = captured(prepared)
    fix_source(theirs, check_source(theirs))
    assert errors(check_source(theirs)) == errors(check_source(ours(prepared))) == []
    assert captured(prepared) == known
    prepared.execute("ALTER TABLE plain ADD v int")
    assert judge(prepared, known) == (False, None)
    prepared.execute("ALTER TABLE t ALTER v TYPE int USING v * 10")
    assert judge(prepared, known)[0]
    with prepared.connect() as connection:
        stopped = [publication for (publication,) in connection.execute(
            "SELECT DISTINCT publication FROM cdc_views.ddl WHERE command LIKE '%rewrite%' ORDER BY 1")]  # fmt: skip
    assert stopped == ["cdc_views", "theirs"]


def test_project_that_captures_other_tables_leaves_rows_of_others(prepared: Database) -> None:
    theirs = settings(prepared.dsn, "public.plain")
    theirs = theirs.model_copy(update={"source": theirs.source.model_copy(update={"publication": "theirs"})})
    fix_source(theirs, check_source(theirs))
    rows = prepared.execute("SELECT publication, table_name FROM cdc_views.captured ORDER BY 1, 2")
    assert rows == [("cdc_views", "p"), ("cdc_views", "t"), ("theirs", "plain")]


@pytest.mark.parametrize("column", ["regclass", "regclass[]", "regtype", "aclitem", "owner", "owners"])
def test_type_that_prints_names_of_objects_is_refused(database: Database, column: str) -> None:
    database.execute(
        "CREATE TYPE owner AS (a int, role regrole)", "CREATE DOMAIN owners AS owner[]",
        f"CREATE TABLE t (id int PRIMARY KEY, v {column})",
    )  # fmt: skip
    found = [error for error in errors(check_source(settings(database.dsn, "public.t"))) if 'column "v"' in error]
    assert any("name of an object" in error or "array" in error for error in found)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("ALTER TABLE p1 REPLICA IDENTITY NOTHING", 'table "public.p1" replica identity is "nothing"'),
        ("ALTER TABLE p2x SET UNLOGGED", 'partition "public.p2x" is not logged'),
        ("DROP TRIGGER cdc_views_truncate ON p2x", 'no trigger for TRUNCATE on "public.p2x"'),
        ("COMMENT ON SCHEMA cdc_views IS 'older'", 'schema "cdc_views" is marked "older"'),
    ],
)
def test_check_of_a_relation_of_the_captured_set_says_what_is_wrong(
    prepared: Database, statement: str, problem: str
) -> None:
    prepared.execute(statement)
    assert any(problem in error for error in errors(check_source(ours(prepared))))
    if "UNLOGGED" not in statement:
        fix_source(ours(prepared), check_source(ours(prepared)))
        assert errors(check_source(ours(prepared))) == []


def test_partition_beside_its_table_is_refused(prepared: Database) -> None:
    both = settings(prepared.dsn, "public.p", "public.p1")
    assert any('has the partition "public.p1"' in error for error in errors(check_source(both)))


def test_table_below_a_published_one_is_refused(prepared: Database) -> None:
    prepared.execute(ABOVE, ATTACH, "ALTER PUBLICATION cdc_views ADD TABLE above")
    assert any('is a partition of "public.above"' in error for error in errors(check_source(ours(prepared))))


def test_new_partition_is_as_the_others_are(postgres: Postgres) -> None:
    """Otherwise its first update stops the engine, and the next start is refused."""
    with new_database(postgres.dsn) as database:
        database.execute(
            "CREATE TABLE p (id int, at date, v text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)",
            "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
        )
        ours = settings(database.dsn, "public.p")
        fix_source(ours, check_source(ours))
        database.execute(
            "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2026-02-01') TO ('2026-03-01') PARTITION BY LIST (at)",
            'CREATE TABLE "P 2x" PARTITION OF p2 DEFAULT',
        )
        assert errors(check_source(ours)) == []


def test_truncate_of_a_partition_that_its_snapshot_does_not_show_stops_the_table(prepared: Database) -> None:
    with prepared.connect() as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT FROM t")
        prepared.execute(*HARMLESS["a new partition"])
        known = captured(prepared)
        connection.execute("TRUNCATE p3")
    assert "emptied" in str(judge(prepared, known)[1])


@pytest.mark.parametrize("statement", ["ALTER TABLE p3 REPLICA IDENTITY NOTHING", "TRUNCATE p3"])
def test_new_partition_altered_in_its_transaction_stops_its_table(prepared: Database, statement: str) -> None:
    known = captured(prepared)
    prepared.execute(f"BEGIN; {HARMLESS['a new partition'][0]}; {statement}; COMMIT")
    assert judge(prepared, known)[0]
    assert prepared.execute("SELECT FROM cdc_views.adopting") == []


def test_new_partition_that_may_not_get_a_trigger_stops_its_table(prepared: Database) -> None:
    known = captured(prepared)
    role = f"weak_{prepared.name}"
    prepared.execute(f"CREATE ROLE {role}", f"ALTER FUNCTION cdc_views.adopt OWNER TO {role}")
    try:
        prepared.execute(*HARMLESS["a new partition"])
        assert "relation public.p3" in str(judge(prepared, known)[1])
    finally:
        prepared.execute(f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")


def test_table_that_was_replaced_stops_its_successor_no_more(prepared: Database) -> None:
    prepared.execute(
        "CREATE TABLE s (LIKE t INCLUDING ALL)", "ALTER TABLE t RENAME TO t_old", "ALTER TABLE s RENAME TO t"
    )
    fix_source(ours(prepared), check_source(ours(prepared)))
    assert errors(check_source(ours(prepared))) == []
    prepared.execute("DELETE FROM cdc_views.ddl", "DELETE FROM cdc_views.truncates")
    known = captured(prepared)
    prepared.execute("TRUNCATE t_old", "ALTER TABLE t_old ADD extra int", "DROP TABLE t_old")
    assert judge(prepared, known) == (False, None)
