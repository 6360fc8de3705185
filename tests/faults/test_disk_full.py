"""A disk that is full at each place where the engine writes: named, nothing torn is read, and freed it goes on."""

from __future__ import annotations

import traceback

import pytest

from cdc_views.errors import DiskFull
from cdc_views.store.control.control_log import read_control
from cdc_views.store.control.retention import Needed
from cdc_views.store.delta_log.versions import Stamp
from cdc_views.store.upkeep.control_upkeep import ControlUpkeep
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from tests.fix_disk import SmallDisk
from tests.ledger import OFTEN, Ledger, MirrorEngine, assert_right, published

pytestmark = pytest.mark.usefixtures("without_fsync")

# Where the disk is full, by the functions on the way there; the first that fits.
PLACES = {
    "entry of the control log": {"put_entry", "_put"},
    "log entry": {"put_entry"},
    "record of the control log": {"write_rows", "_put"},
    "data file": {"write_rows"},
    "deletion vector": {"write", "_commit_directly"},
}
MOST_PAGES = 60


def log_offset_of(error: DiskFull) -> str:
    """Where it was found."""
    names = {frame.f_code.co_name for each in (error, error.__cause__) if each is not None
             for frame, _ in traceback.walk_tb(each.__traceback__)}  # fmt: skip
    return next((place for place, wanted in PLACES.items() if wanted <= names), f"unknown: {sorted(names)}")


@pytest.mark.proves(
    wrong="The disk is full, at any file that the engine writes",
    seen="`DiskFull`; readers keep the last epoch",
    do="free some space, then start the engine again",
)
def test_disk_that_is_full_anywhere_stops_the_engine_until_space_is_freed(small_disk: SmallDisk) -> None:
    root, ledger = small_disk.folder / "warehouse", Ledger()
    engine = MirrorEngine(root, ledger)
    engine.start()
    engine.epochs(3)
    found = dict[str, int]()
    for pages in range(MOST_PAGES):
        small_disk.fill(pages)
        before = published(root)[-1]
        try:
            engine.epochs(8, upkeep=False)
            assert pages, "a full disk was not noticed"
        except DiskFull as error:
            place = log_offset_of(error)
            found[place] = found.get(place, 0) + 1
        assert published(root)[-1].epoch >= before.epoch
        assert_right(root, ledger, 1)
        small_disk.free()
        engine = MirrorEngine(root, ledger)
        engine.start()
        engine.epochs(1, upkeep=False)
        assert_right(root, ledger, 1)
        if found.keys() >= PLACES.keys():
            break
    assert found.keys() == PLACES.keys(), found


def test_upkeep_of_a_table_on_a_full_disk_leaves_its_versions(small_disk: SmallDisk) -> None:
    root, ledger = small_disk.folder / "warehouse", Ledger()
    engine = MirrorEngine(root, ledger)
    engine.start()
    engine.epochs(8, upkeep=False)
    upkeep = TableUpkeep(root, engine.tables.specs["public.accounts"], OFTEN)
    version, stamp = engine.tables.version("public.accounts"), Stamp(8, engine.control.last_attempt, "0/0")
    assert upkeep.catch_up(version)
    for do in (lambda: upkeep.compact(upkeep.files_due(), stamp), upkeep.checkpoint):
        for pages in range(2):
            small_disk.fill(pages)
            with pytest.raises(DiskFull, match=r"no space left on the device of .*public/accounts"):
                do()
            assert_right(root, ledger, 8)
    small_disk.free()
    engine.tables.stand_at({"public.accounts": upkeep.compact(upkeep.files_due(), stamp)})
    upkeep.checkpoint()
    engine.epochs(1)
    assert_right(root, ledger, OFTEN.keep_epochs)


def test_compaction_of_the_control_log_on_a_full_disk_leaves_every_record(small_disk: SmallDisk) -> None:
    root, ledger = small_disk.folder / "warehouse", Ledger()
    engine = MirrorEngine(root, ledger)
    engine.start()
    engine.epochs(20, upkeep=False)
    upkeep, before = ControlUpkeep(root, engine.control, OFTEN), read_control(root)
    assert upkeep.is_compaction_due()
    for pages in range(3):
        small_disk.fill(pages)
        with pytest.raises(DiskFull, match=r"no space left on the device of .*_epochs"):
            upkeep.compact(Needed({}, 1))
        assert read_control(root) == before
    small_disk.free()
    upkeep.compact(Needed({}, 1))
    engine.epochs(1, upkeep=False)
    assert read_control(root)[: len(before)] == before
    assert_right(root, ledger, 21)


@pytest.mark.parametrize("pages", range(5))
def test_start_on_a_full_disk_is_disk_full_and_freed_goes_on(small_disk: SmallDisk, pages: int) -> None:
    root, ledger = small_disk.folder / "warehouse", Ledger(2)
    small_disk.fill(pages)
    with pytest.raises(DiskFull):
        MirrorEngine(root, ledger).start()
    small_disk.free()
    engine = MirrorEngine(root, ledger)
    engine.start()
    engine.epoch()
    assert_right(root, ledger, 1)
