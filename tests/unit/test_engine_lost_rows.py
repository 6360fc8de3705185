"""What is made of the rows beside the last change before a start; the rows themselves are given here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import orjson
import pyarrow as pa
import pytest

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.engine.input import lost_rows
from cdc_views.engine.input.lost_rows import LostRows
from cdc_views.engine.input.quarantine_step import QuarantineCounts
from cdc_views.engine.intent import CutAgain
from cdc_views.errors import RowsLost
from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.kafka.record import KeptRecord, Record, parse_record
from cdc_views.source.catalog import SourceColumn, SourceTable
from cdc_views.source.reading.pages import SourceRow
from tests.unit.capture_records import PLACEHOLDER

LIVE = QuarantineCounts({}, {})
TRANSACTION, SAVEPOINT = 700, 701
AT_THE_QUESTION = Lsn(1000)


def table_of(name: str) -> SourceTable:
    """A table of one column, its key."""
    column = SourceColumn("id", 1, "int4", -1, None, not_null=True, toastable=False)
    return SourceTable(TableName("public", name), 1, (column,), ("id",), False, "default", PLACEHOLDER)


def change(table: str, op: str, offset: int, new_key: int | None = None) -> Record:
    """A change of the row 1."""
    source = {"sequence": '["90","95"]', "txId": TRANSACTION}
    value = {"op": op, "after": None if op == "d" else {"id": 1}, "source": source}
    headers = None if new_key is None else [("__debezium.newkey", orjson.dumps({"id": new_key}))]
    return parse_record(KeptRecord(LogOffset(table, 0, offset), 0, b'{"id":1}', orjson.dumps(value), headers))


def cut_to(position: int) -> Cut:
    """A cut that has everything before a position."""
    return Cut(Lsn(position - 10), Lsn(position), datetime.now(UTC), {}, {})


@dataclass
class World:
    """A log with these changes before starts, a source with these rows beside them, and mirrors."""

    changes: list[Record]
    beside: Mapping[str, list[SourceRow]]
    mirror: Mapping[str, set[int]]
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def changes_before_starts(self, cut: Cut) -> list[Record]:
        """All of them, whatever the cut is."""
        return self.changes

    def table_of(self, topic: str) -> TableName:
        """A topic is called as its table."""
        return TableName("public", topic)

    def rows_beside(self, _: object, table: SourceTable, key: list[Any], transaction: int) -> Iterator[SourceRow]:
        """Those of the table."""
        assert transaction == TRANSACTION
        self.asked.append((table.name.table, key[0]))
        yield from self.beside[table.name.table]

    def lookup(self, spec: str, version: int, keys: pa.Table, wanted: object) -> pa.Table:
        """The keys that a mirror has; `spec` is its name here."""
        assert version == 8
        known = [row for row in keys.to_pylist() if row["id"] in self.mirror[spec]]
        return pa.Table.from_pylist(known, schema=keys.schema)

    @property
    def tables(self) -> Any:
        """What `Tables` tells."""
        names = {f"public.{name}": name for name in self.beside}
        return SimpleNamespace(
            sources={full: table_of(name) for full, name in names.items()}, specs=names, warehouse=self,
            version=lambda name: 7,
        )  # fmt: skip

    def is_sure(self, lost: LostRows, position: int = 100, counts: QuarantineCounts = LIVE) -> bool:
        """Ask about a cut that has committed version 8 of every mirror."""
        commits = dict.fromkeys(self.tables.sources, 8)
        try:
            lost.require_none(self, self.tables, cut_to(position), commits, counts)  # type: ignore[arg-type]  # the log, too, is us
        except CutAgain:
            return False
        return True


def rows(transaction: int, *keys: int) -> list[SourceRow]:
    """Rows of the source."""
    return [SourceRow(transaction, (str(key),)) for key in keys]


@pytest.fixture
def lost() -> LostRows:
    """With nothing seen yet."""
    return LostRows(None)  # type: ignore[arg-type]  # the rows are given


def given(monkeypatch: pytest.MonkeyPatch, world: World) -> World:
    """Let the source be this world's."""
    monkeypatch.setattr(lost_rows, "rows_beside", world.rows_beside)
    monkeypatch.setattr(lost_rows, "wal_end", lambda source: AT_THE_QUESTION)
    return world


def test_rows_that_the_mirror_has_are_not_lost(monkeypatch: pytest.MonkeyPatch, lost: LostRows) -> None:
    world = given(monkeypatch, World([change("a", "c", 3)], {"a": rows(TRANSACTION, 1, 2)}, {"a": {1, 2}}))
    assert world.is_sure(lost)
    assert world.asked == [("a", 1)]


def test_a_change_that_kept_its_key_is_not_asked_about(monkeypatch: pytest.MonkeyPatch, lost: LostRows) -> None:
    world = given(monkeypatch, World([change("a", "u", 3), change("a", "d", 4)], {"a": []}, {"a": set()}))
    assert world.is_sure(lost)
    assert world.asked == []


def test_the_new_key_of_a_delete_is_asked_about(monkeypatch: pytest.MonkeyPatch, lost: LostRows) -> None:
    world = given(monkeypatch, World([change("a", "d", 3, new_key=5)], {"a": rows(TRANSACTION, 5)}, {"a": set()}))
    with pytest.raises(RowsLost, match='topic "a" partition 0 offset 3'):
        world.is_sure(lost)
    assert world.asked == [("a", 5)]


def test_all_tables_that_have_lost_rows_are_named_together(monkeypatch: pytest.MonkeyPatch, lost: LostRows) -> None:
    beside = {"a": rows(TRANSACTION, 1, 2, 3), "b": rows(TRANSACTION, 1, 2)}
    world = given(monkeypatch, World([change("b", "c", 3), change("a", "c", 9)], beside, {"a": {1}, "b": {1}}))
    with pytest.raises(RowsLost, match=r'"public.b": 1 rows .*"public.a": 2 rows') as raised:
        world.is_sure(lost)
    assert raised.value.hint is not None
    assert "rebuild public.a public.b --from snapshot --swap" in raised.value.hint


@pytest.mark.parametrize("counts", [QuarantineCounts({"public.a": 1}, {}), QuarantineCounts({}, {"public.a": 1})])
def test_a_mirror_that_lacks_rows_anyway_is_not_asked_about(
    monkeypatch: pytest.MonkeyPatch, lost: LostRows, counts: QuarantineCounts
) -> None:
    world = given(monkeypatch, World([change("a", "c", 3)], {"a": rows(TRANSACTION, 1, 2)}, {"a": {1}}))
    assert world.is_sure(lost, counts=counts)
    assert world.asked == []


def test_rows_of_a_savepoint_are_lost_if_a_later_cut_has_them_not(
    monkeypatch: pytest.MonkeyPatch, lost: LostRows
) -> None:
    world = given(monkeypatch, World([change("a", "c", 3)], {"a": rows(SAVEPOINT, 1, 2)}, {"a": {1}}))
    assert not world.is_sure(lost)
    with pytest.raises(RowsLost, match="1 rows"):
        world.is_sure(lost, position=AT_THE_QUESTION)


def test_rows_of_a_later_transaction_are_in_a_later_cut(monkeypatch: pytest.MonkeyPatch, lost: LostRows) -> None:
    mirror = {1}
    world = given(monkeypatch, World([change("a", "c", 3)], {"a": rows(SAVEPOINT, 1, 2)}, {"a": mirror}))
    assert not world.is_sure(lost)
    mirror.add(2)
    assert world.is_sure(lost, position=AT_THE_QUESTION)


def test_a_cut_that_cannot_come_so_far_is_asked_for_once(monkeypatch: pytest.MonkeyPatch, lost: LostRows) -> None:
    world = given(monkeypatch, World([change("a", "c", 3)], {"a": rows(SAVEPOINT, 1, 2)}, {"a": {1}}))
    assert not world.is_sure(lost)
    assert world.is_sure(lost, position=AT_THE_QUESTION - 1)
