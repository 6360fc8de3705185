"""The fold of one table's changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import pytest

from cdc_views.capture.fold import Fold
from cdc_views.capture.unchanged import forms_of
from cdc_views.errors import BadEvent, UnresolvedToast, UnsupportedType, WrongReplicaIdentity
from cdc_views.log.kafka.record import Record
from cdc_views.source.catalog import ReplicaIdentity, SourceColumn, SourceTable
from tests.unit.capture_records import PLACEHOLDER, Topic, row, table

Rows = dict[int, dict[str, Any]]


def folded(records: Iterable[Record], stored: Mapping[int, Mapping[str, Any]] | None = None,
           source: SourceTable | None = None) -> tuple[Rows, set[int], Fold]:  # fmt: skip
    """The upserts by key, the deleted keys, and the fold."""
    fold = Fold(source or table())
    for record in records:
        fold.add(record)
    wanted = fold.lookups()
    result = fold.finish({(key,): values for key, values in (stored or {}).items() if (key,) in wanted})
    upserts = {values["id"]: values for values in result.upserts.to_pylist()}
    assert len(upserts) == result.upserts.num_rows
    return upserts, set(result.deletes.column("id").to_pylist()), fold


def test_fold_last_change_of_a_key_wins() -> None:
    topic = Topic()
    records = [topic.write("c", 1, row(1, n, "x")) for n in range(5)]
    assert folded(records)[:2] == ({1: row(1, 4, "x")}, set())


def test_fold_nothing_gives_empty_tables() -> None:
    upserts, deletes, fold = folded([])
    assert (upserts, deletes, fold.records, fold.events) == ({}, set(), 0, 0)


def test_fold_delete_and_its_tombstone_is_one_delete() -> None:
    topic = Topic()
    upserts, deletes, fold = folded([topic.write("c", 1, row(1, 1, "x")), topic.write("d", 1), topic.write(None, 1)])
    assert (upserts, deletes, fold.events) == ({}, {1}, 2)


def test_fold_tombstone_alone_is_a_delete_at_its_place() -> None:
    topic = Topic()
    upserts, deletes, _ = folded([topic.write(None, 1), topic.write("c", 1, row(1, 1, "x")), topic.write(None, 2)])
    assert (upserts, deletes) == ({1: row(1, 1, "x")}, {2})


def test_fold_delete_and_reinsert_keeps_the_new_row() -> None:
    topic = Topic()
    records = [topic.write("d", 1), topic.write(None, 1), topic.write("c", 1, row(1, 2, None))]
    assert folded(records)[:2] == ({1: row(1, 2, None)}, set())


def test_fold_snapshot_rows_are_not_events() -> None:
    topic = Topic()
    upserts, _, fold = folded([topic.write("r", 1, row(1, 1, "x")), topic.write("u", 1, row(1, 2, PLACEHOLDER))])
    assert (upserts, fold.snapshot_rows, fold.events) == ({1: row(1, 2, "x")}, 1, 1)


def test_fold_unchanged_text_comes_from_the_mirror() -> None:
    upserts, _, fold = folded([Topic().write("u", 1, row(1, 2, PLACEHOLDER))], {1: row(1, 1, "long")})
    assert fold.lookups() == {(1,)}
    assert upserts == {1: row(1, 2, "long")}


def test_fold_unchanged_text_over_a_newer_one_needs_no_mirror() -> None:
    topic = Topic()
    upserts, _, fold = folded([topic.write("u", 1, row(1, 2, "new")), topic.write("u", 1, row(1, 3, PLACEHOLDER))])
    assert fold.lookups() == set()
    assert upserts == {1: row(1, 3, "new")}


def test_fold_unchanged_text_overwritten_later_needs_no_mirror() -> None:
    topic = Topic()
    upserts, _, fold = folded([topic.write("u", 1, row(1, 2, PLACEHOLDER)), topic.write("u", 1, row(1, 3, "new"))])
    assert (upserts, fold.lookups()) == ({1: row(1, 3, "new")}, set())


def test_fold_unchanged_text_of_a_deleted_row_needs_no_mirror() -> None:
    topic = Topic()
    _, deletes, fold = folded([topic.write("u", 1, row(1, 2, PLACEHOLDER)), topic.write("d", 1)])
    assert (deletes, fold.lookups()) == ({1}, set())


@pytest.mark.parametrize("stored", [{}, {1: row(1, 1, None)}])
def test_fold_unchanged_text_that_is_nowhere_stops(stored: Rows) -> None:
    with pytest.raises(UnresolvedToast, match=r'table "public\.t": column "body"'):
        folded([Topic().write("u", 1, row(1, 2, PLACEHOLDER))], stored)


def test_fold_unchanged_text_after_a_delete_stops() -> None:
    topic = Topic()
    with pytest.raises(UnresolvedToast):
        folded([topic.write("d", 1), topic.write("u", 1, row(1, 2, PLACEHOLDER))], {1: row(1, 1, "old")})


@pytest.mark.parametrize("identity", ["default", "full"])
def test_fold_text_that_is_debeziums_own_placeholder_is_a_text(identity: ReplicaIdentity) -> None:
    values = row(1, 2, "__debezium_unavailable_value")
    record = Topic().write("u", 1, values, before=row(1, 1, "x"))
    assert folded([record], source=table(identity))[0] == {1: values}


def test_fold_placeholder_that_is_no_unchanged_value_is_never_stored() -> None:
    source = table("default", SourceColumn("code", 4, "varchar", -1, None, False, False))
    for record in (
        Topic().write("c", 1, row(1, 2, PLACEHOLDER) | {"code": None}),
        Topic().write("r", 1, row(1, 2, f"a{PLACEHOLDER}b") | {"code": None}),
        Topic().write("u", 1, row(1, 2, "x") | {"code": PLACEHOLDER}),
    ):
        with pytest.raises(UnresolvedToast, match="would hold the placeholder"):
            folded([record], source=source)


FULL_EVENTS = {
    "update": [Topic().write("u", 1, row(1, 2, PLACEHOLDER))],
    "update of a column of the index": [Topic().write("u", 1, row(1, 2, PLACEHOLDER), before=row(1, 1, None))],
    "change of key": Topic().change_of_key(1, 2, row(2, 1, PLACEHOLDER)),
    "overwritten later": [
        Topic().write("u", 1, row(1, 2, PLACEHOLDER), before=row(1, 1, None)), Topic().write("u", 1, row(1, 2, "x")),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", FULL_EVENTS)
def test_add_placeholder_under_full_identity_stops_by_name(name: str) -> None:
    with pytest.raises(WrongReplicaIdentity, match=r'"public\.t": column "body".*wanted REPLICA IDENTITY FULL') as stop:
        folded(FULL_EVENTS[name], {1: row(1, 1, "long")}, table("full"))
    assert (stop.value.table, stop.value.column) == ("public.t", "body")


def test_add_update_without_the_old_row_under_full_identity_stops() -> None:
    with pytest.raises(WrongReplicaIdentity, match="an update's event does not hold the whole row") as stop:
        folded([Topic().write("u", 1, row(1, 2, "x"))], source=table("full"))
    assert (stop.value.table, stop.value.column) == ("public.t", None)


@pytest.mark.parametrize("arrival", ["old first", "new first"])
@pytest.mark.parametrize("known_in_epoch", [False, True])
def test_fold_change_of_key_takes_the_text_of_the_old_key(arrival: str, known_in_epoch: bool) -> None:
    topic = Topic()
    earlier = [topic.write("u", 1, row(1, 5, "new"))] if known_in_epoch else []
    delete, tombstone, create = topic.change_of_key(1, 2, row(2, 5, PLACEHOLDER), partition=1)
    old, new = [*earlier, delete, tombstone], [create]
    upserts, deletes, fold = folded(old + new if arrival == "old first" else new + old, {1: row(1, 5, "stored")})
    assert upserts == {2: row(2, 5, "new" if known_in_epoch else "stored")}
    assert (deletes, fold.events) == ({1}, 1 + known_in_epoch)


def test_fold_chain_of_key_changes_reaches_the_first_row() -> None:
    topic = Topic()
    first = topic.change_of_key(1, 2, row(2, 1, PLACEHOLDER), partition=1)
    order = topic.order()
    second = [
        topic.write("d", 2, partition=1, order=order, newkey=3),
        topic.write(None, 2, partition=1, order=order, newkey=3),
        topic.write("c", 3, row(3, 1, PLACEHOLDER), partition=2, order=order, oldkey=2),
    ]
    update = topic.write("u", 3, row(3, 9, PLACEHOLDER), partition=2)
    records = [second[2], update, first[2], second[0], second[1], first[0], first[1]]
    upserts, deletes, fold = folded(records, {1: row(1, 1, "stored")})
    assert fold.lookups() == {(1,)}
    assert (upserts, deletes, fold.events) == ({3: row(3, 9, "stored")}, {1, 2}, 3)


def test_fold_change_of_key_takes_the_row_before_its_own_delete() -> None:
    topic = Topic()
    records = topic.change_of_key(1, 2, row(2, 1, PLACEHOLDER), partition=1)
    records.append(topic.write("c", 1, row(1, 7, "another")))
    records += topic.change_of_key(1, 3, row(3, 7, PLACEHOLDER), partition=1)
    upserts, _, _ = folded(sorted(records, key=lambda record: -record.partition), {1: row(1, 1, "stored")})
    assert upserts == {2: row(2, 1, "stored"), 3: row(3, 7, "another")}


def test_fold_swap_of_two_keys_keeps_both_texts() -> None:
    topic = Topic()
    records = topic.change_of_key(1, 3, row(3, 1, PLACEHOLDER))
    records += topic.change_of_key(2, 1, row(1, 2, PLACEHOLDER))
    records += topic.change_of_key(3, 2, row(2, 1, PLACEHOLDER))
    upserts, deletes, _ = folded(records, {1: row(1, 1, "one"), 2: row(2, 2, "two")})
    assert (upserts, deletes) == ({1: row(1, 2, "two"), 2: row(2, 1, "one")}, {3})


def test_fold_change_of_key_back_to_itself_needs_its_own_row() -> None:
    topic = Topic()
    records = topic.change_of_key(1, 2, row(2, 1, PLACEHOLDER))
    records += topic.change_of_key(2, 1, row(1, 1, PLACEHOLDER))
    assert folded(records, {1: row(1, 1, "one")})[:2] == ({1: row(1, 1, "one")}, {2})


def test_fold_change_of_key_without_its_delete_takes_the_mirrors_row() -> None:
    create = Topic().write("c", 2, row(2, 1, PLACEHOLDER), oldkey=1)
    assert folded([create], {1: row(1, 1, "stored")})[0] == {2: row(2, 1, "stored")}


def test_fold_change_of_key_without_its_delete_but_later_rows_of_the_old_key_stops() -> None:
    topic = Topic()
    records = [topic.write("c", 2, row(2, 1, PLACEHOLDER), oldkey=1), topic.write("c", 1, row(1, 1, "later"))]
    with pytest.raises(UnresolvedToast):
        folded(records, {1: row(1, 1, "stored")})


def test_fold_circle_of_references_stops() -> None:
    topic = Topic()
    order = topic.order()
    records = [
        topic.write("c", 1, row(1, 1, PLACEHOLDER), order=order, oldkey=2),
        topic.write("d", 1, order=order, newkey=2),
        topic.write("c", 2, row(2, 1, PLACEHOLDER), order=order, oldkey=1),
        topic.write("d", 2, order=order, newkey=1),
        topic.write("c", 3, row(3, 1, PLACEHOLDER), order=order, oldkey=1),
    ]
    with pytest.raises(UnresolvedToast):
        folded(records)


@pytest.mark.parametrize(
    ("type_name", "element", "raw", "stored"),
    [
        ("_date", "date", list(PLACEHOLDER.encode()), [date(2026, 1, 2)]),
        ("jsonb", None, PLACEHOLDER, "{}"),
        ("bytea", None, forms_of(PLACEHOLDER).base64, b"long"),
        ("numeric", None, PLACEHOLDER, "1.5"),
        ("_text", "text", [PLACEHOLDER], ["long"]),
        ("_int4", "int4", list(PLACEHOLDER.encode()), [1]),
        ("_int8", "int8", list(PLACEHOLDER.encode()), [1]),
        ("_uuid", "uuid", forms_of(PLACEHOLDER).uuids, ["00000000-0000-0000-0000-000000000001"]),
        ("hstore", None, f'{{"{PLACEHOLDER}":"{PLACEHOLDER}"}}', "{}"),
    ],
)
def test_fold_unchanged_value_of_each_type_comes_from_the_mirror(
    type_name: str, element: str | None, raw: Any, stored: Any
) -> None:
    source = table("default", SourceColumn("x", 4, type_name, -1, element, False, True))
    update = Topic().write("u", 1, row(1, 2, "x") | {"x": raw})
    upserts, _, _ = folded([update], {1: row(1, 1, "x") | {"x": stored}}, source)
    assert upserts[1]["x"] == stored


def test_add_null_of_a_type_without_a_placeholder_stops_unless_the_old_row_is_there() -> None:
    source = table("default", SourceColumn("x", 4, "_int2", -1, "int2", False, True))
    topic = Topic()
    update = topic.write("u", 1, row(1, 2, "x") | {"x": [1]})
    assert folded([update], {1: row(1, 1, "x")}, source)[0][1]["x"] == [1]
    with pytest.raises(UnresolvedToast, match='column "x"'):
        folded([topic.write("u", 1, row(1, 2, "x") | {"x": None})], source=source)
    full = table("full", SourceColumn("x", 4, "_int2", -1, "int2", False, True))
    update = topic.write("u", 1, row(1, 2, "x") | {"x": None}, before=row(1, 1, "x"))
    assert folded([update], source=full)[0][1]["x"] is None


def test_fold_key_of_lookups_is_decoded() -> None:
    columns = (
        SourceColumn("day", 1, "date", -1, None, True, False),
        SourceColumn("body", 2, "text", -1, None, False, True),
    )
    source = SourceTable(table().name, 1, columns, ("day",), False, "default", PLACEHOLDER)
    fold = Fold(source)
    record = Topic().write("u", 1, {"day": 0, "body": PLACEHOLDER})
    fold.add(Record(record.topic, 0, 0, 0, {"day": 0}, record.value, {}, record.order))
    (key,) = fold.lookups()
    stored = {key: {"day": key[0], "body": "long"}}
    assert fold.finish(stored).upserts.to_pylist() == [stored[key]]


def test_finish_value_without_exact_form_names_the_column() -> None:
    source = table("default", SourceColumn("f", 4, "float8", -1, None, False, False))
    with pytest.raises(UnsupportedType, match='column "f"'):
        folded([Topic().write("c", 1, row(1, 1, "x") | {"f": "NaN"})], source=source)


def test_finish_value_without_exact_form_that_was_overwritten_is_no_matter() -> None:
    source = table("default", SourceColumn("f", 4, "float8", -1, None, False, False))
    topic = Topic()
    records = [topic.write("c", 1, row(1, 1, "x") | {"f": f}) for f in ("NaN", 1.5)]
    assert folded(records, source=source)[0][1]["f"] == 1.5


def test_add_unknown_column_stops_at_the_record() -> None:
    with pytest.raises(BadEvent, match='offset 0: unknown column "x"'):
        folded([Topic().write("c", 1, row(1, 1, "x") | {"x": 1})])
