"""How long an engine goes on trying when a service is away."""

from __future__ import annotations

import pytest

from cdc_views.engine.service.patience import Patience
from cdc_views.errors import SourceUnreachable
from cdc_views.testing.hand_clock import HandClock

AWAY = SourceUnreachable("cannot connect", hint="check the host")


def test_first_start_fails_at_once() -> None:
    with pytest.raises(SourceUnreachable):
        Patience(300, HandClock()).wait(AWAY)


def test_waits_after_an_epoch_and_says_why() -> None:
    clock, said = HandClock(), list[str]()
    patience = Patience(300, clock, said.append)
    patience.renew()
    before = clock.monotonic()
    patience.wait(AWAY)
    assert clock.monotonic() > before
    assert said == ["SourceUnreachable: cannot connect; trying again"]


def test_ends_a_while_after_the_last_epoch() -> None:
    clock = HandClock()
    patience = Patience(10, clock)
    patience.renew()
    patience.wait(AWAY)
    clock.sleep(8)
    patience.renew()
    clock.sleep(8)
    patience.wait(AWAY)
    clock.sleep(2)
    with pytest.raises(SourceUnreachable):
        patience.wait(AWAY)


def test_none_at_all() -> None:
    patience = Patience(0, HandClock())
    patience.renew()
    with pytest.raises(SourceUnreachable):
        patience.wait(AWAY)
