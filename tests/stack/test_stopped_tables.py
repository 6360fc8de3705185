"""A change that cannot be applied stops its table and the views that read it; the others go on, at every start."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_views.config import Settings, load_settings
from cdc_views.engine.capture.captures import current_settings
from cdc_views.engine.capture.declared import declare
from cdc_views.engine.capture.initial import Shown
from cdc_views.engine.capture.readiness import findings, require_ready
from cdc_views.engine.capture.start import resume_capture
from cdc_views.engine.epoch.swap import SwapRequest
from cdc_views.engine.service.destroy import destroy
from cdc_views.engine.service.engine import Engine
from cdc_views.engine.service.target import current_target
from cdc_views.errors import BadReplay, SchemaChanged, TableTruncated, UnsupportedView, ViewFailed
from cdc_views.plan import compiled
from cdc_views.replay.origin import Origin
from cdc_views.replay.plan import plan_rebuild
from cdc_views.replay.reset import reset
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.store.control.control_log import read_control
from cdc_views.store.control.details import ShadowTable
from cdc_views.testing.crash import crash_at
from cdc_views.views.references import ParsedQuery
from tests.fix_kafka import CaptureOf
from tests.fix_postgres import Database
from tests.fix_project import Project

STOPS = (SchemaChanged, TableTruncated)
# By table: what is done to it while an engine runs, and what makes a table of the same name and columns again.
ALL_WHILE_RUNNING = {
    "widened": (["ALTER TABLE widened ADD w int", "INSERT INTO widened VALUES (0, 0, 0)"],
                ["ALTER TABLE widened DROP w"]),
    "emptied": (["TRUNCATE emptied", "INSERT INTO emptied VALUES (0, 0)"], []),
    "unseen": (["ALTER TABLE unseen DISABLE TRIGGER USER", "TRUNCATE unseen"],
               ["ALTER TABLE unseen ENABLE TRIGGER ALL"]),
    "unpublished": (["ALTER PUBLICATION {publication} DROP TABLE unpublished"], []),
}  # fmt: skip
ALL_WHILE_DOWN = {
    "dropped": (["DROP TABLE dropped"], ["CREATE TABLE dropped (id int PRIMARY KEY, v int NOT NULL)"]),
    "refused": (["ALTER TABLE refused ADD w regclass"], ["ALTER TABLE refused DROP w"]),
    "renamed": (["ALTER TABLE renamed RENAME TO other"], ["ALTER TABLE other RENAME TO renamed"]),
    "rewritten": (["ALTER TABLE rewritten ALTER v TYPE bigint", "INSERT INTO rewritten VALUES (0, 0)"],
                  ["ALTER TABLE rewritten ALTER v TYPE int"]),
}  # fmt: skip
ACTS = int(os.environ.get("CDC_VIEWS_STOPS", "2"))  # the first of each kind; `just nightly`: 4
WHILE_RUNNING, WHILE_DOWN = (dict([*acts.items()][:ACTS]) for acts in (ALL_WHILE_RUNNING, ALL_WHILE_DOWN))
# Nobody knows when their rows were changed: they stop as they were in the last epoch.
UNDATED = {"unseen"}
POINTS = ("epoch.after_intent", "epoch.after_mirrors", "epoch.before_publish", "epoch.after_publish")
TABLES = [*WHILE_RUNNING, *WHILE_DOWN, "kept", "last"]
VIEWED = ("widened", "emptied", "dropped", "kept")
VIEWS = {f"of_{table}": f"SELECT v % 3 AS rest, sum(v) AS total FROM {table} GROUP BY v % 3" for table in VIEWED} | {
    "above_widened": "SELECT rest, total FROM of_widened WHERE total > 0",
    "above_kept": "SELECT rest, total FROM of_kept WHERE total > 0",
    "both": "SELECT kept.id, kept.v + last.v AS v FROM kept JOIN last USING (id)",
}
Rows = list[tuple[Any, ...]]


class World:
    """A project of many tables, with views over some, views over those, and one over two tables that go on."""

    def __init__(self, project: Project, spark: SparkSession) -> None:
        self.project = project
        self.spark = spark
        self.stopped: dict[str, Rows] = {}

    @property
    def settings(self) -> Settings:
        """The settings with the names of the current capture."""
        return current_settings(load_settings(self.project.folder))

    def engine(self) -> Engine:
        """An engine as `run` begins it."""
        settings = self.settings
        require_ready(settings)
        resume_capture(settings)
        return Engine(settings, self.spark)

    def catch_up(self, engine: Engine) -> None:
        """Publish all that was committed."""
        engine.run(until=current_target(self.settings))

    def change(self, *but: str) -> None:
        """Change rows of all tables that are not stopped."""
        for table in self.live:
            if table not in but:
                self.execute(
                    f"INSERT INTO {table} SELECT coalesce(max(id), 0) + 1, 1 FROM {table}",
                    f"UPDATE {table} SET v = v + 1",
                )

    def execute(self, *statements: str) -> None:
        """Run statements in the source."""
        publication = self.settings.source.publication
        self.project.database.execute(*(each.format(publication=publication) for each in statements))

    @property
    def live(self) -> list[str]:
        """The tables that are not stopped."""
        return [table for table in TABLES if table not in self.stopped]

    def rows(self, table: str) -> Rows:
        """What Postgres has."""
        return sorted(self.project.database.execute(f"SELECT id, v FROM {table}"))

    def stop(self, table: str, statements: list[str]) -> None:
        """Do what stops a table; what readers are to find in it from now on is what it had before."""
        self.stopped[table] = self.rows(table)
        self.execute(*statements)

    def assert_exact(self) -> None:
        """Mirrors are what Postgres has, or had before they were stopped; views are of them, or failed."""
        tables, detail = self.project.published().tables, self.project.published().detail
        assert {name for name, table in tables.items() if table.status == "stopped"} == set(map(public, self.stopped))
        assert set(detail.get("stopped", {})) == set(map(public, self.stopped))
        for table in TABLES:
            assert self.project.rows(public(table)) == (
                self.stopped[table] if table in self.stopped else self.rows(table)
            ), table
            for view in VIEWS.keys() & {f"of_{table}", f"above_{table}"}:
                assert tables[view].status == ("failed" if table in self.stopped else "live"), view
            if table in VIEWED:
                total = sum(total for _, total in self.project.rows(f"of_{table}"))
                assert total == sum(v for _, v in self.project.rows(public(table))), table
        is_live = not self.stopped.keys() & {"kept", "last"}
        assert tables["both"].status == ("live" if is_live else "failed")
        if is_live:
            assert self.project.rows("both") == sorted(self.project.database.execute(VIEWS["both"]))


def public(table: str) -> str:
    """The name of a table in a manifest."""
    return f"public.{table}"


@pytest.fixture
def world(
    tmp_path: Any, database: Database, capture: CaptureOf, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """A project that is captured and has published once."""
    for table in TABLES:
        database.execute(
            f"CREATE TABLE {table} (id int PRIMARY KEY, v int NOT NULL)",
            f"INSERT INTO {table} SELECT g, g FROM generate_series(1, 9) g",
        )
    project = Project(tmp_path, database, capture(*map(public, TABLES)), spark)
    project.configure()
    for view, query in VIEWS.items():
        project.view(f"CREATE MATERIALIZED VIEW {view} AS {query};\n", view)
    monkeypatch.setenv("PROJECT_DSN", project.dsn)
    project.capture.start()
    made = World(project, spark)
    with made.engine() as engine:
        made.catch_up(engine)
    yield made
    assert destroy(made.settings, lambda text: None) == []


def parts(tables: Iterable[str], size: int) -> list[list[str]]:
    """The tables in their order, at most so many in each part."""
    listed = list(tables)
    return [listed[start : start + size] for start in range(0, len(listed), size)]


@pytest.mark.proves(
    wrong="DDL or TRUNCATE on one of several captured tables, with or without a running engine",
    seen=(
        "the table is `stopped` in `status` with `SchemaChanged` or `TableTruncated`, and the views that read it have "
        "failed; the others go on"
    ),
    do="run `cdc-views reset`",
)
@pytest.mark.parametrize("at_once", [ACTS, pytest.param(1, marks=pytest.mark.nightly)], ids=["all", "one by one"])
def test_stopped_tables_keep_their_rows_and_the_others_go_on_until_a_reset(world: World, at_once: int) -> None:
    with world.engine() as engine:
        for tables in parts(WHILE_RUNNING, at_once):
            world.change()
            if UNDATED & {*tables}:
                world.catch_up(engine)
            for table in tables:
                world.stop(table, WHILE_RUNNING[table][0])
            world.change()
            world.catch_up(engine)
            world.assert_exact()
            with pytest.raises(STOPS):
                engine.require_none_stopped()
    for tables in parts(WHILE_DOWN, at_once):
        world.change()
        for table in tables:
            world.stop(table, WHILE_DOWN[table][0])
        world.change()
        with world.engine() as engine:
            world.catch_up(engine)
            world.assert_exact()
            with pytest.raises(STOPS):
                engine.require_none_stopped()
            world.change()
            world.catch_up(engine)
            world.assert_exact()
    assert_told(world)
    world.execute(*(each for _, again in (WHILE_RUNNING | WHILE_DOWN).values() for each in again))
    world.project.fix()
    with world.engine() as engine:
        world.catch_up(engine)
        world.assert_exact()  # a table that is as it was before stays stopped: nobody knows what is missing
    reset(load_settings(world.project.folder), lambda: world.spark, SILENT)
    world.stopped = {}
    with world.engine() as engine:
        world.change()
        world.catch_up(engine)
        world.assert_exact()
        engine.require_none_stopped()


SILENT = Shown(lambda expected: lambda progress: None, lambda word: lambda progress: None)


def assert_told(world: World) -> None:
    """Readers, `check` and a rebuild name the stop."""
    with world.project.database.connect() as connection:
        declared = declare(world.settings, connection, read_control(world.project.warehouse))
    for name in ("public.emptied", "above_widened"):
        with pytest.raises(BadReplay, match=r'table "public\.\w+" is stopped'):
            plan_rebuild(declared, [name], Origin("snapshot"))
    assert plan_rebuild(declared, ["above_kept"], Origin("snapshot")).names == ("public.kept", "of_kept", "above_kept")
    epoch = PublishedEpoch.latest(world.project.warehouse)
    view = epoch.tables["of_emptied"]
    request = SwapRequest("again", "swap", {"of_emptied": ShadowTable(view.path, view.version, epoch.record.epoch)})
    refused = pytest.raises(BadReplay, match='"of_emptied" is stopped, or reads one that is')
    with Engine(world.settings, world.spark, request=request) as engine, refused:
        engine.swap()
    with pytest.raises(SchemaChanged, match=r'"public\.widened" is stopped: .*"ALTER TABLE"') as raised:
        epoch.table("public.widened")
    assert "its last good rows, of position" in str(raised.value.hint)
    with pytest.raises(ViewFailed, match=r'reads table "public\.emptied", which is stopped'):
        epoch.table("of_emptied")
    found = findings(world.settings)
    assert {each.severity for each in found} <= {"warning", "info"}, found
    warned = {each.subject for each in found if "is stopped at position" in each.problem}
    assert warned == {f'table "public.{table}"' for table in world.stopped}


@pytest.mark.nightly
def test_published_view_that_a_later_version_refuses_has_failed_and_ends_no_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(query: ParsedQuery, known: frozenset[str]) -> None:
        if query.definition.name == "of_kept":
            raise UnsupportedView("views/of_kept.sql:1:1: is refused now")

    rows = world.project.rows("of_kept")
    world.change()
    with monkeypatch.context() as later:
        later.setattr(compiled, "check_support", refuse)
        with world.engine() as engine:
            world.catch_up(engine)
        [told] = [each for each in findings(world.settings) if each.severity == "error"]
        assert (told.subject, told.problem) == ('view "of_kept"', "views/of_kept.sql:1:1: is refused now")
    published = world.project.published()
    assert {name for name, table in published.tables.items() if table.status != "live"} == {"of_kept", "above_kept"}
    assert published.detail["failures"]["of_kept"] == "views/of_kept.sql:1:1: is refused now"
    assert world.project.rows("of_kept") == rows
    assert world.project.rows("both") == sorted(world.project.database.execute(VIEWS["both"]))
    with world.engine() as engine:
        world.catch_up(engine)
        world.assert_exact()


@pytest.mark.nightly
def test_epoch_that_stops_a_table_is_finished_after_a_crash_and_the_last_table_ends_the_engine(world: World) -> None:
    for table, point in zip(TABLES, POINTS, strict=False):
        world.change()
        with world.engine() as engine:
            world.catch_up(engine)
            world.stop(table, [f"TRUNCATE {table}"])
            world.change()
            with crash_at(point):
                world.catch_up(engine)
        with world.engine() as engine:
            world.change()
            world.catch_up(engine)
            world.assert_exact()
    for table in world.live[:-1]:
        world.stop(table, [f"TRUNCATE {table}"])
    world.change()
    with world.engine() as engine:
        world.catch_up(engine)
        world.assert_exact()
        before = world.project.published()
        world.execute("TRUNCATE last")
        with pytest.raises(TableTruncated, match=r'table "public\.last"'):
            world.catch_up(engine)
    assert world.project.published() == before
