"""Changes of a table, epoch by epoch: each exactly once, resumable, and a snapshot where they are not known."""

from __future__ import annotations

import itertools
import random
import shutil
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import cdc_views
from cdc_views.config import StoreSettings, UpkeepSettings
from cdc_views.errors import BadToken, UnknownView, ViewFailed
from cdc_views.metrics import Work, counting
from cdc_views.serve.changes import feed
from cdc_views.serve.changes.feed import NOW, EpochChanges, TableSnapshot
from cdc_views.store.control import FOLDER, KnownLog, control_log, known_log
from cdc_views.store.delta_log import entry_file, newest_version
from cdc_views.store.reading import stored_tables
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from cdc_views.store.warehouse import Stamp, TableSpec, Warehouse
from tests.unit.published import BAG, ORDERS, TOTALS, Published

pytestmark = pytest.mark.usefixtures("without_fsync")


@pytest.fixture
def shop(tmp_path: Path) -> Published:
    """One epoch with two orders."""
    shop = Published(tmp_path)
    shop.write(ORDERS, [(1, "a"), (2, "b")])
    shop.publish()
    return shop


def items(shop: Published, since: str | None = None, name: str = "public.orders") -> list[Any]:
    return list(cdc_views.open(shop.root).changes(name, since))


def shown(item: EpochChanges) -> list[tuple[Any, ...]]:
    """The changed rows of an item: kind, old and new values."""
    return sorted(
        ((change.kind, *(row and tuple(row.values()) for row in (change.old, change.new))) for change in item.rows()),
        key=repr,
    )


def test_changes_begin_with_a_snapshot(shop: Published) -> None:
    [first] = items(shop)
    assert isinstance(first, TableSnapshot)
    assert (first.epoch, str(first.position), first.reason) == (1, "0/100", None)
    assert sorted(first.table.arrow()["id"].to_pylist()) == [1, 2]


def test_changes_of_an_epoch_are_its_inserted_updated_and_deleted_rows(shop: Published) -> None:
    [first] = items(shop)
    shop.write(ORDERS, [(2, "B"), (3, "c")], [(1,)])
    shop.publish()
    [item] = items(shop, first.token)
    assert (item.epoch, str(item.position), len(item)) == (2, "0/200", 3)
    assert shown(item) == [("delete", (1, "a"), None), ("insert", None, (3, "c")), ("update", (2, "b"), (2, "B"))]


@pytest.mark.parametrize("is_known", [True, False])
def test_view_that_was_removed_and_came_back_at_its_path_is_a_snapshot(shop: Published, is_known: bool) -> None:
    shop.write(TOTALS, [("ada", 1, Decimal("1.50"))])
    shop.publish()
    reader = cdc_views.open(shop.root)
    token = list(reader.changes("totals"))[-1].token
    version = shop.tables.pop("totals").version
    shop.publish()
    shutil.rmtree(shop.root / TOTALS.path)
    shop.warehouse = Warehouse(shop.root, cast(SparkSession, None), StoreSettings())
    shop.write(TOTALS, [("bob", 2, Decimal(9))])
    shop.publish()
    assert shop.tables["totals"].version == version
    [item] = (reader if is_known else cdc_views.open(shop.root)).changes("totals", token)
    assert isinstance(item, TableSnapshot)
    assert item.reason is not None
    assert "removed and made again" in item.reason
    assert item.table.arrow()["owner"].to_pylist() == ["bob"]


def test_changes_come_epoch_by_epoch_and_once(shop: Published) -> None:
    token = items(shop)[0].token
    for note in ("x", "y", "z"):
        shop.write(ORDERS, [(2, note)])
        shop.publish()
    found = items(shop, token)
    assert [(item.epoch, shown(item)) for item in found] == [
        (2, [("update", (2, "b"), (2, "x"))]),
        (3, [("update", (2, "x"), (2, "y"))]),
        (4, [("update", (2, "y"), (2, "z"))]),
    ]
    for handled, item in enumerate(found, 1):
        assert [later.epoch for later in items(shop, item.token)] == ([3, 4], [4], [4])[handled - 1]
    assert len(items(shop, found[-1].token)[0]) == 0


def test_changes_of_many_epochs_ago_come_epoch_by_epoch(shop: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_log, "_TAIL", 3)  # records that are read one by one, from the end of the log
    token = items(shop)[0].token
    for number in range(3, 8):
        shop.write(ORDERS, [(number, None)])
        shop.publish()
    assert [(item.epoch, shown(item)) for item in items(shop, token)] == [
        (number - 1, [("insert", None, (number, None))]) for number in range(3, 8)
    ]


def test_row_that_is_written_as_it_was_is_not_a_change(shop: Published) -> None:
    token = items(shop)[0].token
    shop.write(ORDERS, [(1, "a"), (2, "B")])
    shop.publish()
    [item] = items(shop, token)
    assert shown(item) == [("update", (2, "b"), (2, "B"))]


def test_last_item_is_of_the_last_epoch(shop: Published) -> None:
    token = items(shop)[0].token
    shop.write(ORDERS, [(3, "c")])
    shop.publish()
    shop.publish(detail={})  # an epoch that only moves the position
    changed, last = items(shop, token)
    assert (changed.epoch, last.epoch, len(last), str(last.position)) == (2, 3, 0, "0/300")
    assert [(item.epoch, len(item)) for item in items(shop, last.token)] == [(3, 0)]


def test_changes_from_now_on(shop: Published) -> None:
    [item] = items(shop, NOW)
    assert (item.epoch, len(item)) == (1, 0)
    shop.write(ORDERS, [], [(1,)])
    shop.publish()
    [item] = items(shop, item.token)
    assert shown(item) == [("delete", (1, "a"), None)]


def test_changes_from_now_on_begin_with_the_call(shop: Published) -> None:
    later = cdc_views.open(shop.root).changes("public.orders", NOW)
    shop.write(ORDERS, [], [(1,)])
    shop.publish()
    [item] = later
    assert shown(item) == [("delete", (1, "a"), None)]  # type: ignore[arg-type]


def test_item_without_changes_is_not_skipped_as_nothing(shop: Published) -> None:
    [item] = items(shop, NOW)
    assert (len(item), bool(item)) == (0, True)


def test_follower_of_a_warehouse_that_is_created_again_gets_all_rows(shop: Published) -> None:
    follower = cdc_views.open(shop.root).changes("public.orders", follow=True)
    assert next(follower).epoch == 1
    shutil.rmtree(shop.root)
    again = Published(shop.root)
    for number in (7, 8):
        again.write(ORDERS, [(number, None)])
        again.publish()
    item = next(follower)
    assert isinstance(item, TableSnapshot)
    assert (item.epoch, item.reason) == (2, "the warehouse was created again")
    assert sorted(item.table.arrow()["id"].to_pylist()) == [7, 8]


def test_rows_of_a_table_that_comes_back_at_its_old_path_are_found_by_a_reader_that_knew_it(shop: Published) -> None:
    warehouse = cdc_views.open(shop.root)
    assert warehouse.get("public.orders", 1) is not None
    shutil.rmtree(shop.root)
    again = Published(shop.root)
    for number in (7, 8):
        again.write(ORDERS, [(number, "new")])
        again.publish()
    assert warehouse.get("public.orders", 7) == {"id": 7, "note": "new"}
    assert warehouse.get("public.orders", 1) is None


def test_rows_of_a_view_without_a_key_are_counted(shop: Published) -> None:
    shop.write(BAG, [(1.0, 7, 1), (1.0, 7, 2), (2.0, 8, 1)])
    shop.publish()
    [first] = items(shop, name="bag")
    shop.write(BAG, [(2.0, 8, 2), (2.0, 8, 3)], [(7, 2)])
    shop.publish()
    [item] = items(shop, first.token, "bag")
    assert Counter(shown(item)) == {("insert", None, (2.0,)): 2, ("delete", (1.0,), None): 1}


def test_row_of_a_view_with_one_row_is_updated(shop: Published) -> None:
    one = TableSpec("one", "views/one/a", pa.schema([("n", pa.int64())]), ())
    shop.write(one, [(5,)])
    shop.publish()
    [first] = items(shop, name="one")
    shop.write(one, [(6,)])
    shop.publish()
    [item] = items(shop, first.token, "one")
    assert shown(item) == [("update", (5,), (6,))]


def test_upkeep_and_an_abandoned_epoch_are_no_changes(shop: Published) -> None:
    token = items(shop)[0].token
    shop.write(ORDERS, [(3, "c")])
    shop.publish()
    published = dict(shop.tables)
    shop.write(ORDERS, [(4, "abandoned")])
    abandoned = shop.control.new_epoch()
    version = shop.warehouse.restore(ORDERS.path, 2, Stamp(abandoned, shop.control.new_attempt(), "0/1"))
    upkeep = TableUpkeep(shop.root, ORDERS, UpkeepSettings())
    assert upkeep.catch_up(version)
    version = upkeep.compact(upkeep.files, Stamp(2, shop.control.new_attempt(), "0/1"))
    shop.tables = published | {ORDERS.name: replace(published[ORDERS.name], version=version)}
    shop.epoch = abandoned
    shop.write(ORDERS, [(5, "e")])
    shop.publish()
    assert [(item.epoch, shown(item)) for item in items(shop, token)] == [
        (2, [("insert", None, (3, "c"))]),
        (4, [("insert", None, (5, "e"))]),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_copy_that_applies_the_changes_equals_the_table(tmp_path: Path, seed: int) -> None:
    """A reader that stops after any item and resumes from its token; compaction; the copy is that of each epoch."""
    chance, shop = random.Random(seed), Published(tmp_path)
    shop.write(TOTALS, [("ada", 1, Decimal(1))])
    shop.publish()
    copy: dict[Any, Any] = {}
    token: str | None = None
    upkeep = TableUpkeep(tmp_path, TOTALS, UpkeepSettings(merged_files=2))
    for _ in range(6):
        for _ in range(chance.randrange(3)):
            keys = [(owner, day) for owner in ("ada", None) for day in (1, 2, 3)]
            chance.shuffle(keys)
            number = chance.randrange(4)
            shop.write(
                TOTALS, [(*key, Decimal(chance.randrange(3))) for key in keys[:number]], keys[number : number + 2]
            )
            shop.publish()
        table = shop.tables[TOTALS.name]
        if upkeep.catch_up(table.version) and (due := upkeep.files_due()):
            version = upkeep.compact(due, Stamp(shop.epoch, shop.control.last_attempt, "0/1"))
            shop.tables[TOTALS.name] = replace(table, version=version)
        wh = cdc_views.open(tmp_path)
        for item in itertools.islice(wh.changes("totals", token), chance.choice([1, 2, 99])):
            token = item.token
            if isinstance(item, TableSnapshot):
                copy = {(row["owner"], row["day"]): row["amount"] for row in item.table.arrow().to_pylist()}
                continue
            for change in item.rows():
                if change.old is not None:
                    assert copy.pop((change.old["owner"], change.old["day"])) == change.old["amount"]
                if change.new is not None:
                    copy[change.new["owner"], change.new["day"]] = change.new["amount"]
            stored = wh.table("totals", at=item.epoch).arrow().to_pylist()
            assert copy == {(row["owner"], row["day"]): row["amount"] for row in stored}


def test_changes_read_only_what_differs(shop: Published) -> None:
    shop.write(ORDERS, [(number, None) for number in range(100, 5000)])
    shop.publish()
    [first] = items(shop)
    shop.write(ORDERS, [(3, "c")])
    shop.publish()
    with counting(Work()) as work:
        [item] = items(shop, first.token)
    assert (len(item), work.rows_read, work.files_read) == (1, 1, 1)


# A snapshot again


def test_table_that_was_swapped_is_a_snapshot_again(shop: Published) -> None:
    token = items(shop)[0].token
    shop.write(ORDERS, [(3, "c")])
    shop.publish()
    rebuilt = TableSpec(ORDERS.name, ORDERS.path + "-rebuilt", ORDERS.schema, ORDERS.key)
    shop.write(rebuilt, [(1, "a"), (2, "b"), (3, "c")])
    shop.publish("swap")
    shop.write(rebuilt, [(4, "d")])
    shop.publish()
    changed, again = items(shop, token)
    assert shown(changed) == [("insert", None, (3, "c"))]
    assert isinstance(again, TableSnapshot)
    assert (again.epoch, again.table.arrow().num_rows) == (4, 4)
    assert again.reason == "the table was rebuilt, reset or redefined: epoch 3 has it in another folder"


def test_changes_that_are_no_longer_retained_are_a_snapshot_again(shop: Published) -> None:
    token = items(shop)[0].token
    for number in (3, 4):
        shop.write(ORDERS, [(number, None)], [(number - 2,)])
        shop.publish()
    upkeep = TableUpkeep(shop.root, ORDERS, UpkeepSettings(keep_hours=0))
    assert upkeep.catch_up(3)
    upkeep.checkpoint()
    upkeep.sweep(3)
    [again] = items(shop, token)
    assert isinstance(again, TableSnapshot)
    assert again.reason is not None
    assert "epoch 1 to epoch 2 are no longer retained" in again.reason
    assert sorted(again.table.arrow()["id"].to_pylist()) == [3, 4]


def test_epoch_whose_record_is_gone_is_not_merged_into_the_next_one(shop: Published) -> None:
    token = items(shop)[0].token
    for number in (3, 4):
        shop.write(ORDERS, [(number, None)])
        if number == 4:
            shop.publish()
        else:
            shop.epoch = shop.control.new_epoch()  # as if upkeep had dropped its record
    [again] = items(shop, token)
    assert isinstance(again, TableSnapshot)


def test_epoch_that_changes_too_many_rows_is_a_snapshot(shop: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_tables, "MOST_CHANGED", 2)
    token = items(shop)[0].token
    shop.write(ORDERS, [(number, None) for number in (3, 4, 5)])
    shop.publish()
    [again] = items(shop, token)
    assert isinstance(again, TableSnapshot)


# Errors


def test_view_that_fails_is_an_error_after_its_last_changes(shop: Published) -> None:
    shop.write(TOTALS, [("ada", 1, Decimal(1))])
    shop.publish()
    [first] = items(shop, name="totals")
    shop.write(TOTALS, [("bob", 1, Decimal(2))])
    shop.publish()
    shop.publish(totals="failed")
    found = cdc_views.open(shop.root).changes("totals", first.token)
    changed = next(found)
    assert isinstance(changed, EpochChanges)
    with pytest.raises(ViewFailed):
        next(found)
    shop.write(TOTALS, [("eve", 1, Decimal(3))])
    shop.publish()
    [later] = items(shop, changed.token, "totals")
    assert shown(later) == [("insert", None, ("eve", 1, Decimal(3)))]


def test_table_that_is_not_there_is_an_error(shop: Published) -> None:
    token = items(shop)[0].token
    with pytest.raises(UnknownView):
        items(shop, name="nosuch")
    del shop.tables[ORDERS.name]
    shop.publish()
    with pytest.raises(UnknownView):
        items(shop, token)


@pytest.mark.proves(
    wrong="Changes are resumed from a token of another table or warehouse, or from one that was changed.",
    seen="`BadToken`",
    do="Give the token of the last item that was handled. If the warehouse was created again, or restored from a "
    "backup, begin without a token.",
)
def test_token_of_something_else_is_an_error(shop: Published, tmp_path: Path) -> None:
    token = items(shop)[0].token
    shop.write(TOTALS, [("ada", 1, Decimal(1))])
    shop.publish()
    other = Published(tmp_path / "other")
    other.write(ORDERS)
    other.publish()
    for given in ("", "x", token[:-4], items(shop, name="totals")[0].token, items(other)[0].token):
        with pytest.raises(BadToken):
            items(shop, given)
    later = feed.Place.parse(token, ORDERS.name, KnownLog(shop.root).id)
    with pytest.raises(BadToken, match="is of epoch 9, and the last published one is epoch 2"):
        items(shop, feed.replace(later, epoch=9).token())


def test_log_is_identified_again_only_if_the_entry_that_was_known_is_gone(
    shop: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    delta_table = known_log.DeltaTable
    monkeypatch.setattr(known_log, "DeltaTable", lambda path: opened.append(path) or delta_table(path))
    known = KnownLog(shop.root)
    shop.publish()
    assert (known.is_another(), len(opened)) == (False, 1)
    entry_file(shop.root / FOLDER, newest_version(shop.root / FOLDER)).touch()  # as if it were another file
    assert (known.is_another(), len(opened)) == (False, 2)
    shutil.rmtree(shop.root)
    Published(shop.root).publish()
    assert (known.is_another(), len(opened)) == (True, 3)
    assert known.id == KnownLog(shop.root).id
    assert not known.is_another()


# Following


def test_follower_gets_the_changes_as_they_are_published(shop: Published) -> None:
    following = cdc_views.open(shop.root).changes("public.orders", NOW, follow=True)
    assert next(following).epoch == 1
    for number in (3, 4):
        shop.write(ORDERS, [(number, None)])
        shop.publish()
        item = next(following)
        assert isinstance(item, EpochChanges)
        assert shown(item) == [("insert", None, (number, None))]


def test_follower_of_a_table_that_does_not_change_gets_new_tokens(
    shop: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "PROGRESS_S", 0)
    following = cdc_views.open(shop.root).changes("public.orders", follow=True)
    assert isinstance(next(following), TableSnapshot)
    shop.publish(detail={})
    item = next(following)
    assert isinstance(item, EpochChanges)
    assert (item.epoch, len(item)) == (2, 0)
