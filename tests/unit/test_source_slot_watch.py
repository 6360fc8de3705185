"""The watch of the slot says so if it cannot look."""

from __future__ import annotations

from contextlib import closing

import pytest

from cdc_views.errors import SourceUnreachable
from cdc_views.source.slot_watch import SlotWatch
from tests.waiting import wait_for


def test_slot_that_cannot_be_looked_at_for_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_views.source.slot_watch._BLIND_LIMIT_S", 0.3)
    with closing(SlotWatch("host=127.0.0.1 port=1 dbname=x", "cdc")) as watch:
        watch.require()
        with pytest.raises(SourceUnreachable, match='replication slot "cdc" could not be read for'):
            wait_for(lambda: watch.require() is not None, 10)
