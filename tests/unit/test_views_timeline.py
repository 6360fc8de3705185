"""Kind `timeline`: what it maintains, its strategy, its order, and what it refuses."""

from __future__ import annotations

import pytest

from cdc_views.engine.views.planning import require_strict
from cdc_views.errors import BadView
from cdc_views.views.kinds import KINDS
from cdc_views.views.kinds.options import Ordered
from cdc_views.views.kinds.timeline import TimelineRecord
from tests.page_blocks import block
from tests.unit.golden import compiled, maintained

OPTIONS = "kind = 'timeline', owner = 'user_id', order = 'created_at DESC'"
SELECT = """SELECT f.follower_id AS user_id, p.id AS post_id, p.author_id, a.name AS author, p.created_at
FROM follows f JOIN posts p ON p.author_id = f.followee_id JOIN users a ON a.id = p.author_id
WHERE NOT f.muted"""
COLUMNS = "user_id, post_id, author_id, author, created_at"
TYPES = {"user_id": "int64", "post_id": "int64", "author_id": "int64", "author": "string", "created_at": "timestamp"}


def _text(options: str = OPTIONS, select: str = SELECT, columns: str = "") -> str:
    return f"CREATE MATERIALIZED VIEW v {columns} WITH ({options}) AS\n{select}"


def _query(text: str) -> str:
    view = compiled(text)
    return view.query({name: name for name in view.inputs})


def test_timeline_is_the_first_rows_of_each_owner_in_a_total_order() -> None:
    assert _query(_text()).split("\n")[0] == f"SELECT {COLUMNS} FROM ("
    assert _query(_text()).endswith(
        f") AS entries ({COLUMNS})\nQUALIFY row_number() OVER (PARTITION BY user_id "
        "ORDER BY created_at DESC NULLS LAST, entries.author_id, entries.post_id) <= 100"
    )


def test_timeline_of_the_page_is_patched() -> None:
    assert maintained(compiled(block("docs/views.md", "timeline", "sql"), "home_timeline.sql")).strategy == "PATCH"


def test_timeline_is_patched_as_one_that_is_written_by_hand() -> None:
    by_hand = (
        "CREATE MATERIALIZED VIEW v AS SELECT user_id, post_id, author_id, author, created_at FROM (SELECT *, "
        "row_number() OVER (PARTITION BY user_id ORDER BY created_at DESC, post_id) AS place FROM "
        f"(\n{SELECT}\n)) WHERE place <= 100"
    )
    found, wanted = maintained(compiled(_text())), maintained(compiled(by_hand))
    assert (found.strategy, found.reason) == ("PATCH", wanted.reason)
    assert found.patch is not None
    assert found.text is not None
    assert found.text.used["public.posts"] == {"id", "author_id", "created_at"}  # a change of a body costs nothing


@pytest.mark.parametrize(
    ("select", "strategy"),
    [
        ("SELECT user_id, id AS post_id, ordered_at AS created_at FROM orders", "PATCH"),
        (
            "WITH p AS (SELECT * FROM posts) SELECT f.follower_id AS user_id, p.id, author_id, created_at FROM p "
            "JOIN follows f ON f.followee_id = p.author_id -- the end",
            "PATCH",
        ),
        ("SELECT user_id, status, count(*) AS n, max(ordered_at) AS created_at FROM orders GROUP BY user_id, status",
         "KEYS"),
        ("SELECT user_id, o.id, ordered_at AS created_at FROM orders o LEFT JOIN users u ON u.id = o.user_id", "KEYS"),
    ],
)  # fmt: skip
def test_timeline_over_any_select_is_incremental(select: str, strategy: str) -> None:
    view = compiled(_text(OPTIONS.replace("created_at DESC", "created_at DESC, user_id"), select))
    plan = maintained(view)
    assert plan.strategy == strategy, plan.reason
    require_strict(view, plan)


def test_timeline_with_declared_columns_is_owned_by_them() -> None:
    text = _text("kind = timeline, owner = who, order = 'at desc', limit = 3", "SELECT user_id, id, ordered_at FROM "
                 "orders", "(who, what, at)")  # fmt: skip
    assert _query(text).startswith("SELECT who, what, at FROM (\nSELECT user_id, id, ordered_at FROM public.orders")
    assert compiled(text).key == ("who", "what")
    assert maintained(compiled(text)).strategy == "PATCH"


def test_key_begins_with_the_owner() -> None:
    assert compiled(_text(select="SELECT id, user_id, ordered_at AS created_at FROM orders")).key == ("user_id", "id")
    assert compiled(_text(OPTIONS.replace("user_id", "USER_ID"))).key == ("user_id", "author_id", "post_id")


def test_record_has_the_order_that_the_query_has() -> None:
    view = compiled(_text())
    record = KINDS["timeline"].record(view.definition.kind_options, TYPES, view.key)
    assert TimelineRecord.parse(record) == TimelineRecord(
        "user_id",
        (Ordered("created_at", descends=True, nulls_first=False), Ordered("author_id"), Ordered("post_id")),
        100,
    )


@pytest.mark.parametrize(
    ("options", "select", "message"),
    [
        (OPTIONS.replace("user_id", "usr_id"), SELECT, '1:62: option "owner": the view has no column "usr_id"'),
        (OPTIONS.replace("created_at", "at"), SELECT, '1:81: option "order": the view has no column "at"'),
        (OPTIONS + ", limit = 0", SELECT, '1:108: option "limit": found "0", wanted a whole number'),
        (
            OPTIONS,
            "SELECT user_id, ordered_at AS created_at FROM orders",
            '1:81: the entries of a timeline need a key, so that each has its place: column "id"',
        ),
        (OPTIONS, "SELECT user_id, created_at FROM orders UNION ALL SELECT 1, now()", "2:60: now() "),
    ],
)
def test_timeline_that_has_none_is_refused(options: str, select: str, message: str) -> None:
    with pytest.raises(BadView) as caught:
        compiled(_text(options, select))
    assert caught.value.message.startswith(f"v.sql:{message}")
    assert caught.value.hint or "wanted" in message


def test_order_by_a_list_is_refused_when_the_types_are_known() -> None:
    view = compiled(_text(OPTIONS.replace("created_at", "tags"), "SELECT author_id AS user_id, id, tags FROM posts"))
    types = {"user_id": "int64", "id": "int64", "tags": "list<element: string>"}
    with pytest.raises(BadView, match=r'v\.sql:1:81: column "tags" is of type list<element: string>, wanted'):
        KINDS["timeline"].record(view.definition.kind_options, types, view.key)
