"""New and edited views that are built beside the epochs: right when they join, and in every epoch after that."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_views.engine.building import Beside, Build
from cdc_views.engine.building.build import CannotBuild
from cdc_views.errors import UnequalRows, ViewBeingBuilt
from cdc_views.faults import InjectedFault
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.sql import query
from cdc_views.store.control import BUILDING, ControlRecord, PublishedDetail
from cdc_views.testing import Change, Delete, Insert, Update, ViewHarness
from tests.building import build_any_size, without_thread
from tests.seed import drawn
from tests.waiting import wait_for

TABLES = (
    "CREATE TABLE t (id bigint PRIMARY KEY, g bigint, v bigint, s text)",
    "CREATE TABLE u (id bigint PRIMARY KEY, t_id bigint, w bigint)",
)
VIEWS = {
    "grouped": "SELECT upper(s) AS s, count(*) AS n, sum(v) AS total FROM t GROUP BY upper(s)",  # has an internal view
    "joined": "SELECT t.id, u.id AS other, t.v, u.w FROM t JOIN u ON u.t_id = t.id",
    "top": "SELECT * FROM (SELECT id, g, v, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS place FROM t) "
           "WHERE place <= 3",
    "above": "SELECT v, count(*) AS n, max(w) AS most FROM joined GROUP BY v",
    # Has an internal view with one of its own.
    "best": "SELECT b.g, b.n, t.id FROM (SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n DESC, g LIMIT 2) b "
            "JOIN t ON t.g = b.g",
}  # fmt: skip
COLUMNS = {"t": ("g", "v", "s"), "u": ("t_id", "w")}
OLD = "SELECT id, v FROM t WHERE v > 2"
INTERNAL = {"_cv_grouped_1", "_cv_best_1", "_cv__cv_best_1_1"}
LIMIT_S = 300


class Project:
    """A harness with one live view, and the means to write random changes and to build other views beside it."""

    def __init__(self, harness: ViewHarness, spark: SparkSession, seed: int) -> None:
        self.harness, self.spark = harness, spark
        self._random = random.Random(seed)
        self._keys = {"t": set[int](), "u": set[int]()}
        self._last = 0

    def write(self, count: int = 5) -> None:
        """Publish an epoch with random changes; the live view is right in it."""
        self.harness._log.write(self.harness._source.commit([self._change() for _ in range(count)]))
        assert self.harness.run_epoch() is not None
        self.require_right("live")

    def require_right(self, name: str) -> None:
        found, wanted = (sorted(rows, key=repr) for rows in (self.harness.rows(name), self.harness.recomputed(name)))
        assert found == wanted

    def _change(self) -> Change:
        table = self._random.choice("tu")
        row: dict[str, Any] = {name: self._random.choice([None, 0, 1, 2, 3]) for name in ("g", "v", "w")}
        row |= {"s": self._random.choice("abAB"), "t_id": self._random.choice([None, *self._keys["t"]])}
        row = {name: value for name, value in row.items() if name in COLUMNS[table]}
        if (keys := sorted(self._keys[table])) and self._random.random() < 0.6:
            key = self._random.choice(keys)
            if self._random.random() < 0.4:
                self._keys[table].remove(key)
                return Delete(table, {"id": key})
            return Update(table, {"id": key}, row)
        self._last += 1
        self._keys[table].add(self._last)
        return Insert(table, {"id": self._last, **row})

    def declare(self, views: dict[str, str] = VIEWS) -> None:
        for name, sql in views.items():
            if name in self.harness.views:
                self.harness.drop_view(name)
            self.harness.create_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}")

    def beside(self) -> Beside:
        return Beside(self.spark, self.harness._tables, self.harness._writer.views)

    def by_hand(self) -> tuple[Beside, list[Build]]:
        """The views that no epoch has, taken out of the epochs; the caller does what the thread would."""
        beside = without_thread(self.beside())
        beside.begin(self.takeover)
        return beside, list(beside._builds.values())

    @property
    def takeover(self) -> ControlRecord:
        return next(record for record in reversed(self.harness.records) if record.kind == "takeover")

    @property
    def last(self) -> ControlRecord:
        return [record for record in self.harness.records if record.published_at is not None][-1]

    def restart(self) -> None:
        self.harness.restart()


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views over small tables are built beside the epochs, too."""
    build_any_size(monkeypatch)


@pytest.fixture(params=[random.randrange(2**32)])
def project(spark: SparkSession, any_size: None, request: pytest.FixtureRequest) -> Iterator[Project]:
    with ViewHarness(TABLES, spark, partitions=1) as harness:
        harness.create_view(f"CREATE MATERIALIZED VIEW live AS {OLD}")
        made = Project(harness, spark, request.param)
        made.write(40)
        yield made


def joined(project: Project, beside: Beside, builds: list[Build]) -> None:
    """Let the builds join as the thread's end would."""
    beside._ended = dict.fromkeys(range(len(builds)))
    with project.harness._writing():
        beside.join()


def test_views_join_at_one_epoch_and_are_right_in_it_and_after(project: Project) -> None:
    project.declare()
    beside, builds = project.by_hand()
    assert sorted(map(sorted, (build.names for build in builds))) == [
        ["_cv__cv_best_1_1", "_cv_best_1", "best"],
        ["_cv_grouped_1", "grouped"],
        ["above", "joined"],
        ["top"],
    ]
    for build in builds:
        build.bring_to(project.last)
        project.write()
        project.write(1)
        assert not project.last.tables.keys() & VIEWS.keys()
        build.bring_to(project.last)
        project.write(2)
    joined(project, beside, builds)
    project.write(1)
    assert {project.last.tables[name].status for name in VIEWS} == {"live"}
    project.harness.verify()
    ways = PublishedDetail.read(project.last).ways.get("view", {})
    assert "full" not in ways.values(), ways
    for _ in range(5):
        project.write(3)
        project.harness.verify()


def test_view_that_joins_with_the_rows_of_an_older_epoch_is_found(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: the check of the other tests sees a build that does not follow."""
    project.declare({"joined": VIEWS["joined"]})
    beside, builds = project.by_hand()
    builds[0].bring_to(project.last)
    project.write(30)
    build, old = builds[0], builds[0].at
    assert old is not None
    build.at = replace(project.last, tables={**project.last.tables, "joined": old.tables["joined"]})
    monkeypatch.setattr(build, "bring_to", lambda epoch, **_: None)
    joined(project, beside, builds)
    project.harness.run_epoch()
    with pytest.raises(UnequalRows):
        project.harness.verify()


def test_readers_are_told_that_a_view_is_being_built_and_where_its_old_rows_are(project: Project) -> None:
    before = project.last.tables["live"]
    project.declare({"live": OLD.replace("2", "1"), "top": VIEWS["top"]})
    beside, builds = project.by_hand()
    project.harness._log.write(project.harness._source.commit([Insert("u", {"id": 900})]))
    project.harness.run_epoch()
    epoch = PublishedEpoch(project.harness.warehouse, project.last)
    assert epoch.tables["live"] == replace(before, status=BUILDING)
    assert "top" not in epoch.tables
    with pytest.raises(ViewBeingBuilt, match='view "live" is being built: waiting for its turn') as error:
        epoch.table("live")
    assert f"version {before.version} of {before.path}" in str(error.value.hint)
    for name in ("live", "top"):
        with pytest.raises(ViewBeingBuilt):
            query(epoch, f"SELECT * FROM {name}")
    # An epoch without changes says so, too, and there is one only after its interval.
    assert project.harness.run_epoch(idle_interval_s=3600) is None
    project.harness.run_epoch()
    assert project.last.is_idle
    assert project.last.tables["live"].status == BUILDING
    for build in builds:
        build.bring_to(project.last)
    joined(project, beside, builds)
    project.write()
    assert not PublishedDetail.read(project.last).building
    project.harness.verify()


def test_edit_that_is_taken_back_while_it_is_built_is_computed_again(project: Project) -> None:
    old = project.last.tables["live"].path
    project.declare({"live": OLD.replace("2", "1")})
    _, builds = project.by_hand()
    project.harness._log.write(project.harness._source.commit([Insert("t", {"id": 901, "v": 3})]))
    project.harness.run_epoch()
    project.harness._tables.take_back(builds[0].specs.values())  # the harness drops a view from its tables
    project.declare({"live": OLD})
    project.restart()
    assert (project.last.tables["live"].path, project.last.tables["live"].status) == (old, "live")
    project.harness.verify()


@pytest.mark.parametrize("point", drawn(1, ["views.after_first_commit", "epoch.after_intent", "epoch.before_publish"]))
def test_crash_while_views_are_built_or_join_leaves_every_epoch_right(project: Project, point: str) -> None:
    project.declare()
    beside, builds = project.by_hand()
    for build in builds[:1]:
        build.bring_to(project.last)
    for _ in range(2):
        project.write()
        for build in builds[1:]:
            build.bring_to(project.last)
    joined(project, beside, builds)
    with project.harness.crash_at(point):
        project.harness._log.write(project.harness._source.commit([project._change() for _ in range(9)]))
        project.harness.run_epoch()
    project.restart()
    project.harness.verify()
    project.write()
    project.harness.verify()


def test_engine_that_restarts_in_the_midst_of_a_build_begins_it_anew(project: Project) -> None:
    project.declare()
    _, builds = project.by_hand()
    for build in builds:
        build.bring_to(project.last)
    project.write()
    h = project.harness
    h._start()
    beside, builds = project.by_hand()
    assert {name for build in builds for name in build.names} == {*VIEWS, *INTERNAL}
    project.write()
    for build in builds:
        build.bring_to(project.last)
    joined(project, beside, builds)
    project.write()
    h.verify()


# If one of its rows is removed, only the whole table says which one follows: it is ordered by a computed value.
FIRST = "SELECT id, v FROM t ORDER BY id + 0, id LIMIT 2"


def test_view_that_changes_do_not_suffice_for_is_filled_again_beside_the_epochs(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.harness.apply([Insert("t", {"id": -number}) for number in range(9)])
    project.declare({"first": FIRST})
    beside, [build] = project.by_hand()
    build.bring_to(project.last)
    for fills in (1, 2):
        project.harness.apply([Delete("t", {"id": min_of(project)})])
        joined(project, beside, [build])
        assert (build.at, build.fills, set(project.harness._tables.building)) == (None, fills, {"first"})
        assert beside._turns.get_nowait() == 0
        build.bring_to(project.last)
    monkeypatch.setattr("cdc_views.engine.building.beside._MOST_FILLS", build.fills)
    project.harness.apply([Delete("t", {"id": min_of(project)})])
    joined(project, beside, [build])
    assert not project.harness._tables.building
    project.write()
    project.harness.verify()


def min_of(project: Project) -> int:
    """The id of the first row of `t`."""
    return min(row[0] for row in project.harness.rows("t"))


def test_view_that_cannot_be_built_fails_in_the_next_epoch_and_alone(project: Project) -> None:
    project.harness.apply([Insert("t", {"id": 900, "g": 1, "v": 1})])
    project.declare({"bad": "SELECT id, v / (g - g) AS x FROM t", "top": VIEWS["top"]})
    beside, builds = project.by_hand()
    project.write()
    bad, top = sorted(builds, key=lambda build: sorted(build.names))
    with pytest.raises(CannotBuild):
        bad.bring_to(project.last)
    top.bring_to(project.last)
    beside._ended = {builds.index(bad): CannotBuild("it divides by zero"), builds.index(top): None}
    with project.harness._writing():
        beside.join()
    project.write()
    assert {name: project.last.tables[name].status for name in ("bad", "top", "live")} == {
        "bad": "failed", "top": "live", "live": "live",
    }  # fmt: skip
    project.require_right("top")


def test_thread_builds_while_epochs_are_published(project: Project) -> None:
    project.declare()
    beside = project.beside()
    with project.harness._writing():
        beside.begin(project.takeover)
    try:
        names = set(project.harness._tables.building)
        assert names == VIEWS.keys()

        def has_joined() -> bool:
            with project.harness._writing():
                beside.join()
            project.write(3)
            return not project.harness._tables.building

        wait_for(has_joined, LIMIT_S)
    finally:
        beside.stop()
    assert {project.last.tables[name].status for name in VIEWS} == {"live"}
    project.harness.verify()


def test_error_that_stops_the_engine_ends_the_build_and_is_raised_between_epochs(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise InjectedFault("as a full disk")

    project.declare({"top": VIEWS["top"]})
    monkeypatch.setattr(Build, "bring_to", broken)
    beside = project.beside()
    beside.begin(project.takeover)
    wait_for(lambda: not beside._thread.is_alive(), LIMIT_S)
    with pytest.raises(InjectedFault):
        beside.join()


def test_views_over_small_tables_are_left_to_the_epochs(spark: SparkSession) -> None:
    with ViewHarness(TABLES, spark, partitions=1) as harness:
        project = Project(harness, spark, 1)
        harness.create_view(f"CREATE MATERIALIZED VIEW live AS {OLD}")
        project.write()
        project.declare()
        assert project.by_hand()[1] == []
        project.write()
        harness.verify()
