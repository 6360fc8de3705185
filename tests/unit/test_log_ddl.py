"""DDL and TRUNCATE end a cut."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_views.base.captured import CapturedSet, CapturedTable, Relation
from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.errors import BadEvent, SchemaChanged, TableTruncated
from cdc_views.log.cuts.cut import PartitionBuffer
from cdc_views.log.cuts.ddl import DdlCheck, DdlResult
from cdc_views.log.kafka.record import Record
from tests.unit.log_records import PARTITION, change

ORDERS = TableName("public", "orders")
HEAP = Relation(
    name="public.orders", kind="r", persistence="p", identity="f", parent="", storage=1, altered="a", trigger="7"
)
TABLE = CapturedTable(
    name="public.orders", membership="1", columns={"1": "id int4 -1"}, key="id", guards={}, labels={}, attributes={},
    relations={"10": HEAP},
)  # fmt: skip
WIDER = TABLE.model_copy(update={"columns": {**TABLE.columns, "2": "extra int4 -1"}})
REWRITTEN = TABLE.model_copy(update={"relations": {"10": HEAP.model_copy(update={"storage": 2})}})
TRIGGERS = {"cdc_views_ddl": "1 1"}


def captured(table: CapturedTable | None, triggers: dict[str, str] = TRIGGERS) -> CapturedSet:
    """The captured set of one table."""
    return CapturedSet(event_triggers=triggers, tables={str(ORDERS): table})


def ddl(offset: int, commit: int | None, found: CapturedTable | None, op: str = "c", **row: Any) -> Record:
    """A row of cdc_views.ddl."""
    description = None if found is None else found.model_dump_json()
    names = {"publication": "ours", "schema_name": "public", "table_name": "orders", "id": offset}
    return change(offset, commit, (commit or 0) + 1, op, **names | row, command="ALTER TABLE", description=description)


def truncate(offset: int, commit: int) -> Record:
    """A row of cdc_views.truncates."""
    return change(offset, commit, commit + 1, "c", publication="ours", schema_name="public", table_name="orders",
                  truncated="public.orders")  # fmt: skip


def held(*records: Record) -> list[PartitionBuffer]:
    """The partition of a service table."""
    partition = PartitionBuffer(PARTITION, 0, None)
    for record in records:
        partition.add(record)
    return [partition]


def judge(
    *rows: Record,
    truncates: tuple[Record, ...] = (),
    known: CapturedSet | None = None,
    found: CapturedSet | None = None,
) -> tuple[DdlCheck, DdlResult]:
    """The judgement of these rows below position 500."""
    known = captured(TABLE) if known is None else known
    judge = DdlCheck("ours", [ORDERS], known, found or captured(TABLE))
    return judge, judge.apply(held(*rows), held(*truncates), Lsn(500))


def test_ddl_stops_before_its_own_transaction() -> None:
    stop = judge(ddl(0, 100, WIDER))[1].stop
    assert stop is not None
    assert stop.position == Lsn(100)
    assert isinstance(stop.error, SchemaChanged)
    wanted = 'table "public.orders" was changed by "ALTER TABLE": column 2 is "extra int4 -1", wanted missing, after'
    assert str(stop.error).startswith(f"{wanted} position 0/64")


def test_ddl_that_leaves_the_table_as_it_was_is_no_stop() -> None:
    assert judge(ddl(0, 100, TABLE))[1].stop is None


def test_ddl_without_a_description_is_a_stop() -> None:
    stop = judge(ddl(0, 100, None))[1].stop
    assert stop is not None
    assert "may have changed without events" in str(stop.error)


@pytest.mark.parametrize(
    "row", [{"table_name": "others"}, {"publication": "theirs"}], ids=["another table", "another project"]
)
def test_ddl_of_others_is_no_stop(row: dict[str, str]) -> None:
    assert judge(ddl(0, 100, None, **row))[1].stop is None


def test_ddl_beyond_the_cut_is_no_stop_yet() -> None:
    assert judge(ddl(0, 500, WIDER))[1].stop is None


def test_ddl_of_before_the_snapshot_says_what_the_snapshot_saw() -> None:
    stop = judge(ddl(0, None, WIDER, op="r"), ddl(1, 100, TABLE), found=captured(WIDER))[1].stop
    assert stop is not None
    assert judge(ddl(0, None, WIDER, op="r"), ddl(1, 100, WIDER), found=captured(WIDER))[1].stop is None


def test_the_last_row_of_before_the_snapshot_counts() -> None:
    rows = (ddl(0, None, TABLE, op="r", id=7), ddl(1, None, WIDER, op="r", id=3))
    assert judge(*rows)[1].captured == captured(TABLE)


def test_truncate_before_ddl_is_the_first_stop() -> None:
    stop = judge(ddl(0, 200, WIDER), truncates=(truncate(0, 100),))[1].stop
    assert stop is not None
    assert isinstance(stop.error, TableTruncated)


def test_stop_whose_rows_changed_at_an_unknown_time_has_no_position() -> None:
    stop = judge(ddl(0, 100, REWRITTEN.model_copy(update={"relations": {"10": HEAP.model_copy(
        update={"storage": 2, "trigger": None})}})))[1].stop  # fmt: skip
    assert stop is not None
    assert stop.position is None


def test_stop_while_event_triggers_were_missing_has_no_position() -> None:
    stop = judge(ddl(0, 100, WIDER), found=captured(WIDER, {"cdc_views_ddl": "2 2"}))[1].stop
    assert stop is not None
    assert stop.position is None


def test_change_that_no_row_explains_is_an_error() -> None:
    by, judged = judge(found=captured(WIDER))
    assert judged.stop is None
    assert "unrecorded command: column 2" in str(by.unexplained(judged))


def test_description_of_an_earlier_version_is_compared_by_what_it_has() -> None:
    newer = TABLE.model_copy(update={"service": "ddl 1", "array_domains": (1,)})
    by, judged = judge(found=captured(newer))
    assert by.unexplained(judged) is None
    by, judged = judge(known=captured(newer), found=captured(newer.model_copy(update={"array_domains": ()})))
    assert "type of column 1 is an array, wanted a domain over an array" in str(by.unexplained(judged))


def test_table_that_is_gone_without_a_row_is_an_error() -> None:
    by, judged = judge(found=captured(None))
    assert "it is gone" in str(by.unexplained(judged))


def test_change_that_a_row_explains_is_none() -> None:
    harmless = TABLE.model_copy(update={"relations": {"10": HEAP.model_copy(update={"altered": "b"})}})
    by, judged = judge(ddl(0, 100, harmless), found=captured(harmless))
    assert judged.captured == captured(harmless)
    assert by.unexplained(judged) is None


@pytest.mark.parametrize("row", [{"publication": None}, {"schema_name": 5}, {"table_name": None}])
def test_row_that_is_none_of_a_service_table_is_a_bad_event(row: dict[str, Any]) -> None:
    with pytest.raises(BadEvent):
        judge(ddl(0, 100, TABLE, **row))


@pytest.mark.parametrize("text", ['{"name": 1}', "the placeholder of an unchanged value"])
def test_description_that_is_none_is_a_bad_event(text: str) -> None:
    record = ddl(0, 100, TABLE)
    assert record.value is not None
    record.value["after"]["description"] = text
    with pytest.raises(BadEvent, match="description") as raised:
        judge(record)
    assert "cdc-views reset" in str(raised.value.hint)
