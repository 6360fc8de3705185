"""What is remembered of a log that was seen to be broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_views.engine.capture.broken import remembering, require_unbroken
from cdc_views.errors import CdcViewsError, LogDiscontinuity, MarkerTimeout, SlotChanged
from cdc_views.store.control.control_log import FOLDER


def meet(warehouse: Path, error: CdcViewsError) -> None:
    with remembering(warehouse):
        raise error


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    (tmp_path / FOLDER).mkdir()
    return tmp_path


def test_lasting_error_is_raised_again_and_stays_the_first(warehouse: Path) -> None:
    with pytest.raises(SlotChanged):
        meet(warehouse, SlotChanged("it is gone", hint="begin anew"))
    for _ in range(2):
        with pytest.raises(SlotChanged, match=r'it is gone \(seen at 2.*\)\nhint: begin anew; remembered in ".*json"'):
            meet(warehouse, LogDiscontinuity("it went back"))
    assert [file.name for file in (warehouse / FOLDER).iterdir()] == ["_broken.json"]


def test_passing_error_is_forgotten(warehouse: Path) -> None:
    with pytest.raises(MarkerTimeout):
        meet(warehouse, MarkerTimeout("it did not come"))
    require_unbroken(warehouse)


def test_error_that_cannot_be_written_down_is_raised_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(SlotChanged, match=r"it is gone\nhint: begin anew; this could not be remembered in"):
        meet(tmp_path, SlotChanged("it is gone", hint="begin anew"))
