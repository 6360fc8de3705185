"""Pairs of crashes while views are built beside the epochs: one at a point, and one at a point of a start after it.

Each start finds views that are to be built: two edited ones, of which one has an internal view and the other reads it,
and two new ones, of which one is a search index. The engine may crash before they are filled, while they follow, or
when they join. Each epoch must have what DuckDB makes of the balances, and no epoch may compute a view in full. Each
view must join once, in a table that no earlier engine has built. Upkeep must remove the tables of builds that crashed,
and keep those of builds that go on.

All of them: `just crash-pairs`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc_views.config import UpkeepSettings
from cdc_views.engine.upkeep.maintenance import Upkeep
from cdc_views.store.control import BUILDING, INTERNAL_VIEW_FOLDER, VIEW_FOLDER, ControlRecord
from cdc_views.testing import POINTS, HandClock, assert_equal, crash_at
from tests.building import BuildingHarness, build_any_size
from tests.crash_pairs import HALF_DONE, crashes, pairs
from tests.spark.test_crash_pairs import VIEWS, View, answers, assert_index_is_right, ways
from tests.spark.test_engine_recovery import EIGHT_DAYS_S, TABLES, Bank

PARTS = ("takeover", "building", "bulk", "epoch", "mirrors", "views", "recovery", "abandon")
REACHED = sorted(point for point in POINTS if point.split(".")[0] in PARTS)
OF_EPOCHS = ("epoch", "mirrors", "views")  # each epoch reaches these
# The first commit may be one to a view that is being built; then no epoch is half done.
OUTSIDE = frozenset({"views.after_first_commit"})
SOME = 2

EDITED, NEW = slice(2), slice(2, None)  # of an edition
LIVE = {"totals": VIEWS["totals"]}
# All epochs stay readable, and a table that none of them has goes at once; then only what the last epoch has is kept.
ALL_EPOCHS = UpkeepSettings(keep_epochs=100_000, keep_hours=0, keep_tables_hours=0)
LAST_EPOCH = UpkeepSettings(keep_epochs=1, keep_hours=0, keep_tables_hours=0)


def edition(number: int) -> dict[str, View]:
    """The views that are built: two that each edition has edited, and two that the one before it does not have."""
    return {
        "holders": replace(VIEWS["saved"], sql=f"{VIEWS['saved'].sql} WHERE s.id <> {number % 3}"),
        "above": View("SELECT balance, count(*) AS n FROM holders GROUP BY balance", "add"),
        f"newest_{number % 2}": VIEWS["newest"],
        f"texts_{number % 2}": VIEWS["texts"],
    }


class Project(Bank):
    """A bank whose views are declared again and again, and what every epoch must hold of them."""

    harness: BuildingHarness

    def __init__(self, harness: BuildingHarness, root: Path) -> None:
        super().__init__(harness, root)
        self._editions: list[tuple[int, Mapping[str, View]]] = []  # with the number of epochs before each

    def declare(self) -> None:
        """Edit the views, as a user does before a start."""
        for name in [name for name in reversed(self.harness.views) if name not in LIVE]:
            self.harness.drop_view(name)
        views = edition(len(self._editions))
        for name, view in views.items():
            self.harness.create_view(view.statement(name))
        self._editions.append((len(self.published()), views))

    def start(self, chance: random.Random) -> None:
        """Start the engine, which has views to build."""
        last = self.published()[-1].tables
        has_joined = all(name in last and last[name].status == "live" for name in self.harness.views)
        if has_joined or chance.random() < 0.2:
            self.declare()
        self.harness.restart()

    def steps(self, chance: random.Random) -> list[Callable[[], None]]:
        """From a start to the epoch after all views have joined, the edited ones first or the new ones."""
        epoch = partial(self.transfer, chance)
        one, other = chance.sample((EDITED, NEW), 2)
        return [
            partial(self.start, chance), epoch,
            partial(self.follow, one), epoch,
            partial(self.follow, other), partial(self.follow, one), epoch,
            partial(self.end, one), epoch,
            partial(self.end, other), epoch,
            epoch,
        ]  # fmt: skip

    def follow(self, part: slice) -> None:
        """Fill a part of the views, or bring them to the last epoch."""
        for name in [*self._editions[-1][1]][part]:
            self.harness.follow(name)

    def end(self, part: slice) -> None:
        """Let a part of the views join before the next epoch."""
        for name in [*self._editions[-1][1]][part]:
            self.harness.end(name)

    def crash(self, point: str, chance: random.Random) -> None:
        """Do the steps up to the point; if each epoch reaches it, some steps come first. Raises FaultNotReached."""
        if point == "abandon.after_first_restore":
            assert isinstance(self.harness.clock, HandClock)
            self.harness.clock.advance(EIGHT_DAYS_S)
        steps = self.steps(chance)
        least = 1 if point == HALF_DONE else 0  # that of a start may have no changes, so nothing is half done
        before = chance.randrange(least, len(steps) - 1) if point.startswith(OF_EPOCHS) else 0
        for step in steps[:before]:
            step()
        with crash_at(point):
            for step in steps[before:]:
                step()

    def assert_views_are_right(self, since: int) -> None:
        published = self.published()
        starts = [*self._editions, (len(published), {})]
        for (first, views), (end, _) in pairwise(starts):
            for record in published[max(first, since) : end]:
                wanted = answers(self.states[str(record.position)], {**LIVE, **views})
                for name in live(record, wanted):
                    assert_equal(self.rows(record, name), wanted[name], f"{name} of {record.epoch}")
                    if name.startswith("texts"):
                        assert_index_is_right(self, record, name)
            for name in views:
                assert_joined_once(name, published[first:end])
        assert live(published[-1], self.harness.views) == self.harness.views
        self.harness.verify()
        built = [path for start in self.harness.built for path in start]
        assert len(set(built)) == len(built), "the engine that crashed may still write to a table that it has built"

    def assert_no_table_is_left(self) -> None:
        """Once nobody reads an older epoch, upkeep leaves the tables that the last one has."""
        harness = self.harness
        Upkeep(self.root, harness._tables, harness._control, LAST_EPOCH).run()
        found = {
            f"{folder}{table.relative_to(self.root / folder)}"
            for folder in (VIEW_FOLDER, INTERNAL_VIEW_FOLDER)
            for table in (self.root / folder).glob("*/*")
        }
        published = {table.path for table in self.published()[-1].tables.values()}
        assert found == {path for path in published if path.startswith((VIEW_FOLDER, INTERNAL_VIEW_FOLDER))}


def live(record: ControlRecord, names: Iterable[str]) -> list[str]:
    """The views that an epoch has; it may lack those that are being built, and no other."""
    statuses = {name: record.tables[name].status for name in names if name in record.tables}
    assert set(statuses.values()) <= {"live", BUILDING}, record.tables
    found = [name for name, status in statuses.items() if status == "live"]
    assert LIVE.keys() & set(names) <= set(found), record.tables
    return found


def assert_joined_once(name: str, epochs: Sequence[ControlRecord]) -> None:
    """From the epoch at which a view has joined, all that were published with its definition have its table."""
    tables = [record.tables[name].path if live(record, [name]) else None for record in epochs]
    joined = [path for path in tables if path is not None]
    assert len(set(joined)) <= 1, tables
    assert tables[len(tables) - len(joined) :] == joined, tables


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Project]:
    """One for all pairs, each of which goes on where the last one has ended."""
    root = tmp_path_factory.mktemp("building")
    with pytest.MonkeyPatch.context() as patched:
        build_any_size(patched)
        with BuildingHarness(TABLES, spark, warehouse=root, clock=HandClock(), upkeep=ALL_EPOCHS) as harness:
            for name, view in LIVE.items():
                harness.create_view(view.statement(name))
            project = Project(harness, root)
            project.transfer(random.Random(0))
            yield project


@pytest.mark.proves(
    wrong="Two crashes in a row while a new or edited view is being built, or when it joins",
    seen="no error; the view is `building` again until it joins",
    do="start the engine again, which builds the view from the start",
)
@pairs(REACHED, SOME)
def test_views_join_once_and_right_after_two_crashes(project: Project, first: str, second: str) -> None:
    chance = random.Random(f"{first} {second}")
    before = len(project.published())
    for point in crashes(first, second, OUTSIDE):
        project.crash(point, chance)
    for step in project.steps(chance):
        step()
    project.assert_every_epoch_is_right(since=before)
    project.assert_views_are_right(since=before)
    taken = ways(project.published()[before:])
    assert not [name for name, found in taken.items() if {"full", "failed"} & found], taken
    project.assert_no_table_is_left()
