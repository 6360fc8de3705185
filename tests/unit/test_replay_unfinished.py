"""Rebuilds under way: gone on with, removed, refused."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cdc_views.engine.upkeep.rebuilds import read_rebuild, rebuild_files
from cdc_views.errors import RebuildRunning
from cdc_views.host.os_lock import is_locked
from cdc_views.replay import unfinished
from cdc_views.replay.unfinished import WantedRebuild, claimed

WANTED = WantedRebuild(("public.t", "v"), "earliest", "g1", swap=True)
REPORT = replace(WANTED, swap=False)


def note(text: str) -> None:
    assert text.startswith("removing rebuild ")


def claim(root: Path, wanted: WantedRebuild) -> tuple[str, bool]:
    """Claim a rebuild and leave it, as a killed one does, with a shadow."""
    with claimed(root, wanted, note) as (ours, is_continued):
        (root / f"mirrors/public/t/g1-{ours.id}").mkdir(parents=True, exist_ok=True)
        (root / f"views/v/f-{ours.id}").mkdir(parents=True, exist_ok=True)
        return ours.id, is_continued


def test_same_rebuild_goes_on(tmp_path: Path) -> None:
    one, _ = claim(tmp_path, WANTED)
    assert claim(tmp_path, WANTED) == (one, True)


@pytest.mark.parametrize(
    "other", [replace(WANTED, names=("v",)), replace(WANTED, origin="snapshot"), replace(WANTED, generation="g2")]
)
def test_other_rebuild_removes_what_was_left(tmp_path: Path, other: WantedRebuild) -> None:
    one, _ = claim(tmp_path, WANTED)
    two, is_continued = claim(tmp_path, other)
    assert (two != one, is_continued) == (True, False)
    assert {path.name for path in tmp_path.glob("*/**/*-*")} == {f"g1-{two}", f"f-{two}"}


def test_rebuild_of_a_version_that_did_not_record_its_epoch_is_read(tmp_path: Path) -> None:
    one, _ = claim(tmp_path, WANTED)
    [file] = rebuild_files(tmp_path)
    file.write_bytes(file.read_bytes().replace(b',"from_epoch":null', b""))
    left = read_rebuild(file)
    assert left is not None
    assert (left.id, left.from_epoch) == (one, None)
    assert claim(tmp_path, WANTED) == (one, True)


def test_rebuild_whose_report_was_given_goes_on_to_a_swap_only(tmp_path: Path) -> None:
    with claimed(tmp_path, REPORT, note) as (ours, _):
        unfinished.mark_compared(tmp_path, ours)
    assert claim(tmp_path, WANTED) == (ours.id, True)
    assert claim(tmp_path, REPORT)[1] is False


@pytest.mark.proves(
    wrong="A second rebuild of the same table is started",
    seen="`RebuildRunning` with the process of the first one",
    do="wait for the first rebuild",
)
def test_rebuild_of_a_table_that_another_process_makes_is_refused(tmp_path: Path) -> None:
    with (
        claimed(tmp_path, WANTED, note),
        pytest.raises(RebuildRunning, match=r'table "v" is being rebuilt by process'),
    ):
        claim(tmp_path, replace(WANTED, names=("v",)))


def test_rebuild_of_other_tables_runs_beside(tmp_path: Path) -> None:
    with claimed(tmp_path, WANTED, note) as (ours, _):
        other, _ = claim(tmp_path, replace(WANTED, names=("public.u",)))
        with claimed(tmp_path, replace(WANTED, names=("public.u",)), note) as (again, _):
            assert (again.id, other != ours.id) == (other, True)


def test_finished_rebuild_is_forgotten(tmp_path: Path) -> None:
    one, _ = claim(tmp_path, WANTED)
    unfinished.finish(tmp_path, one)
    assert claim(tmp_path, WANTED)[1] is False


def test_file_that_is_no_rebuild_refuses_none(tmp_path: Path) -> None:
    (tmp_path / ".rebuilds").mkdir()
    (tmp_path / ".rebuilds/x.json").write_bytes(b"")
    assert claim(tmp_path, WANTED)[1] is False


def test_rebuild_continues_although_the_engine_asks_at_that_moment_whether_it_runs(tmp_path: Path) -> None:
    one, _ = claim(tmp_path, WANTED)
    with (tmp_path / f".rebuilds/{one}.json").open("rb") as probe:
        assert not is_locked(probe)
        threading.Timer(0.01, probe.close).start()
        assert claim(tmp_path, WANTED) == (one, True)
