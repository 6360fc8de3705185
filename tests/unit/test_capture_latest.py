"""The last event of each key gives the rows that the fold gives, and what is odd is left to the fold."""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import pytest

from cdc_views.base.names import TableName
from cdc_views.capture import latest as latest_module
from cdc_views.capture.fold import Folded
from cdc_views.capture.latest import Latest
from cdc_views.capture.unchanged import forms_of
from cdc_views.errors import BadEvent, UnresolvedToast, UnsupportedType, WrongReplicaIdentity
from cdc_views.source.catalog import ReplicaIdentity, SourceColumn, SourceTable
from tests.unit.capture_records import PLACEHOLDER
from tests.unit.log_records import FakeMessage

# Of each column its type and values as Debezium writes them; the first two are the key.
NUMERIC = ((12 << 16) | 2) + 4
COLUMNS: dict[str, tuple[tuple[str, int, str | None], list[Any]]] = {
    "id": (("int8", -1, None), [1, -2, 2**62]),
    "part": (("text", -1, None), ["", "a", 'q"uo,te', '","op":"d"', ',"source":{', "\u2603"]),
    "n": (("int4", -1, None), [None, 0, -(2**31)]),
    "source": (("text", -1, None), [None, "x", '{"before":null,"after":', ',"after":{', "\x7f\n"]),
    "after": (("point", -1, None), [None, {"x": 1.5, "y": -2.0, "wkb": "AQ==", "srid": None}]),
    "op": (("float8", -1, None), [None, 1, 0.1, -1e300]),
    "price": (("numeric", NUMERIC, None), [None, "0.00", "-12.34", "9999999999.99"]),
    "total": (("numeric", -1, None), [None, "1E-10", "12.500", "NAN"]),
    "day": (("date", -1, None), [None, 0, -719162, 2932896]),
    "at": (("timestamp", -1, None), [None, 0, -62135596800000000]),
    "moment": (("timestamptz", -1, None), [None, "2026-01-02T03:04:05.123456Z", "0001-01-01T00:00:00Z"]),
    "tags": (("_text", -1, "text"), [None, [], ["a", None, '"source":{']]),
    "raw": (("bytea", -1, None), [None, "", "AAEC"]),
    "yes": (("bool", -1, None), [None, True, False]),
}
TOASTABLE = {"source", "tags", "raw"}
SOURCE = {"version": "3", "db": 'a"b', "sequence": '["1","2"]', "ts_ms": 1, "schema": "public", "table": "t"}


def table(identity: ReplicaIdentity = "full") -> SourceTable:
    columns = tuple(
        SourceColumn(name, number, *kind, name in ("id", "part"), name in TOASTABLE)
        for number, (name, (kind, _)) in enumerate(COLUMNS.items(), 1)
    )
    return SourceTable(TableName("public", "t"), 1, columns, ("id", "part"), False, identity, PLACEHOLDER)


def event(offset: int, op: str | None, row: dict[str, Any], before: dict[str, Any] | None = None) -> FakeMessage:
    """A message as the connector writes it; `op` None is a tombstone."""
    key = {name: row[name] for name in ("id", "part")}
    after = None if op == "d" else row
    value = {"before": before, "after": after, "source": SOURCE, "transaction": None, "op": op, "ts_ms": 2}
    return FakeMessage(None if op is None else value, key, offset=offset)


def random_row(random: Random) -> dict[str, Any]:
    return {name: random.choice(values) for name, (_, values) in COLUMNS.items()}


def random_history(seed: int, length: int = 60) -> list[FakeMessage]:
    random = Random(seed)
    history, rows = [], dict[tuple[int, str], dict[str, Any]]()
    for offset in range(length):
        row = random_row(random)
        before = rows.pop((row["id"], row["part"]), None)
        op = random.choice("ud") if before else random.choice("cr")
        if op != "d":
            rows[row["id"], row["part"]] = row
        if op == "d" and random.random() < 0.5:
            op = None
        history.append(event(offset, op, row, before))
    return history


def latest_of(history: list[FakeMessage], of: SourceTable | None = None) -> Folded:
    latest = Latest(of or table())
    for start in range(0, len(history), 7):
        latest.add(history[start : start + 7])
    return latest.finish()


def by_key(folded: Folded) -> list[list[dict[str, Any]]]:
    assert folded.upserts.schema.names == list(COLUMNS)
    return [sorted(rows.to_pylist(), key=lambda row: (row["id"], row["part"])) for rows in
            (folded.upserts, folded.deletes)]  # fmt: skip


@pytest.mark.parametrize("named", ["after", "behind"])
@pytest.mark.parametrize("seed", range(30))
def test_latest_of_any_history_is_what_the_fold_gives(seed: int, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed = {named if name == "after" else name: column for name, column in COLUMNS.items()}
    monkeypatch.setattr(sys.modules[__name__], "COLUMNS", renamed)
    history = random_history(seed)
    with monkeypatch.context() as patched:
        patched.setattr(latest_module, "Fold", None)  # nothing of it is left to the fold
        found = latest_of(history)

    def odd(*arguments: object) -> Folded:
        raise latest_module._OddEvent

    monkeypatch.setattr(Latest, "_decoded", odd)
    assert by_key(found) == by_key(latest_of(history))
    assert found.upserts.schema == latest_of(history).upserts.schema


def test_latest_of_nothing_is_empty() -> None:
    assert by_key(latest_of([])) == [[], []]


def test_latest_with_debeziums_own_placeholder_as_a_text_keeps_it() -> None:
    row = random_row(Random(1)) | {"source": "__debezium_unavailable_value"}
    assert latest_of([event(0, "c", row)]).upserts["source"].to_pylist() == [row["source"]]


@pytest.mark.parametrize(
    ("column", "value"), [("source", PLACEHOLDER), ("raw", forms_of(PLACEHOLDER).base64), ("tags", [PLACEHOLDER])]
)
@pytest.mark.parametrize("has_old_row", [False, True])
def test_latest_with_a_placeholder_under_full_identity_names_place_and_column(
    column: str, value: Any, has_old_row: bool
) -> None:
    row = random_row(Random(1))
    update = event(0, "u", row | {column: value}, row if has_old_row else None)
    with pytest.raises(WrongReplicaIdentity, match=f'offset 0: .*column "{column}"') as stop:
        latest_of([update])
    assert (stop.value.table, stop.value.column) == ("public.t", column)


def test_latest_with_an_update_without_the_old_row_under_full_identity_stops() -> None:
    with pytest.raises(WrongReplicaIdentity, match="does not hold the whole row"):
        latest_of([event(0, "u", random_row(Random(1)))])


def test_latest_with_the_placeholder_in_an_insert_stops() -> None:
    with pytest.raises(UnresolvedToast, match=r'offset 0: .*column "source" would hold'):
        latest_of([event(0, "c", random_row(Random(1)) | {"source": f"x{PLACEHOLDER}"})])


def test_latest_with_a_value_left_out_names_the_column() -> None:
    row = random_row(Random(1)) | {"source": PLACEHOLDER, "raw": "AAEC", "tags": ["a"]}
    with pytest.raises(UnresolvedToast, match='column "source"'):
        latest_of([event(0, "u", row)], table("default"))


def wrapped(value: dict[str, Any]) -> None:
    """As a converter writes it that is to write the schema too."""
    payload = dict(value)
    value.clear()
    value.update(schema=None, payload=payload)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (wrapped, "not an event of Debezium"),
        (lambda value: value["after"].pop("n"), 'no column "n"'),
        (lambda value: value["after"].update(m=1), 'unknown column "m"'),
        (lambda value: value.update(op="x"), "wanted one of c, u, d, r"),
        (lambda value: value.update(after=None), "without the row after it"),
        (lambda value: value.update(after=[]), "without the row after it"),
        (lambda value: value["after"].update(n="1"), "JSON of another shape"),
        (lambda value: value.pop("source"), "not an event of Debezium"),
    ],
)
def test_latest_with_an_odd_event_says_what_the_fold_says(change: Any, problem: str) -> None:
    row = random_row(Random(1))
    value = {"before": None, "after": row, "source": dict(SOURCE), "op": "c"}
    change(value)
    with pytest.raises(BadEvent, match=problem):
        latest_of([FakeMessage(value, {"id": row["id"], "part": row["part"]})])


def test_latest_does_not_look_where_in_the_history_an_event_stands() -> None:
    row = random_row(Random(1))
    value = {"before": None, "after": row, "source": {"db": "b"}, "op": "c"}
    assert latest_of([FakeMessage(value, {"id": row["id"], "part": row["part"]})]).upserts.num_rows == 1


@pytest.mark.parametrize("key", [{"id": None, "part": "a"}, {"id": 1}, {"id": 1, "part": PLACEHOLDER}])
def test_latest_with_a_key_that_is_none_is_a_bad_event(key: dict[str, Any]) -> None:
    with pytest.raises(BadEvent, match="a key"):
        latest_of([FakeMessage(None, key)])


def test_latest_with_a_value_that_delta_cannot_hold_names_it() -> None:
    row = random_row(Random(1)) | {"price": "NAN"}
    with pytest.raises(UnsupportedType, match='column "price"'):
        latest_of([event(0, "c", row)])
