"""Which event of a fold is bad, and what waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cdc_views.capture.sift import FOLLOWS, MOVED, Known, Sifted, sift
from cdc_views.errors import BadEvent, UnresolvedToast
from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.kafka.record import Record
from tests.unit.capture_records import PLACEHOLDER, Topic, row, table

STORED: dict[tuple[Any, ...], Mapping[str, Any]] = {(1,): row(1, 1, "stored")}


def sifted(records: list[Record], known: Known | None = None) -> Sifted:
    return sift(table(), records, lambda fold: STORED, known)


def upserts(found: Sifted) -> list[dict[str, Any]]:
    return sorted(found.folded.upserts.to_pylist(), key=lambda each: int(each["id"]))


def parked(found: Sifted) -> list[tuple[int, bool]]:
    """Offset, and whether the event itself is bad."""
    return [(each.log_offset.offset, each.error is not None) for each in found.parked]


def test_sift_parks_from_the_first_event_that_no_good_one_follows() -> None:
    topic = Topic()
    values = ["x", 5, "x", {}, 7, "x", []]
    found = sifted([topic.write("u", 1, row(1, value, "b")) for value in values])  # type: ignore[arg-type]
    assert upserts(found) == [row(1, 7, "b")]
    assert parked(found) == [(5, True), (6, False)]
    assert found.parked[1].reason == FOLLOWS


def test_sift_names_the_place_once_and_keeps_the_error() -> None:
    found = sifted([Topic().write("u", 1, row(1, 2, PLACEHOLDER) | {"n": True})])
    assert str(found.parked[0].error).count("offset 0") == 1
    assert isinstance(found.parked[0].error, BadEvent)


def test_sift_value_that_is_nowhere_parks_from_where_it_was_left_out() -> None:
    topic = Topic()
    records = [topic.write("c", 5, row(5, 1, "x")), topic.write("d", 5)]
    records += [topic.write("u", 5, row(5, n, PLACEHOLDER)) for n in (2, 3)]
    found = sifted(records)
    assert parked(found) == [(2, True), (3, False)]
    assert isinstance(found.parked[0].error, UnresolvedToast)
    assert found.folded.deletes.column("id").to_pylist() == [5]


@pytest.mark.parametrize("is_old_first", [True, False])
def test_sift_row_that_moved_from_a_parked_key_waits(is_old_first: bool) -> None:
    topic = Topic()
    bad = topic.write("u", 1, row(1, 2, "x") | {"odd": 1})
    delete, tombstone, create = topic.change_of_key(1, 2, row(2, 2, PLACEHOLDER), partition=1)
    later = topic.write("u", 2, row(2, 3, PLACEHOLDER), partition=1)
    old, new = [bad, delete, tombstone], [create, later]
    found = sifted(old + new if is_old_first else new + old)
    assert (upserts(found), found.folded.deletes.num_rows) == ([], 0)
    assert sorted(each.reason for each in found.parked if each.log_offset.partition == 1) == [MOVED, FOLLOWS]


def test_sift_row_that_moved_before_its_old_key_was_parked_goes_on() -> None:
    topic = Topic()
    records = topic.change_of_key(1, 2, row(2, 2, PLACEHOLDER), partition=1)
    records.append(topic.write("x", 1, row(1, 3, "x")))
    found = sifted(records)
    assert (upserts(found), parked(found)) == ([row(2, 2, "stored")], [(2, True)])


def test_sift_event_that_is_left_out_makes_unchanged_values_unknown_until_a_whole_row() -> None:
    topic = Topic()
    left_out = topic.write("u", 1, row(1, 2, "lost"))
    partial, whole = topic.write("u", 1, row(1, 3, PLACEHOLDER)), topic.write("u", 1, row(1, 4, "whole"))
    known = Known(skipped={LogOffset("app.public.t", 0, 0)})
    assert parked(sifted([left_out, partial], known)) == [(1, True)]
    found = sifted([left_out, partial, whole], known)
    assert (upserts(found), parked(found), found.recovered) == ([row(1, 4, "whole")], [], {(0, (1,))})


def test_sift_key_that_was_lost_in_an_earlier_epoch_does_not_take_the_mirrors_value() -> None:
    update = Topic().write("u", 1, row(1, 3, PLACEHOLDER))
    assert upserts(sifted([update])) == [row(1, 3, "stored")]
    assert parked(sifted([update], Known(lost={(0, (1,))}))) == [(0, True)]


def test_sift_keys_that_are_none_are_not_taken_for_a_row_of_the_table() -> None:
    topic = Topic()
    records = [replace(topic.write("d", 1), key={"id": key}) for key in (None, True, 1.0)]
    assert sifted(records).folded.deletes.num_rows == 0
    assert [each.error is not None for each in sifted(records).parked] == [True, False, False]
