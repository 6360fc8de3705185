"""Times outside of the years 1 to 9999, for which Python has no value, in every way of reading."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import cdc_views
from cdc_views.cli.main import main
from cdc_views.config import FILE_NAME
from cdc_views.errors import BadKey
from cdc_views.replay.diff_report import compare_versions
from cdc_views.store.commits import through_spark
from cdc_views.store.warehouse import TableSpec
from cdc_views.views.kinds.options import Ordered
from cdc_views.views.kinds.timeline import TimelineRecord
from tests.unit.fix_http import Client, problem, serving
from tests.unit.published import Published
from tests.unit.search.test_search_reading import Posts
from tests.unit.test_cli import SETTINGS
from tests.unit.test_reading_timeline import NEWEST, timeline_spec

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
AT = pa.timestamp("us", "UTC")
FAR_DAY, FAR, ANCIENT, INFINITY = 3_663_383, 3_663_383 * 86_400_000_000 + 6, -735_160 * 86_400_000_000, 2**63 - 1
DAY_TEXT, TEXT = "12000-01-02", "12000-01-02T00:00:00.000006+00:00"
ANCIENT_TEXT = "-0043-03-15T00:00:00.000000+00:00"
PATH_TEXT = TEXT.replace("+", "%2B")
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)

EVENTS = TableSpec(
    "events",
    "views/events/a",
    pa.schema(
        [("id", pa.int64()), ("at", AT), ("day", pa.date32()), ("all", pa.struct([("days", pa.list_(pa.date32()))]))]
    ),
    ("id",),
    kind={"kind": "cache"},
)
DAYS = TableSpec(
    "days",
    "views/days/a",
    pa.schema([("at", AT), ("day", pa.date32()), ("n", pa.int64())]),
    ("at", "day"),
    kind={"kind": "cache"},
)
HOME = timeline_spec(NEWEST)
BY_FAR = TableSpec(
    "owned", "views/owned/a", pa.schema([("user_id", pa.date32()), ("post_id", pa.int64())]), ("user_id", "post_id"),
    kind={"kind": "timeline", **TimelineRecord("user_id", (Ordered("post_id"),), 100).as_json()},
)  # fmt: skip
FAR_ROW = {"id": 1, "at": TEXT, "day": DAY_TEXT, "all": {"days": [date(1970, 1, 1), DAY_TEXT]}}
NEAR_ROW = {"id": 2, "at": NOON, "day": date(2026, 11, 26), "all": None}
FAR_JSON = {"id": 1, "at": TEXT, "day": DAY_TEXT, "all": {"days": ["1970-01-01", DAY_TEXT]}}


@dataclass(frozen=True)
class Far:
    """A warehouse with far times in every kind of view, and the token of its first epoch, which has none."""

    root: Path
    token: str


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Far:
    posts = Posts(tmp_path_factory.mktemp("project") / "warehouse")
    posts.published.write(EVENTS, [(2, NOON, date(2026, 11, 26), None)])
    posts.put()
    [first] = cdc_views.open(posts.published.root).changes("events")
    posts.published.write(EVENTS, [(1, FAR, FAR_DAY, {"days": [0, FAR_DAY]}), (3, INFINITY, -(2**31) + 1, None)])
    posts.published.write(DAYS, [(FAR, FAR_DAY, 1), (NOON, date(2026, 11, 26), 2), (INFINITY, FAR_DAY, 3)])
    times = [NOON, FAR, ANCIENT, INFINITY, None]
    posts.published.write(HOME, [(1, number, time) for number, time in enumerate(times)])
    posts.published.write(BY_FAR, [(FAR_DAY, 1), (FAR_DAY, 2), (0, 3)])
    posts.put([(number, None, "cat", None, time) for number, time in enumerate(times)])  # type: ignore[misc]
    return Far(posts.published.root, first.token)


@pytest.fixture(scope="module")
def wh(far: Far) -> cdc_views.WarehouseReader:
    return cdc_views.open(far.root)


@pytest.fixture(scope="module")
def http(far: Far) -> Iterator[Client]:
    with serving(far.root) as client:
        yield client


@pytest.fixture
def project(far: Far, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("CDC_VIEWS_STATE", str(tmp_path / "no-stack"))
    folder = far.root.parent
    (folder / FILE_NAME).write_text(SETTINGS)
    return folder


# Python


def test_row_has_far_times_as_texts(wh: cdc_views.WarehouseReader) -> None:
    assert wh.get("events", 1) == FAR_ROW
    assert wh.get_many("events", [[2], [1], [7]]) == [NEAR_ROW, FAR_ROW, None]
    assert wh.get("events", 3) == {"id": 3, "at": "infinity", "day": "-infinity", "all": None}


@pytest.mark.parametrize("index_mb", [0, 256])
def test_row_is_found_by_a_far_time(far: Far, index_mb: int) -> None:
    wh = cdc_views.open(far.root, index_mb=index_mb)
    for _ in range(2):  # the second read may use an index
        assert wh.get("days", TEXT, DAY_TEXT) == {"at": TEXT, "day": DAY_TEXT, "n": 1}
        assert wh.get("days", "12000-01-02T02:00:00.000006+02:00", DAY_TEXT) == {"at": TEXT, "day": DAY_TEXT, "n": 1}
        assert wh.get("days", "infinity", DAY_TEXT) == {"at": "infinity", "day": DAY_TEXT, "n": 3}
        assert wh.get("days", TEXT, "12000-01-03") is None
        assert wh.get("days", NOON, date(2026, 11, 26)) == {"at": NOON, "day": date(2026, 11, 26), "n": 2}
    with pytest.raises(BadKey, match='"day" of "days": found a value of type str, wanted date32'):
        wh.get("days", TEXT, "12000-02-30")
    with pytest.raises(BadKey):
        wh.get("days", TEXT, "2026-11-26")  # a date that Python has is a date


def test_cache_has_far_times_as_texts_also_from_memory(far: Far) -> None:
    cache = cdc_views.open(far.root).cache("events")
    assert cache.get(2, at=1).row == NEAR_ROW
    first, again = cache.get(1), cache.get(1)
    assert (first.row, again.row) == (FAR_ROW, FAR_ROW)
    assert first.etag == again.etag
    assert cdc_views.open(far.root).cache("days").get(TEXT, DAY_TEXT).document == 1


def test_hot_rows_with_far_times_follow_epochs(tmp_path: Path) -> None:
    shop = Posts(tmp_path).published
    shop.write(DAYS, [(FAR, FAR_DAY, 1), (INFINITY, FAR_DAY, 3)])
    shop.publish()
    cache = cdc_views.open(shop.root).cache("days")
    assert [cache.get(at, DAY_TEXT).document for at in (TEXT, "infinity")] == [1, 3]
    shop.write(DAYS, [(FAR, FAR_DAY, 2)])
    shop.publish()
    assert [cache.get(at, DAY_TEXT).document for at in (TEXT, "infinity")] == [2, 3]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_timeline_has_far_times_in_their_order(wh: cdc_views.WarehouseReader, limit: int) -> None:
    found, before = [], None
    while True:
        page = wh.timeline("home", 1, limit=limit, before=before)
        found += [(entry["post_id"], entry["at"]) for entry in page.entries]
        if (before := page.cursor) is None:
            break
    assert found == [(3, "infinity"), (1, TEXT), (0, NOON), (2, ANCIENT_TEXT), (4, None)]


def test_owner_of_a_timeline_may_be_a_far_time(wh: cdc_views.WarehouseReader) -> None:
    first = wh.timeline("owned", DAY_TEXT, limit=1)
    second = wh.timeline("owned", DAY_TEXT, limit=1, before=first.cursor)
    assert [*first.entries, *second.entries] == [{"user_id": DAY_TEXT, "post_id": number} for number in (1, 2)]


def test_search_has_far_times_as_texts(wh: cdc_views.WarehouseReader) -> None:
    found = wh.search("posts", "cat", sort="-created_at")
    assert [(hit.key, hit.document["created_at"]) for hit in found.hits] == [
        (3, "infinity"), (1, TEXT), (0, NOON), (2, ANCIENT_TEXT), (4, None),
    ]  # fmt: skip
    later = wh.search("posts", "cat", filter=[("created_at", ">=", TEXT)], sort="id")
    assert [hit.key for hit in later.hits] == [1, 3]
    assert [hit.key for hit in wh.search("posts", "cat", filter={"created_at": TEXT}).hits] == [1]


def test_changes_have_far_times_as_texts(wh: cdc_views.WarehouseReader, far: Far) -> None:
    [changed] = wh.changes("events", since=far.token)
    assert isinstance(changed, cdc_views.EpochChanges)
    assert [change.new for change in changed.rows() if change.new and change.new["id"] == 1] == [FAR_ROW]


def test_comparison_of_tables_shows_far_times(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(EVENTS, [(1, FAR, FAR_DAY, None)])
    old = shop.tables["events"]
    shop.write(dataclasses.replace(EVENTS, path="views/events/b"), [(1, INFINITY, FAR_DAY, None)])
    found = compare_versions(tmp_path, EVENTS, old, shop.tables["events"], None)
    assert found.samples == [
        {"kind": "different", "key": {"id": 1}, "old": {"at": TEXT}, "new": {"at": "infinity"}}
    ]  # fmt: skip


def test_commit_of_rows_with_far_keys_deletes_no_row_that_it_puts() -> None:
    rows, gone = (pa.table({"day": pa.array(days, pa.date32())}) for days in ([FAR_DAY, 0], [FAR_DAY, 1]))
    deleted = through_spark._without_keys_of(rows, gone, ["day"])
    assert deleted is not None
    assert deleted["day"].cast(pa.int32()).to_pylist() == [1]


# HTTP


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/views/events/rows/1", FAR_JSON),
        ("/views/events/cache/1", FAR_JSON),
        (f"/views/days/rows/{PATH_TEXT}/{DAY_TEXT}", {"at": TEXT, "day": DAY_TEXT, "n": 1}),
        (f"/views/days/cache/{PATH_TEXT}/{DAY_TEXT}", {"at": TEXT, "day": DAY_TEXT, "n": 1}),
    ],
)
def test_one_row_over_http(http: Client, path: str, wanted: dict[str, Any]) -> None:
    response = http.get(path)
    assert (response.status_code, response.json()) == (200, wanted)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/views/events/rows?key=1", [FAR_JSON]),
        (f'/views/days/rows?key=["{PATH_TEXT}","{DAY_TEXT}"]&columns=day', [{"day": DAY_TEXT}]),
        ("/query?sql=SELECT * FROM events WHERE id = 1", [FAR_JSON]),
        (f"/views/owned/timeline?owner={DAY_TEXT}&limit=1", [{"user_id": DAY_TEXT, "post_id": 1}]),
    ],
)
def test_rows_over_http(http: Client, path: str, wanted: list[dict[str, Any]]) -> None:
    assert http.get(path).json()["rows"] == wanted
    assert http.get(path, {"Accept": "application/x-ndjson"}).json() == wanted[0]
    table = pa.ipc.open_stream(http.get(path, ARROW).content).read_all()
    assert table.num_rows == len(wanted)
    for name in ("day", "user_id"):
        if name in table.column_names:
            assert table[name].cast(pa.int32()).to_pylist() == [FAR_DAY]


def test_kinds_over_http(http: Client) -> None:
    [row] = http.get("/views/events/cache?key=1").json()["rows"]
    assert row["row"] == FAR_JSON
    entries = http.get("/views/home/timeline?owner=1").json()["rows"]
    assert [entry["at"] for entry in entries] == ["infinity", TEXT, NOON.isoformat(), ANCIENT_TEXT, None]
    hits = http.get("/views/posts/search", q="cat", sort="-created_at", filter=f"created_at>={TEXT}").json()["rows"]
    assert [hit["document"]["created_at"] for hit in hits] == ["infinity", TEXT]


def test_kinds_over_http_as_arrow_have_the_times(http: Client) -> None:
    def column(path: str, *names: str) -> list[int]:
        found = pa.ipc.open_stream(http.get(path, ARROW).content).read_all().column(names[0]).combine_chunks()
        return (found.field(names[1]) if len(names) > 1 else found).cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]

    noon = pa.scalar(NOON, AT).value
    assert column("/views/events/cache?key=1", "row", "at") == [FAR]
    assert column("/views/home/timeline?owner=1", "at") == [INFINITY, FAR, noon, ANCIENT, None]
    assert column("/views/posts/search?q=cat&sort=-created_at", "document", "created_at") == [
        INFINITY, FAR, noon, ANCIENT, None,
    ]  # fmt: skip


def test_key_that_is_no_time_is_a_named_error(http: Client) -> None:
    for text in ("12000-02-30", "99999999-01-01", "12000-01-02T00:00:00Z"):
        assert problem(http.get(f"/views/days/rows/{PATH_TEXT}/{text}")) == (400, "BadKey")
    assert problem(http.get("/views/posts/search", q="cat", filter="created_at>=12000-01-02")) == (400, "BadSearch")


def test_changes_over_http(http: Client, far: Far) -> None:
    lines = {"Accept": "application/x-ndjson"}
    snapshot = map(json.loads, http.get("/views/events/changes", lines).text.splitlines())
    assert FAR_JSON in [row for part in snapshot for row in part["rows"]]
    assert FAR_JSON in http.get("/views/events/changes", lines, since=far.token).json()["inserted"]


# The command line


def run(project: Path, *arguments: str) -> Result:
    shown = CliRunner().invoke(main, ["-C", str(project), *arguments])
    assert shown.exit_code == 0, shown.output
    return shown


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]])
def test_commands_show_far_times(project: Path, form: list[str]) -> None:
    assert TEXT in run(project, "get", "events", "1", *form).stdout
    assert TEXT in run(project, "get", "days", TEXT, DAY_TEXT, *form).stdout
    assert ANCIENT_TEXT in run(project, "timeline", "home", "1", *form).stdout
    assert DAY_TEXT in run(project, "timeline", "owned", DAY_TEXT, *form).stdout
    assert TEXT in run(project, "search", "posts", "cat", *form).stdout
    assert TEXT in run(project, "query", "SELECT * FROM events", *form).stdout
    if form != ["--csv"]:
        assert TEXT in run(project, "changes", "events", *form).stdout


def test_command_shows_changes_with_far_times(project: Path, far: Far) -> None:
    assert TEXT in run(project, "changes", "events", "--since", far.token).stdout
