"""Slots of upkeep, and the tables that nobody reads any more; without a JVM."""

from __future__ import annotations

import errno
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import cast
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cdc_views.config import UpkeepSettings
from cdc_views.engine.epoch.recovery import take_over
from cdc_views.engine.epoch.steps import EpochWriter
from cdc_views.engine.tables import Tables, as_published, mirror_spec, path_part
from cdc_views.engine.upkeep.maintenance import Upkeep
from cdc_views.engine.views.maintain import ViewResult, ViewRunner
from cdc_views.errors import DiskFull, Fenced, WarehouseUnusable
from cdc_views.replay.unfinished import WantedRebuild, claimed
from cdc_views.store.control.control_log import ControlLog, ControlRecord, TableVersion
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.delta_log.versions import Stamp
from cdc_views.store.index.driver_table import DriverTable
from cdc_views.store.storage import unusable
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from cdc_views.store.warehouse import Changes, Warehouse
from cdc_views.testing import HandClock, Insert, Update
from cdc_views.testing.memory.ddl import read_tables
from cdc_views.testing.memory.memory_log import MemoryLog
from cdc_views.testing.memory.memory_source import MemorySource

pytestmark = pytest.mark.usefixtures("without_fsync")

SETTINGS = UpkeepSettings(merged_files=3, keep_hours=0, keep_epochs=2, keep_tables_hours=0, share=1)
ROWS = pa.schema([("id", pa.int64()), ("n", pa.string())])
VIEW = TableSpec("a_view", "views/a_view/f", ROWS, ("id",))
INTERNAL = TableSpec("_cv_a_view_1", "internal_views/_cv_a_view_1/f", ROWS, ("id",))
NO_SPARK = cast(SparkSession, None)


class NoViews(ViewRunner):
    """A project without views, whose engine asks Spark for nothing."""

    def maintain(self, *_: object) -> dict[str, ViewResult]:
        return {}


class Engine:
    """Mirrors alone, by the engine's own epochs."""

    def __init__(self, root: Path) -> None:
        declared = read_tables("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)")
        sources = [table.source for table in declared]
        self.clock, self.root = HandClock(), root
        self.source = MemorySource(declared, self.clock)
        self.log = MemoryLog(sources, self.clock, partitions=1, validity_s=1e9)
        self.control = ControlLog.open(root, "w", self.clock)
        self.tables = Tables(Warehouse(root, NO_SPARK), "g", sources)
        self.writer = EpochWriter(self.log, self.tables, NoViews(NO_SPARK, []), self.control)
        take_over(self.control, self.tables, {})
        self.tables.skip(self.log.begin())
        self.chance = random.Random(1)
        self.epoch([Insert("t", {"id": key, "n": 0}) for key in range(20)])

    def epoch(self, changes: list[Insert] | list[Update] | None = None) -> ControlRecord:
        keys = self.chance.sample(range(20), 2)
        some = changes or [Update("t", {"id": key}, {"n": self.chance.randrange(99)}) for key in keys]
        self.log.write(self.source.commit(some))
        record = self.writer.run(0)
        assert record is not None
        return record

    def maintenance(self, settings: UpkeepSettings = SETTINGS) -> Upkeep:
        return Upkeep(self.root, self.tables, self.control, settings)

    def damaged(self, spec: TableSpec) -> Path:
        """A table with a compaction due, and a file whose pages cannot be read."""
        self.tables.add(spec)
        for number in range(5):
            rows = pa.table([range(100 * number, 100 * number + 100), ["some text"] * 100], schema=ROWS)
            stamp = Stamp(1, self.control.new_attempt(), "0/1")
            version = self.tables.warehouse.commit(
                spec, self.tables.version(spec.name), Changes(None, rows, all_new=True), stamp
            )
            self.tables.stand_at({spec.name: version})
        file = next((self.root / spec.path).glob("*.parquet"))
        content = file.read_bytes()
        file.write_bytes(content[:10] + bytes(50) + content[60:])
        return file

    def table(self, path: str) -> Path:
        folder = self.root / path
        (folder / "_delta_log").mkdir(parents=True)
        return folder


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def test_slot_without_a_share_of_the_time_does_nothing(engine: Engine) -> None:
    for _ in range(6):
        engine.epoch()
    version = engine.tables.version("public.t")
    engine.maintenance(SETTINGS.model_copy(update={"share": 0})).slot()
    assert engine.tables.version("public.t") == version
    engine.maintenance().slot()
    assert engine.tables.version("public.t") > version


@pytest.mark.parametrize("epochs", [32, pytest.param(120, marks=pytest.mark.nightly)])
def test_upkeep_that_is_far_behind_is_done_whatever_time_it_takes(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, epochs: int
) -> None:
    monkeypatch.setattr("cdc_views.engine.upkeep.maintenance._MOST_SAVED_S", -1.0)  # a slot never has time
    few = {"merged_files": 2, "checkpoint_versions": 2, "sweep_versions": 2}
    maintenance = engine.maintenance(SETTINGS.model_copy(update=few))
    folder = engine.root / engine.tables.specs["public.t"].path
    before = engine.tables.version("public.t")
    for _ in range(5):
        engine.epoch()
        maintenance.slot()
    assert engine.tables.version("public.t") == before + 5  # nothing is far behind yet
    files = []
    for _ in range(epochs):
        engine.epoch()
        maintenance.slot()
        files.append(sum(1 for file in folder.rglob("*") if file.is_file()))
    assert engine.tables.version("public.t") > before + epochs + 5
    assert max(files[epochs // 2 :]) <= 2 * max(files[: epochs // 4])  # some 3 an epoch without


def test_next_epoch_stands_on_what_upkeep_made(engine: Engine) -> None:
    for _ in range(6):
        engine.epoch()
    engine.maintenance().run()
    version = engine.tables.version("public.t")
    assert engine.epoch().tables["public.t"].version == version + 1


def test_next_epoch_tells_what_upkeep_did(engine: Engine) -> None:
    for _ in range(6):
        engine.epoch()
    engine.maintenance().run()
    told, later = engine.epoch().detail["upkeep"], engine.epoch().detail["upkeep"]
    assert told.pop("ms") > 0
    assert told.keys() >= {"compaction", "sweep", "leftovers"}
    assert later == {"ms": 0}


def test_writer_that_was_replaced_removes_nothing(engine: Engine) -> None:
    folder = engine.table("views/old/1")
    ControlLog.open(engine.root, "second").take_over()
    with pytest.raises(Fenced):
        engine.maintenance().run()
    assert folder.exists()


def test_mirror_in_use_is_never_a_leftover_whatever_its_name(engine: Engine) -> None:
    # Where an earlier version put the mirror of `a/b/c`.
    folder = engine.table("mirrors/public/a/b/c/g")
    engine.tables.specs["public.a/b/c"] = TableSpec("public.a/b/c", "mirrors/public/a/b/c/g", pa.schema([]), ())
    beside = engine.table("mirrors/public/a/old")
    Upkeep(engine.root, engine.tables, engine.control, SETTINGS)._remove_leftovers()
    assert folder.exists()
    assert not beside.exists()


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6) | st.text("a~/%.2f", max_size=9))
def test_part_of_a_path_is_safe_and_of_one_name_only(name: str) -> None:
    part = path_part(name)
    assert not {*part} & {*"/\\%[]?*:.\n"}
    assert unquote(part.replace("~", "%")) == name


def test_plain_names_are_in_paths_as_they_are() -> None:
    assert path_part("Order-Items_1 ünï") == "Order-Items_1 ünï"
    assert path_part("a/b") == "a~2fb"


def test_mirror_stays_where_an_earlier_version_put_it(engine: Engine) -> None:
    [table] = read_tables('CREATE TABLE "a$b" (id bigint PRIMARY KEY)')
    record = replace(engine.epoch(), tables={"public.a$b": TableVersion("mirrors/public/a$b/g-1", 1, "live", "mirror")})
    spec = mirror_spec(table.source, "g")
    assert (spec.path, as_published(None)(spec.name, spec.path)) == ("mirrors/public/a~24b/g",) * 2
    assert as_published(record)(spec.name, spec.path) == "mirrors/public/a$b/g-1"
    other = mirror_spec(table.source, "g2")
    assert as_published(record)(other.name, other.path) == other.path


def test_shadows_of_a_rebuild_under_way_stay_and_those_of_one_that_was_left_go(engine: Engine) -> None:
    wanted = WantedRebuild(["public.t"], "earliest", "g", swap=False)
    maintenance = engine.maintenance()
    with claimed(engine.root, wanted, lambda note: None) as (rebuild, _):
        shadow = engine.table(f"mirrors/public/t/g-{rebuild.id}")
        engine.table("mirrors/public/t/g-copy.draft")
        maintenance.run()
        assert shadow.exists()
        assert not (engine.root / "mirrors/public/t/g-copy.draft").exists()
    [file] = (engine.root / ".rebuilds").glob("*.json")
    os.utime(file, (0, 0))
    engine.maintenance().run()
    assert not shadow.exists()
    assert not file.exists()
    assert (engine.root / engine.tables.specs["public.t"].path).exists()


def is_compacted(engine: Engine, version: int) -> bool:
    """Whether upkeep made a version of the mirror after this one."""
    return engine.tables.version("public.t") > version


@pytest.mark.proves(
    wrong="A data file of a view is damaged: upkeep cannot merge it with others",
    seen="no error: a line that compaction of the table failed, every ten minutes, and the step `failed` in "
    "[metrics.md](metrics.md). The table of an internal view is replaced",
    do="run `cdc-views rebuild NAME --from earliest --swap`",
)
def test_damaged_file_of_a_view_stops_neither_the_engine_nor_the_upkeep_of_other_tables(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(6):
        engine.epoch()
    file, version = engine.damaged(VIEW), engine.tables.version("public.t")
    maintenance, of_view = engine.maintenance(), engine.tables.version(VIEW.name)
    maintenance.run()
    maintenance.run()
    [record] = [each for each in caplog.records if each.levelname == "ERROR"]  # not tried again at once
    assert 'compaction of table "a_view" failed' in record.message
    assert is_compacted(engine, version)
    assert (file.exists(), engine.tables.version(VIEW.name)) == (True, of_view)
    del engine.tables.specs[VIEW.name]  # the epochs of this test have no views
    assert engine.epoch().detail["upkeep"]["failed"] == 1


def test_damaged_internal_table_is_replaced_once(engine: Engine) -> None:
    engine.damaged(INTERNAL)
    maintenance = engine.maintenance()
    maintenance.run()
    path = engine.tables.specs[INTERNAL.name].path
    assert path.startswith(f"{INTERNAL.path}-")
    assert not engine.tables.is_published(INTERNAL.name)
    maintenance.run()
    assert engine.tables.specs[INTERNAL.name].path == path


def test_upkeep_that_fails_at_a_damaged_file_of_a_fenced_engine_ends_it(engine: Engine) -> None:
    engine.damaged(VIEW)
    ControlLog.open(engine.root, "second").take_over()
    with pytest.raises(Fenced):
        next(engine.maintenance()._steps_of(VIEW.name, 1))


@pytest.mark.parametrize("error", [Fenced("another writer"), unusable(errno.ENOSPC, "/data")])
def test_upkeep_passes_on_what_ends_an_engine(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(TableUpkeep, "sweep", fail)
    with pytest.raises((Fenced, DiskFull)):
        engine.maintenance().run()


def test_error_after_a_compaction_was_committed_ends_the_engine(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for _ in range(6):
        engine.epoch()
    monkeypatch.setattr(DriverTable, "index_new_files", fail)
    with pytest.raises(WarehouseUnusable):
        engine.maintenance().run()


def test_stray_files_are_no_leftovers_and_stop_no_engine(engine: Engine) -> None:
    old = engine.table("views/a_view/old")
    stray = [engine.root / "views/a_view/.DS_Store", engine.root / "views/README"]
    for file in stray:
        file.write_bytes(b"x")
    engine.maintenance().run()
    assert [file.exists() for file in (*stray, old)] == [True, True, False]


def test_file_that_is_no_rebuild_stops_no_engine_and_its_tables_stay(engine: Engine) -> None:
    shadow = engine.table("mirrors/public/t/g-x")
    file = engine.root / ".rebuilds/x.json"
    file.parent.mkdir()
    file.write_bytes(b"")
    settings = SETTINGS.model_copy(update={"keep_tables_hours": 1})
    os.utime(shadow, (0, 0))
    engine.maintenance(settings).run()
    assert shadow.exists()
    assert file.exists()


def test_rebuild_and_tables_of_another_user_stay(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    old, shadow = engine.table("views/old/1"), engine.table("mirrors/public/t/g-x")
    file = engine.root / ".rebuilds/x.json"
    file.parent.mkdir()
    file.write_bytes(b"{}")
    monkeypatch.setattr("cdc_views.engine.upkeep.rebuilds.os.open", refuse)
    monkeypatch.setattr(Path, "rename", refuse)
    engine.maintenance().run()
    assert [each.exists() for each in (file, old, shadow)] == [True, True, True]


def test_epochs_are_kept_for_a_rebuild_while_it_runs_and_for_keep_hours_after(engine: Engine) -> None:
    def oldest() -> int:
        return maintenance._needed().oldest[path]

    maintenance = engine.maintenance(SETTINGS.model_copy(update={"keep_hours": 1}))
    path = engine.tables.specs["public.t"].path
    with claimed(engine.root, WantedRebuild(["public.t"], "earliest", "g", swap=False), lambda note: None):
        [file] = (engine.root / ".rebuilds").glob("*.json")
        os.utime(file, (engine.clock.now().timestamp() - 1,) * 2)
        first = engine.tables.version("public.t")
        for _ in range(6):
            engine.epoch()
        engine.clock.advance(5 * 3600)
        engine.epoch()
        assert oldest() <= first
    engine.clock.advance(3600)
    assert oldest() <= first
    engine.clock.advance(1)
    assert oldest() > first


def test_epoch_that_a_rebuild_starts_from_is_kept_for_as_long(engine: Engine) -> None:
    maintenance, path = engine.maintenance(), engine.tables.specs["public.t"].path
    begin = engine.tables.published
    assert begin is not None
    wanted = WantedRebuild(["public.t"], f"epoch:{begin.epoch}", "g", swap=False, from_epoch=begin.epoch)
    with claimed(engine.root, wanted, lambda note: None):
        for _ in range(6):
            engine.epoch()
        assert maintenance._needed().oldest[path] == begin.tables["public.t"].version
    engine.clock.advance(1)
    assert maintenance._needed().oldest[path] > begin.tables["public.t"].version
