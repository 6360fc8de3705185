"""What a replaced engine does late, between its last question whether it is the writer and the deed itself.

No fault point is there, so each deed is done here by its own call, after the other engine has gone on.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc_views.errors import Fenced
from cdc_views.store.delta_log.entries import LOG_FOLDER, VersionTaken, entry_file, newest_version
from cdc_views.store.delta_log.operations.checkpoint import newest_checkpoint
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from cdc_views.store.upkeep.vacuum import remove_tables
from cdc_views.store.warehouse import Stamp
from tests.ledger import OFTEN, Ledger, MirrorEngine, assert_right

pytestmark = pytest.mark.usefixtures("without_fsync")

MIRROR = "public.accounts"


@pytest.fixture
def first(tmp_path: Path) -> MirrorEngine:
    """Engine A, after some epochs."""
    engine = MirrorEngine(tmp_path, Ledger())
    engine.start()
    engine.epochs(6, upkeep=False)
    return engine


@pytest.fixture
def second(first: MirrorEngine) -> MirrorEngine:
    """Engine B, which has not started yet; its source has the same transactions, and goes on."""
    return MirrorEngine(first.root, Ledger(6))


def mirror(engine: MirrorEngine) -> Path:
    return engine.root / engine.tables.specs[MIRROR].path


def test_entry_into_a_log_that_has_lost_the_one_before_is_refused(first: MirrorEngine, second: MirrorEngine) -> None:
    state = TableState()
    assert state.catch_up(mirror(first))
    second.start()
    second.epochs(30)
    entries = sorted((mirror(first) / LOG_FOLDER).iterdir())
    assert not entry_file(mirror(first), state.version + 1).exists()
    with pytest.raises(VersionTaken):
        state.put(mirror(first), [])
    assert sorted((mirror(first) / LOG_FOLDER).iterdir()) == entries
    second.epochs(1)
    assert_right(second.root, second.ledger, OFTEN.keep_epochs)


@pytest.mark.parametrize("upkeep", [False, True])
def test_fence_after_that_of_a_later_engine_is_refused(first: MirrorEngine, second: MirrorEngine, upkeep: bool) -> None:
    warehouse, path = first.tables.warehouse, first.tables.specs[MIRROR].path
    above = first.tables.version(MIRROR)
    stamp = Stamp(6, first.control.last_attempt + 1, "0/0")
    second.start()
    second.epochs(1 if not upkeep else 30, upkeep=upkeep)
    assert entry_file(mirror(first), above + 1).exists() != upkeep
    newest = newest_version(mirror(first))
    with pytest.raises(Fenced):
        warehouse.fence(path, stamp, above)
    assert newest_version(mirror(first)) == newest
    second.epochs(1)


def test_fence_goes_above_what_an_older_engine_has_put_meanwhile(first: MirrorEngine) -> None:
    above = first.tables.version(MIRROR)
    stamp = Stamp(6, first.control.last_attempt + 9, "0/0")
    first.epochs(1, upkeep=False)
    assert first.tables.warehouse.fence(first.tables.specs[MIRROR].path, stamp, above) == above + 2


def test_restore_over_the_versions_of_a_later_engine_is_refused(first: MirrorEngine, second: MirrorEngine) -> None:
    path, base = first.tables.specs[MIRROR].path, first.tables.version(MIRROR)
    stamp = Stamp(6, first.control.last_attempt, "0/0")
    second.start()
    newest = newest_version(mirror(first))
    with pytest.raises(Fenced):
        first.tables.warehouse.restore(path, base - 1, stamp, base)
    with pytest.raises(Fenced):
        first.tables.warehouse.restore(path, base, stamp, base)
    assert newest_version(mirror(first)) == newest


def test_sweep_that_is_late_leaves_the_files_of_a_later_engine(first: MirrorEngine, second: MirrorEngine) -> None:
    table = TableUpkeep(first.root, first.tables.specs[MIRROR], OFTEN)
    assert table.catch_up(first.tables.version(MIRROR))
    # What a slot of A does: it asks whether it is the writer, and stands still until B has gone on for long.
    now = time.time()
    first.control.require_writer()
    second.start()
    second.epochs(3, upkeep=False)
    table.sweep(table.version, now)
    assert_right(second.root, second.ledger, 3)


def test_removal_of_old_tables_asks_before_each(first: MirrorEngine, second: MirrorEngine) -> None:
    for number in range(2):
        (first.root / "views" / "old" / str(number) / LOG_FOLDER).mkdir(parents=True)

    def take_over_after_the_first() -> None:
        if not (first.root / "views/old/0").exists():
            second.start()
        first.control.require_writer()

    with pytest.raises(Fenced):
        remove_tables(first.root, ["views/old/0", "views/gone/0", "views/old/1"], take_over_after_the_first)
    assert (first.root / "views/old/1").exists()


def test_checkpoint_of_an_old_version_misleads_nobody(first: MirrorEngine) -> None:
    late = DeltaTable(str(mirror(first)))
    second = MirrorEngine(first.root, Ledger(6), OFTEN.model_copy(update={"keep_epochs": 100}))
    second.start()
    second.epochs(10)
    late.create_checkpoint()
    assert (mirror(first) / LOG_FOLDER / f"{late.version():020d}.checkpoint.parquet").exists()
    # delta-rs looks whether its own is the newest before it says so, and may be stopped in between.
    (mirror(first) / LOG_FOLDER / "_last_checkpoint").write_text(f'{{"version":{late.version()},"size":3}}')
    assert (newest_checkpoint(mirror(first)) or 0) > late.version()
    assert_right(second.root, second.ledger, 10)
    third = MirrorEngine(second.root, second.ledger)
    third.start()
    third.epochs(10)
    assert_right(third.root, third.ledger, OFTEN.keep_epochs)
    assert not (mirror(first) / LOG_FOLDER / f"{late.version():020d}.checkpoint.parquet").exists()


def test_checkpoint_of_a_version_that_is_gone_is_not_made(first: MirrorEngine, second: MirrorEngine) -> None:
    late = DeltaTable(str(mirror(first)))
    second.start()
    second.epochs(30)
    with pytest.raises(Fenced), first.control.writing():
        late.create_checkpoint()
    assert_right(second.root, second.ledger, OFTEN.keep_epochs)


@pytest.mark.proves(
    wrong="A replaced engine finds data that its successor has written or removed",
    seen="`Fenced`, whatever it finds",
    do="nothing",
)
def test_every_error_of_a_replaced_engine_is_fenced(first: MirrorEngine, second: MirrorEngine) -> None:
    second.start()
    with pytest.raises(Fenced, match="was taken by writer") as caught, first.control.writing():
        raise FileNotFoundError("a file that the other engine has removed")
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    with pytest.raises(FileNotFoundError), second.control.writing():
        raise FileNotFoundError
