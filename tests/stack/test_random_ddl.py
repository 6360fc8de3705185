"""Random histories with DDL, through Kafka: what is harmless stops nothing, and what is not is never published.

`CDC_VIEWS_DDL_HISTORIES` says how many; a failure shows its seed, and `CDC_VIEWS_SEED` repeats it.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from random import Random
from typing import Any

import psycopg
import pytest

from cdc_views.errors import SchemaChanged, TableTruncated
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.log import Log
from tests.fix_kafka import CaptureOf
from tests.fix_postgres import Database
from tests.stack.test_source_captured import HARMLESS, SETUP, STOPS, TABLES

HISTORIES = int(os.environ.get("CDC_VIEWS_DDL_HISTORIES", "3"))
DML = (
    "INSERT INTO t (id, v) SELECT g, {n} FROM generate_series({n}, {n} + 3) g ON CONFLICT (id) DO UPDATE SET v = 7",
    "UPDATE t SET v = v + 1000 WHERE id % 3 = {n} % 3",
    "UPDATE t SET id = (SELECT max(id) + 1 FROM t) WHERE id = (SELECT min(id) FROM t)",
    "DELETE FROM t WHERE id % 5 = {n} % 5",
    "INSERT INTO p VALUES ({n}, '2026-01-05', {n}), ({n}, '2026-02-05', {n}) ON CONFLICT DO NOTHING",
    "UPDATE p SET at = at + 30 WHERE at < '2026-01-20' AND id % 2 = {n} % 2"
    " AND NOT EXISTS (SELECT FROM p AS moved WHERE moved.id = p.id AND moved.at = p.at + 30)",
    "DELETE FROM p WHERE id % 4 = {n} % 4",
)
# Cases after which the statements of others are refused (a foreign key, another name, an inherited column), or stop the
# table: once our trigger does not always fire, a VACUUM FULL may have been a TRUNCATE.
REFUSING = {
    "foreign keys and checks", "TRUNCATE by cascade", "a partition renamed", "triggers disabled for a load",
    "it becomes a partition of a table that is not published", "DROP NOT NULL, DEFAULT",
}  # fmt: skip
Rows = dict[str, dict[Any, Any]]


class Mirror:
    """What the records of cuts leave of each table."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._cut: Cut | None = None
        self.rows: Rows = {table: {} for table in TABLES}

    def advance(self) -> None:
        """Apply the next cut."""
        before = (self._log.begin(), None) if self._cut is None else (self._cut.end, self._cut.position)
        self._cut = self._log.cut(*before)
        for record in self._log.records(self._cut):
            rows, key = self.rows[str(self._log.table_of(record.topic))], tuple(record.key.values())
            if record.value is None or record.value["op"] == "d":
                rows.pop(key, None)
            else:
                rows[key] = record.value["after"]["v"]


def rows_of(database: Database) -> Rows:
    """The same from Postgres."""
    return {
        "public.t": {(id_,): v for id_, v in database.execute("SELECT id, v FROM t")},
        "public.p": {(id_, at): v for id_, at, v in database.execute("SELECT id, at - date '1970-01-01', v FROM p")},
    }


@pytest.mark.proves(
    wrong="Any DDL on a mirrored table, at random between transactions",
    seen=(
        "nothing if it is harmless; otherwise `SchemaChanged` or `TableTruncated`, and everything before it is "
        "published"
    ),
    do="run `cdc-views reset`",
)
@pytest.mark.parametrize("number", range(HISTORIES))
def test_history_with_ddl_is_exact_until_it_stops(
    database: Database, capture: CaptureOf, number: int, request: pytest.FixtureRequest
) -> None:
    seed = int(os.environ.get("CDC_VIEWS_SEED", secrets.randbelow(10**6)))
    request.node.add_report_section("call", "history", f"CDC_VIEWS_SEED={seed}")
    random = Random(seed)
    database.execute(*SETUP, "INSERT INTO plain SELECT generate_series(1, 9)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    captured = capture(*TABLES)
    captured.start()
    mirror = Mirror(captured.log())
    mirror.advance()
    for case in random.sample(sorted(HARMLESS.keys() - REFUSING), 4):
        database.execute(*(random.choice(DML).format(n=random.randrange(100)) for _ in range(3)), *HARMLESS[case])
        mirror.advance()
        assert mirror.rows == rows_of(database), case
    case = random.choice(sorted(STOPS.keys() - REFUSING))
    states = [rows_of(database)]
    for statement in STOPS[case]:
        database.execute(statement.replace("PUBLICATION cdc_views", f"PUBLICATION {database.name}"))
        with suppress(psycopg.Error):
            database.execute(DML[1].format(n=1), DML[4].format(n=2))
        with suppress(psycopg.Error):
            states.append(rows_of(database))
    error = None
    while error is None:
        try:
            mirror.advance()
        except (SchemaChanged, TableTruncated) as found:
            error = found
        else:
            assert mirror.rows in states, case
    assert mirror.rows in states, case
