"""DDL and TRUNCATE end a cut."""

from __future__ import annotations

from cdc_views.errors import SchemaChanged, TableTruncated
from cdc_views.log.cut import Held
from cdc_views.log.record import Record
from cdc_views.log.stops import first_stop
from cdc_views.lsn import Lsn
from cdc_views.names import TableName
from tests.unit.log_records import PARTITION, change

ORDERS = TableName("public", "orders")
KNOWN: dict[TableName, str | None] = {ORDERS: "f1"}


def ddl(offset: int, commit: int | None, fingerprint: str | None, table: str = "orders", op: str = "c") -> Record:
    """A row of cdc_views.ddl."""
    return change(offset, commit, (commit or 0) + 1, op, schema_name="public", table_name=table,
                  command="ALTER TABLE", fingerprint=fingerprint)  # fmt: skip


def truncate(offset: int, commit: int) -> Record:
    """A row of cdc_views.truncates."""
    return change(offset, commit, commit + 1, "c", schema_name="public", table_name="orders")


def held(*records: Record) -> list[Held]:
    """The partition of a service table."""
    partition = Held(PARTITION, 0, None)
    for record in records:
        partition.add(record)
    return [partition]


def test_ddl_stops_before_its_own_transaction() -> None:
    stop = first_stop(held(ddl(0, 100, "f2")), [], Lsn(500), KNOWN)
    assert stop is not None
    assert stop.position == Lsn(100)
    assert isinstance(stop.error, SchemaChanged)
    assert '"public.orders" was changed by "ALTER TABLE" after position 0/64' in str(stop.error)


def test_ddl_that_leaves_the_fingerprint_is_no_stop() -> None:
    assert first_stop(held(ddl(0, 100, "f1")), [], Lsn(500), KNOWN) is None


def test_ddl_without_a_fingerprint_is_a_stop() -> None:
    assert first_stop(held(ddl(0, 100, None)), [], Lsn(500), KNOWN) is not None


def test_ddl_of_another_table_is_no_stop() -> None:
    assert first_stop(held(ddl(0, 100, "f2", "others")), [], Lsn(500), KNOWN) is None


def test_ddl_of_before_the_snapshot_is_no_stop() -> None:
    assert first_stop(held(ddl(0, None, "f2", op="r")), [], Lsn(500), KNOWN) is None


def test_ddl_beyond_the_cut_is_no_stop_yet() -> None:
    assert first_stop(held(ddl(0, 500, "f2")), [], Lsn(500), KNOWN) is None


def test_truncate_before_ddl_is_the_first_stop() -> None:
    stop = first_stop(held(ddl(0, 200, "f2")), held(truncate(0, 100)), Lsn(500), KNOWN)
    assert stop is not None
    assert isinstance(stop.error, TableTruncated)
