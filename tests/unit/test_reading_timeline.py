"""Pages of a timeline: the order, cursors while entries come and go, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cdc_views
from cdc_views.errors import BadKey, BadPage, WrongKind
from cdc_views.store.warehouse import TableSpec
from cdc_views.views.kinds.options import Ordered
from cdc_views.views.kinds.timeline import TimelineRecord
from tests.unit.published import ORDERS, Published

START = datetime(2026, 11, 26, 8, tzinfo=UTC)
NEWEST = Ordered("at", descends=True, nulls_first=False)


def timeline_spec(*order: Ordered, name: str = "home", **types: pa.DataType) -> TableSpec:
    schema = pa.schema(
        {"user_id": pa.int64(), "post_id": pa.int64(), "at": pa.timestamp("us", tz="UTC"), **types}.items()
    )
    record = TimelineRecord("user_id", (*order, Ordered("post_id")), 100).as_json()
    return TableSpec(name, f"views/{name}/a", schema, ("user_id", "post_id"), kind={"kind": "timeline", **record})


HOME = timeline_spec(NEWEST)


def _at(minute: int) -> datetime:
    return START + timedelta(minutes=minute, microseconds=minute)


@pytest.fixture
def home(tmp_path: Path) -> Published:
    """Ten posts of user 1, the later ones with higher numbers; one of user 2."""
    home = Published(tmp_path)
    home.write(HOME, [*((1, n, _at(n)) for n in range(10)), (2, 99, _at(5))])
    home.write(ORDERS, [(1, "a")])
    home.publish()
    return home


def _posts(entries: Iterable[dict[str, Any]]) -> list[int]:
    return [entry["post_id"] for entry in entries]


def _pages(home: Published, limit: int, before: str | None = None) -> list[int]:
    """All posts of user 1 from a cursor on, page by page."""
    found: list[int] = []
    while True:
        page = cdc_views.open(home.root).timeline("home", 1, limit=limit, before=before)
        found += _posts(page.entries)
        assert len(page.entries) == limit or page.cursor is None
        if (before := page.cursor) is None:
            return found


def test_timeline_is_newest_first_and_of_one_owner(home: Published) -> None:
    page = cdc_views.open(home.root).timeline("home", 1)
    assert _posts(page.entries) == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert page.entries[0] == {"user_id": 1, "post_id": 9, "at": _at(9)}
    assert (page.cursor, page.epoch, str(page.position)) == (None, 1, "0/100")


def test_timeline_of_nobody_is_empty(home: Published) -> None:
    page = cdc_views.open(home.root).timeline("home", 3)
    assert (page.entries, page.cursor) == ([], None)


@pytest.mark.parametrize("limit", [1, 3, 5, 9, 10, 11])
def test_pages_together_are_the_timeline(home: Published, limit: int) -> None:
    assert _pages(home, limit) == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]


def test_pages_while_posts_arrive_neither_repeat_nor_lose_an_entry(home: Published) -> None:
    before, found = None, []
    for arriving in range(10, 14):
        page = cdc_views.open(home.root).timeline("home", 1, limit=3, before=before)
        found += _posts(page.entries)
        before = page.cursor
        home.write(HOME, [(1, arriving, _at(arriving))])
        home.publish()
    assert (found, before) == ([9, 8, 7, 6, 5, 4, 3, 2, 1, 0], None)


def test_page_after_entries_that_are_gone_goes_on_where_they_were(home: Published) -> None:
    first = cdc_views.open(home.root).timeline("home", 1, limit=4)
    home.write(HOME, [], [(1, post) for post in (9, 6, 5)])  # 6 is the entry of the cursor
    home.publish()
    assert _pages(home, 2, first.cursor) == [4, 3, 2, 1, 0]


def test_page_of_an_earlier_epoch_has_the_entries_of_that(home: Published) -> None:
    home.write(HOME, [(1, 10, _at(10))], [(1, 9)])
    home.publish()
    wh = cdc_views.open(home.root)
    assert _posts(wh.timeline("home", 1, limit=1, at=1).entries) == [9]
    assert _posts(wh.timeline("home", 1, limit=1, at_least="0/200").entries) == [10]


def test_entries_of_one_moment_are_in_the_order_of_the_key(home: Published) -> None:
    home.write(HOME, [(1, post, _at(20)) for post in (31, 30, 33, 32)] + [(1, 40, None)])
    home.publish()
    assert _pages(home, 1)[:5] == [30, 31, 32, 33, 9]
    assert _pages(home, 2)[-1] == 40  # NULLS LAST


@pytest.mark.parametrize("descends", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        [float("-inf"), -1.5, 0.0, 2.5, float("inf"), float("nan")],
        ["", "B", "a", "é", "中", "😀"],
        [Decimal("-1.0000000000"), Decimal("0E-10"), Decimal("0.0000000001"), Decimal("12345.6700000000")],
        [b"", b"\x00", b"\x01\xff", b"\xff"],
        [False, True],
        [date(1969, 12, 31), date(2026, 1, 1)],
        [-(2**63), -1, 0, 2**63 - 1],
    ],
)
def test_order_is_that_of_spark_for_every_type(
    tmp_path: Path, values: list[Any], descends: bool, nulls_first: bool
) -> None:
    kind = pa.decimal128(20, 10) if isinstance(values[0], Decimal) else pa.scalar(values[0]).type
    spec = timeline_spec(Ordered("value", descends, nulls_first), value=kind)
    home = Published(tmp_path)
    home.write(spec, [(1, post, None, value) for post, value in enumerate([*values, None])])
    home.publish()
    wanted = list(range(len(values)))[:: -1 if descends else 1]
    null = [len(values)]
    assert _pages(home, 1) == (null + wanted if nulls_first else wanted + null)


@pytest.mark.proves(
    wrong="A page of a timeline is asked for with a cursor of another view or owner, or with one that was changed.",
    seen="`BadPage`",
    do="Give the cursor of the page before, unchanged, to the same view and owner.",
)
def test_cursor_of_something_else_is_an_error(home: Published) -> None:
    home.write(timeline_spec(Ordered("at")), [])  # the same table: its record stays
    other = timeline_spec(Ordered("at"), name="other")
    home.write(other, [(1, post, _at(post)) for post in range(3)])
    home.publish()
    wh = cdc_views.open(home.root)
    cursor = wh.timeline("home", 1, limit=1).cursor
    assert cursor is not None
    others = {
        wh.timeline("other", 1, limit=1).cursor: 'another timeline than "home"',
        "WzFd": 'another timeline than "home"',
        **dict.fromkeys((cursor[:-4], "é", "", "e30", "W10"), "not one of ours"),
    }
    for before, message in others.items():
        with pytest.raises(BadPage, match=message):
            wh.timeline("home", 1, before=before)
    with pytest.raises(BadPage, match='another owner of "home"'):
        wh.timeline("home", 2, before=cursor)
    with pytest.raises(BadPage, match="has 0 entries"):
        wh.timeline("home", 1, limit=0)


def test_owner_of_another_type_is_an_error(home: Published) -> None:
    with pytest.raises(BadKey, match='"user_id" of "home": found a value of type str, wanted int64'):
        cdc_views.open(home.root).timeline("home", "ada")


@pytest.mark.proves(
    wrong="A table that is no timeline is read as one.",
    seen="`WrongKind`",
    do="Declare the view with `kind = 'timeline'` ([views.md](views.md#timeline)), or read it by a query.",
)
def test_timeline_of_another_kind_is_an_error(home: Published) -> None:
    with pytest.raises(WrongKind, match=r'"public\.orders" is of kind "sql", wanted "timeline"'):
        cdc_views.open(home.root).timeline("public.orders", 1)
