"""Reading the text of Postgres' test_decoding."""

from __future__ import annotations

import pytest

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.errors import ReplayFailed
from cdc_views.testing.postgres.wal import Row, WalChange, WalTransaction, decoded, states_at

ITEMS = TableName("public", "items")


def change(text: str) -> WalChange:
    """The only change of a transaction with this line."""
    [transaction] = decoded([("0/10", "BEGIN 7"), ("0/10", text), ("0/20", "COMMIT 7")])
    [found] = transaction.changes
    return found


@pytest.mark.parametrize(
    ("printed", "row"),
    [
        ("id[integer]:-1", {"id": "-1"}),
        ("price[numeric]:1.50 rate[double precision]:-1e-07 odd[numeric]:NaN",
         {"price": "1.50", "rate": "-1e-07", "odd": "NaN"}),
        ("ok[boolean]:true note[text]:null", {"ok": "true", "note": None}),
        ("note[text]:'null' other[character varying]:'unchanged-toast-datum'",
         {"note": "null", "other": "unchanged-toast-datum"}),
        ("note[text]:'it''s' other[text]:'''' none[text]:''", {"note": "it's", "other": "'", "none": ""}),
        ("note[text]:'a] b[text]:''c'' new-tuple: \n next\\' id[integer]:2",
         {"note": "a] b[text]:'c' new-tuple: \n next\\", "id": "2"}),
        ("bits[bit varying]:B'0101' none[bit varying]:B'' data[bytea]:'\\x00ff'",
         {"bits": "0101", "none": "", "data": "\\x00ff"}),
        ("tags[text[]]:'{a,\"b c\",NULL}' at[timestamp with time zone]:'2026-01-01 00:00:00+00'",
         {"tags": '{a,"b c",NULL}', "at": "2026-01-01 00:00:00+00"}),
        ('"My ""T""[]:x"[integer]:1 "null"[text]:\'n\'', {'My "T"[]:x': "1", "null": "n"}),
        ('mood["My ]: Mood"]:\'sad\' moods[app."Mood[]"[]]:\'{}\'', {"mood": "sad", "moods": "{}"}),
    ],
)  # fmt: skip
def test_row_is_read_as_postgres_prints_it(printed: str, row: Row) -> None:
    assert change(f"table public.items: INSERT: {printed}") == WalChange(ITEMS, "INSERT", None, row)


def test_update_with_an_old_key_has_both_rows() -> None:
    text = "table public.items: UPDATE: old-key: id[integer]:1 new-tuple: id[integer]:2 note[text]:' new-tuple: '"
    assert change(text) == WalChange(ITEMS, "UPDATE", {"id": "1"}, {"id": "2", "note": " new-tuple: "})


def test_update_names_the_columns_that_stayed_out_of_line() -> None:
    text = "table public.items: UPDATE: id[integer]:1 body[text]:unchanged-toast-datum likes[integer]:3"
    assert change(text) == WalChange(ITEMS, "UPDATE", None, {"id": "1", "likes": "3"}, ("body",))


def test_delete_has_only_the_old_row() -> None:
    assert change("table public.items: DELETE: id[integer]:1") == WalChange(ITEMS, "DELETE", {"id": "1"}, None)


@pytest.mark.parametrize("name", ["a: INSERT: b", "a.b", 'with "quotes"', "Größe [x]", "100%"])
def test_name_of_a_table_may_hold_anything(name: str) -> None:
    quoted = name.replace('"', '""')
    found = change(f'table "My Schema"."{quoted}": INSERT: id[integer]:1')
    assert found.table == TableName("My Schema", name)


def test_truncate_is_a_change_of_each_table() -> None:
    line = 'table public.items, "A, b"."c: d": TRUNCATE: restart_seqs cascade'
    [transaction] = decoded([("0/10", "BEGIN"), ("0/10", line), ("0/20", "COMMIT")])
    tables = [ITEMS, TableName("A, b", "c: d")]
    assert transaction.changes == [WalChange(table, "TRUNCATE", together=tuple(tables)) for table in tables]


def test_transaction_has_the_lsn_of_its_commit_and_messages_are_passed_over() -> None:
    rows = [("0/10", "BEGIN 7"), ("0/12", "message: transactional: 1 prefix: p, sz: 5 content:table"),
            ("0/14", "table public.items: DELETE: id[integer]:1"), ("1/20", "COMMIT 7"),
            ("1/30", "BEGIN 8"), ("1/40", "COMMIT 8")]  # fmt: skip
    delete = WalChange(ITEMS, "DELETE", {"id": "1"})
    assert list(decoded(rows)) == [
        WalTransaction(Lsn.parse("1/20"), [delete]), WalTransaction(Lsn.parse("1/40"), [])
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "table public.items: DELETE: (no-tuple-data)",
        "table public.items: UPDATE: old-key: id[integer]:1",
        "table public.items: INSERT: id[integer]:1 secret",
        "table public.items: INSERT: id[integer]:'1 secret",
        "table items: INSERT: id[integer]:1",
        "something secret",
    ],
)
def test_what_cannot_be_read_is_an_error_without_values(text: str) -> None:
    with pytest.raises(ReplayFailed) as found:
        change(text)
    assert "secret" not in str(found.value)


def test_state_at_a_position_has_what_ended_at_or_before_it() -> None:
    def wal(end: int, old: Row | None, new: Row | None, *unchanged: str) -> WalTransaction:
        kind = "DELETE" if new is None else "UPDATE" if old else "INSERT"
        return WalTransaction(Lsn(end), [WalChange(ITEMS, kind, old, new, unchanged)])

    history = [
        wal(10, None, {"id": "1", "body": "long"}),
        wal(20, {"id": "1"}, {"id": "2"}, "body"),
        wal(30, {"id": "2"}, None),
    ]
    replayed = states_at(map(Lsn, (9, 10, 29, 30)), history, {"public.items": ("id",)})
    states = {position: dict(state["public.items"]) for position, state in replayed}
    assert states == {
        9: {}, 10: {("1",): {"id": "1", "body": "long"}}, 29: {("2",): {"id": "2", "body": "long"}}, 30: {}
    }  # fmt: skip
