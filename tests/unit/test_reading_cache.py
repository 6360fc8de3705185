"""Rows of a cache: hit, miss and not loaded, ETags, hot rows within their budget, and the index of a reader."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import cdc_views
from cdc_views.base.lsn import Lsn
from cdc_views.errors import BadKey, UnknownView, ViewBeingBuilt, ViewFailed, WarehouseUnusable, WrongKind
from cdc_views.metrics import Work, counting
from cdc_views.serve.kinds import cache as cache_module
from cdc_views.serve.kinds.cache import CachedRow, CacheReader
from cdc_views.serve.kinds.hot_rows import HotRows, size_bytes
from cdc_views.store.control import known_log
from cdc_views.store.control.control_log import FOLDER
from cdc_views.store.reading import StoredTables
from cdc_views.store.warehouse import TableSpec
from tests.unit.published import BEGIN, ORDERS, Published
from tests.waiting import wait_for

LIMIT_S = 30

PRODUCTS = TableSpec(
    "products",
    "views/products/a",
    pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())]),
    ("id",),
    kind={"kind": "cache"},
)
STOCK = TableSpec(
    "stock",
    "views/stock/a",
    pa.schema([("shop", pa.string()), ("id", pa.float64()), ("document", pa.struct([("n", pa.int64())]))]),
    ("shop", "id"),
    kind={"kind": "cache"},
)


@pytest.fixture
def shop(tmp_path: Path) -> Published:
    shop = Published(tmp_path)
    shop.write(PRODUCTS, [(number, f"p{number}", number / 2) for number in range(10)])
    shop.write(STOCK, [("a", 1.0, {"n": 1}), ("a", float("nan"), {"n": 2}), (None, 0.0, None)])
    shop.write(ORDERS, [(1, "a")])
    shop.publish()
    return shop


def _reads(cache: cdc_views.CacheReader, *key: object) -> tuple[Any, int]:
    """The state of a key, and the rows that were read from files for it."""
    with counting(Work()) as work:
        found = cache.get(*key)
    return found.row and found.row["name"], work.rows_read


def test_get_is_a_hit_or_a_miss_of_an_epoch(shop: Published) -> None:
    cache = cdc_views.open(shop.root).cache("products")
    hit, miss = cache.get(3), cache.get(30)
    assert (hit.state, hit.row, hit.document) == ("hit", {"id": 3, "name": "p3", "price": 1.5},
                                                  {"name": "p3", "price": 1.5})  # fmt: skip
    assert (miss.state, miss.row, miss.document, miss.etag) == ("miss", None, None, None)
    assert (hit.epoch, str(hit.position), hit.committed_at) == (miss.epoch, "0/100", miss.committed_at)


def test_document_of_one_column_is_its_value(shop: Published) -> None:
    cache = cdc_views.open(shop.root).cache("stock")
    assert cache.get("a", 1.0).document == {"n": 1}
    assert cache.get(None, -0.0).document is None
    assert [row.state for row in cache.get_many([("a", float("nan")), ("a", 2.0), [None, 0.0]])] == [
        "hit", "miss", "hit",
    ]  # fmt: skip


def test_get_many_is_in_the_order_of_the_keys(shop: Published) -> None:
    cache = cdc_views.open(shop.root).cache("products")
    for _ in range(2):  # from files, then from memory
        assert [row.row and row.row["id"] for row in cache.get_many([7, 70, 1, 7])] == [7, None, 1, 7]
    assert cache.get_many([]) == []


@pytest.mark.proves(
    wrong="A view is read that was declared, and that the engine has not computed yet.",
    seen="`ViewBeingBuilt`",
    do="Wait, and read again: its first epoch has all of its rows.",
)
def test_view_that_is_declared_and_not_computed_is_not_loaded_yet(shop: Published) -> None:
    (shop.root / "views/later/y").mkdir(parents=True)  # an engine creates its tables before it takes over
    shop.control.take_over(generation="g", detail={"views": {"products": "x", "later": "y"}})
    wh = cdc_views.open(shop.root)
    with pytest.raises(ViewBeingBuilt, match='"later" is declared, and epoch 1 does not have it yet') as caught:
        wh.cache("later").get(1)
    assert (caught.value.retryable, caught.value.exit_status) == (True, 3)
    with pytest.raises(UnknownView):
        wh.cache("nosuch").get(1)


def test_cache_of_another_kind_or_key_is_an_error(shop: Published) -> None:
    wh = cdc_views.open(shop.root)
    with pytest.raises(WrongKind, match=r'"public\.orders" is of kind "sql", wanted "cache"'):
        wh.cache("public.orders").get(1)
    with pytest.raises(BadKey, match="found a value of type str, wanted int64"):
        wh.cache("products").get("one")


def test_etag_changes_with_the_row_and_only_then(shop: Published) -> None:
    before = [row.etag for row in cdc_views.open(shop.root).cache("products").get_many([1, 2, 3])]
    assert len(set(before)) == 3
    shop.write(PRODUCTS, [(2, "new", 1.0)])
    shop.publish()
    after = [row.etag for row in cdc_views.open(shop.root).cache("products").get_many([1, 2, 3])]
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True]


def test_etag_differs_for_different_values_and_not_between_machines() -> None:
    def etag(value: object) -> str | None:
        return CachedRow("hit", {"id": 1, "value": value}, 1, Lsn(1), BEGIN, ("id",)).etag

    values = [None, 0, 1, 0.5, float("nan"), "", "0", b"", b"0", BEGIN, BEGIN.date(), Decimal("0.5"), Decimal("0.50"),
              [], [1], {"a": 1}, {"b": 1}]  # fmt: skip
    assert len({etag(value) for value in values}) == len(values)
    assert etag([{"at": BEGIN}]) == etag([{"at": BEGIN.astimezone(ZoneInfo("UTC"))}])
    assert etag(1) == '"db5ea74b6b4860507d05485e7bdb9f6b"'


def test_hot_row_is_read_from_memory_until_it_changes(shop: Published) -> None:
    cache = cdc_views.open(shop.root).cache("products")
    assert _reads(cache, 1)[1] > 0
    cache.get_many([2, 30])
    assert [_reads(cache, key) for key in (1, 2, 30)] == [("p1", 0), ("p2", 0), (None, 0)]
    shop.write(PRODUCTS, [(2, "new", 0.0), (30, "came", 0.0)], [(3,)])
    shop.publish()
    cache.get(9)  # the first read of the epoch drops what it has changed
    assert _reads(cache, 1) == ("p1", 0)
    assert [_reads(cache, key)[0] for key in (2, 30, 3)] == ["new", "came", None]


def test_hot_rows_of_an_unchanged_table_serve_a_later_epoch(shop: Published) -> None:
    cache = cdc_views.open(shop.root).cache("products")
    cache.get(1)
    shop.write(ORDERS, [(2, "b")])
    shop.publish()
    with counting(Work()) as work:
        assert cache.get(1).epoch == 2
    assert work.rows_read == 0


def test_get_at_an_earlier_epoch_neither_uses_nor_drops_hot_rows(shop: Published) -> None:
    cache = cdc_views.open(shop.root).cache("products")
    cache.get(1)
    shop.write(PRODUCTS, [(1, "new", 0.0)])
    shop.publish()
    assert [row.row and row.row["name"] for row in (cache.get(1), cache.get(1, at=1), cache.get(1))] == [
        "new", "p1", "new",
    ]  # fmt: skip
    assert _reads(cache, 1) == ("new", 0)


def test_hot_rows_of_a_table_that_was_made_again_are_dropped(shop: Published) -> None:
    cache = cdc_views.open(shop.root).cache("products")
    cache.get(1)
    again = TableSpec("products", "views/products/a-1", PRODUCTS.schema, PRODUCTS.key, kind=PRODUCTS.kind)
    shop.write(again, [(1, "again", 0.0)])
    shop.publish("swap")
    assert _reads(cache, 1)[0] == "again"


def test_reader_without_memory_for_hot_rows_reads_files(shop: Published) -> None:
    cache = cdc_views.open(shop.root, index_mb=0).cache("products", memory_mb=0)
    cache.get(1)
    assert _reads(cache, 1)[1] > 0


def test_caller_that_changes_an_entry_changes_none_but_its_own(shop: Published) -> None:
    cache = cdc_views.open(shop.root).cache("products")
    for _ in range(2):
        row = cache.get(1).row
        assert isinstance(row, dict)
        assert row["name"] != "changed"
        row["name"] = "changed"


@pytest.mark.parametrize("follows", [False, True])
def test_cache_serves_threads_while_epochs_are_published(shop: Published, follows: bool) -> None:
    cache = cdc_views.open(shop.root).cache("products")
    if follows:
        cache.follow()
    wrong: list[object] = []
    is_done = threading.Event()

    def read() -> None:
        last = 0
        while not is_done.is_set():
            found = cache.get(1)
            assert found.row is not None
            of_row = int(str(found.row["name"])[1:])
            if of_row < last or (found.epoch > 1 and of_row != found.epoch):
                wrong.append((found.epoch, of_row))
            last = of_row

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for epoch in range(2, 12):
        shop.write(PRODUCTS, [(1, f"p{epoch}", 0.0)])
        shop.publish()
    is_done.set()
    for thread in threads:
        thread.join()
    cache.close()
    assert wrong == []


# A cache that follows the epochs


@pytest.fixture
def followed(shop: Published) -> Iterator[cdc_views.CacheReader]:
    """The products, whose epochs are followed; the first one is taken over."""
    with cdc_views.open(shop.root).cache("products") as cache:
        wait_for(lambda: taken(cache) == 1, LIMIT_S)
        yield cache


def taken(cache: cdc_views.CacheReader) -> int | None:
    """The epoch that a read without a moment answers from, if the thread has taken one over."""
    return cache._taken.number if cache._taken is not None else None


def handed_over(cache: cdc_views.CacheReader) -> int | None:
    """The last epoch that the thread has handed to the cache."""
    record = cache._epochs._last_given[cache._take_over]
    return record.epoch if record is not None else None


def test_rows_that_an_epoch_has_changed_are_in_memory_before_it_is_read(
    shop: Published, followed: cdc_views.CacheReader
) -> None:
    followed.get_many([1, 2, 3, 9, 30])
    shop.write(PRODUCTS, [(2, "new", 0.0), (30, "came", 0.0)], [(3,)])
    shop.publish()
    wait_for(lambda: taken(followed) == 2, LIMIT_S)
    assert [_reads(followed, key) for key in (1, 2, 3, 30)] == [("p1", 0), ("new", 0), (None, 0), ("came", 0)]
    shop.write(ORDERS, [(2, "b")])
    shop.publish()
    wait_for(lambda: taken(followed) == 3, LIMIT_S)
    assert _reads(followed, 2) == ("new", 0)


def test_read_does_not_wait_for_an_epoch_that_is_being_taken_over(
    shop: Published, followed: cdc_views.CacheReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert followed.get(1).epoch == 1
    may_go_on, written = threading.Event(), StoredTables.written

    def slow(*given: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            assert may_go_on.wait(LIMIT_S)
        return written(*given)

    monkeypatch.setattr(StoredTables, "written", slow)
    shop.write(PRODUCTS, [(1, "new", 0.0)])
    record = shop.publish()
    assert record.position is not None
    assert (followed.get(1).epoch, _reads(followed, 1)) == (1, ("p1", 0))
    assert followed.get(1, at_least=record.position).epoch == 2
    assert (followed.get(1).epoch, _reads(followed, 1)) == (2, ("new", 0))  # never back
    shop.write(PRODUCTS, [(1, "newer", 0.0)])
    shop.publish()
    may_go_on.set()
    wait_for(lambda: taken(followed) == 3, LIMIT_S)
    assert _reads(followed, 1) == ("newer", 0)


def test_cache_that_is_closed_while_an_epoch_is_taken_over_stays_right(
    shop: Published, followed: cdc_views.CacheReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed.get(1)
    has_begun, may_go_on, written = threading.Event(), threading.Event(), StoredTables.written

    def slow(*given: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            has_begun.set()
            assert may_go_on.wait(LIMIT_S)
        return written(*given)

    monkeypatch.setattr(StoredTables, "written", slow)
    thread = next(each for each in threading.enumerate() if each.name == "epochs")
    shop.write(PRODUCTS, [(1, "second", 0.0)])
    shop.publish()
    assert has_begun.wait(LIMIT_S)
    followed.close()
    shop.write(PRODUCTS, [(5, "third", 0.0)])
    shop.publish()
    assert _reads(followed, 5)[0] == "third"
    may_go_on.set()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    rows = [followed.get(key, at=at).row for at in (2, 3) for key in (1, 5)]
    assert [row and row["name"] for row in rows] == ["second", "p5", "second", "third"]


def test_failed_view_is_an_error_while_its_epochs_are_followed(
    shop: Published, followed: cdc_views.CacheReader
) -> None:
    followed.get(1)
    shop.publish(products="failed")

    def has_failed() -> bool:
        with suppress(ViewFailed):
            return followed.get(1).epoch == 99
        return True

    wait_for(has_failed, LIMIT_S)
    shop.write(PRODUCTS, [(1, "new", 0.0)])
    shop.publish(products="live")
    wait_for(lambda: not has_failed() and _reads(followed, 1)[0] == "new", LIMIT_S)


def test_warehouse_that_is_replaced_is_followed(
    tmp_path: Path, shop: Published, followed: cdc_views.CacheReader
) -> None:
    shop.publish()
    wait_for(lambda: taken(followed) == 2, LIMIT_S)
    other = Published(tmp_path / "other")
    other.write(PRODUCTS, [(9, "other", 0.0)])
    other.publish()
    for name in (FOLDER, "views"):
        (shop.root / name).rename(tmp_path / f"old_{name}")
    for name in ("views", FOLDER):
        (other.root / name).rename(shop.root / name)
    wait_for(lambda: _reads(followed, 9)[0] == "other" and taken(followed) == 1, LIMIT_S)


def test_read_of_a_failed_view_at_an_earlier_epoch_does_not_become_the_latest(
    shop: Published, followed: cdc_views.CacheReader
) -> None:
    shop.publish(products="failed")
    wait_for(lambda: handed_over(followed) == 2, LIMIT_S)
    assert followed.get(1, at=1).epoch == 1
    with pytest.raises(ViewFailed):
        followed.get(1)


def test_reads_never_go_back_while_a_view_fails_and_comes_back(
    shop: Published, followed: cdc_views.CacheReader
) -> None:
    wrong, is_done = list[tuple[int, int]](), threading.Event()

    def read() -> None:
        last = 0
        while not is_done.is_set():
            with suppress(ViewFailed):
                found = followed.get(1).epoch
                if found < last:
                    wrong.append((last, found))
                last = found

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(8):
        shop.write(PRODUCTS, [(1, f"p{number}", 0.0)])
        shop.publish(products="live")
        shop.publish(products="failed")
    with pytest.raises(ViewFailed):
        wait_for(lambda: followed.get(1).epoch > 99, LIMIT_S)
    is_done.set()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("changed", [20, 3_000])
def test_hot_rows_of_a_large_epoch_are_those_of_the_epoch(
    shop: Published, followed: cdc_views.CacheReader, changed: int
) -> None:
    wait_for(lambda: taken(followed) == 1, LIMIT_S)
    followed.get_many([1, 2])
    shop.write(PRODUCTS, [(2, "new", 0.0), *((number, "other", 0.0) for number in range(100, 100 + changed))])
    shop.publish()
    wait_for(lambda: taken(followed) == 2, LIMIT_S)
    assert _reads(followed, 2)[0] == "new"
    assert _reads(followed, 1) == ("p1", 0) if changed == 20 else _reads(followed, 1)[0] == "p1"


def test_cache_that_nobody_reads_is_not_followed_further(
    shop: Published, followed: cdc_views.CacheReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "_MOST_UNREAD", 2)
    wait_for(lambda: taken(followed) == 1, LIMIT_S)
    for number in range(2, 6):
        shop.write(PRODUCTS, [(9, f"p{number}", 0.0)])
        shop.publish()
        wait_for(lambda: handed_over(followed) == number, LIMIT_S)  # noqa: B023 (called at once)
    assert (followed._taken, len(followed._hot)) == (None, 0)
    assert _reads(followed, 9)[0] == "p5"
    shop.publish()
    wait_for(lambda: taken(followed) is not None, LIMIT_S)
    assert followed.get(9).epoch == 6


def test_fault_while_an_epoch_is_taken_over_leaves_the_read_to_find_the_epoch(
    shop: Published, followed: cdc_views.CacheReader, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    followed.get(1)
    with monkeypatch.context() as patch:
        patch.setattr(CacheReader, "_bring_to", lambda *_: 1 / 0)
        shop.write(PRODUCTS, [(1, "new", 0.0)])
        shop.publish()
        wait_for(lambda: caplog.records, LIMIT_S)
    assert caplog.messages == ['epoch 2 of cache "products" cannot be taken over']
    assert (followed.get(1).epoch, _reads(followed, 1)[0]) == (2, "new")
    shop.publish()
    wait_for(lambda: taken(followed) == 3, LIMIT_S)


def test_log_that_cannot_be_looked_at_for_a_while_is_followed_again(
    shop: Published, followed: cdc_views.CacheReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for(lambda: taken(followed) == 1, LIMIT_S)
    with monkeypatch.context() as patch:
        patch.setattr(known_log, "has_entry", raising(PermissionError(errno.EACCES, "denied")))
        wait_for(lambda: taken(followed) is None, LIMIT_S)
        with pytest.raises(WarehouseUnusable):
            followed.get(1)
    wait_for(lambda: taken(followed) == 1, LIMIT_S)


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail


def test_hot_rows_stay_within_their_budget_and_the_last_used_stay() -> None:
    row = {"text": "x" * 1000}
    hot = HotRows(10_000)
    for number in range(100):
        hot.put((number,), row)
        assert hot.used_bytes <= 10_000
        assert hot.get((0,)) == row  # used all the time
    assert 3 < len(hot) < 10
    assert (99,) in hot
    assert (50,) not in hot
    hot.put((0,), {"text": "x" * 20_000})
    assert (0,) not in hot
    hot.clear()
    assert (len(hot), hot.used_bytes) == (0, 0)


def test_size_of_a_row_has_everything_in_it() -> None:
    assert size_bytes({"a": ["x" * 1000, {"b": "y" * 1000}]}) > 2000


# The index of a reader


def test_reader_that_reads_again_has_an_index_and_reads_no_key_columns(shop: Published) -> None:
    wh = cdc_views.open(shop.root)
    assert [wh.get("products", number) for number in (1, 2)] == [
        {"id": 1, "name": "p1", "price": 0.5}, {"id": 2, "name": "p2", "price": 1.0},
    ]  # fmt: skip
    with counting(Work()) as work:
        assert wh.get("products", 3) == {"id": 3, "name": "p3", "price": 1.5}
        assert wh.get("products", 33) is None
    assert (work.rows_read, work.files_read) == (0, 0)


@pytest.mark.parametrize("index_mb", [0, 256])
def test_index_follows_epochs_deletes_and_earlier_versions(shop: Published, index_mb: int) -> None:
    wh = cdc_views.open(shop.root, index_mb=index_mb)
    for epoch in range(2, 8):
        shop.write(PRODUCTS, [(epoch, f"e{epoch}", 0.0)], [(9 - epoch,)] if epoch < 5 else ())
        shop.publish()
        names = {number: row and row["name"] for number in range(10) for row in [wh.get("products", number)]}
        gone = {9 - each for each in range(2, min(epoch, 4) + 1)}
        wanted = {number: None if number in gone else f"p{number}" for number in range(10)}
        assert names == wanted | {each: f"e{each}" for each in range(2, epoch + 1)}
        earlier = wh.get("products", 9, at=1)
        assert earlier is not None
        assert wh.table("products", at=1).get_many([[number] for number in (7, 6, 99)])[2] is None
