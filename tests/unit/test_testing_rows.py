"""Rows compared as multisets, with a tolerance for floats alone; crash points that must fire."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from cdc_views import faults
from cdc_views.errors import BadConfig, FaultNotReached
from cdc_views.testing import HandClock, assert_equal, crash_at, same_rows

NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(1, "a"), (2, None)], [(2, None), (1, "a")]),
        ([(0.1 + 0.2,), (1.0,)], [(1.0,), (0.3,)]),
        ([(1e17 + 16, "a"), (NAN, "b")], [(NAN, "b"), (1e17, "a")]),
        ([(-0.0,)], [(0.0,)]),
        ([(float("inf"),)], [(float("inf"),)]),
        ([(2, Decimal("1.50"))], [(2.0, Decimal("1.5"))]),
        ([([1, [0.1 + 0.2]], {"a": 0.3, "b": None})], [([1, [0.3]], {"b": None, "a": 0.1 + 0.2})]),
        ([(datetime(2026, 1, 1),)], [(datetime(2026, 1, 1, tzinfo=UTC),)]),
        ([[1, 2]], [(1, 2)]),
    ],
)
def test_rows_that_are_the_same(one: Sequence[Any], other: Sequence[Any]) -> None:
    assert same_rows(one, other)
    assert same_rows(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(1,)], [(1,), (1,)]),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)]),
        ([(None,)], [(0,)]),
        ([(None,)], [("",)]),
        ([(True,)], [(1,)]),
        ([(1.0,)], [(1.00001,)]),
        ([(0.0,)], [(1e-12,)]),
        ([(NAN,)], [(None,)]),
        ([(Decimal("0.30"),)], [(Decimal("0.31"),)]),
        ([(1, 2)], [(2, 1)]),
        ([(0.3, "a"), (0.4, "b")], [(0.3, "b"), (0.4, "a")]),
    ],
)
def test_rows_that_are_not_the_same(one: Sequence[Any], other: Sequence[Any]) -> None:
    assert not same_rows(one, other)
    assert not same_rows(other, one)


def test_rows_that_differ_are_shown() -> None:
    with pytest.raises(AssertionError, match=r'view "v": 1 too many, 1 missing\n  \+ \(2,\)\n  - \(3,\)'):
        assert_equal([(1,), (2,)], [(1,), (3,)], 'view "v"')


def test_crash_is_over_after_its_block() -> None:
    with crash_at("epoch.after_cut", times=2):
        faults.point("epoch.after_cut")
        faults.point("epoch.after_cut")
        raise AssertionError("not reached")
    faults.point("epoch.after_cut")
    assert faults.VARIABLE not in os.environ


def test_crash_that_does_not_happen_is_an_error() -> None:
    with pytest.raises(FaultNotReached, match=r"epoch\.after_cut"), crash_at("epoch.after_cut"):
        faults.point("epoch.after_intent")


def test_unknown_crash_point_is_refused() -> None:
    with pytest.raises(BadConfig, match="unknown fault point"), crash_at("epoch.nowhere"):
        pass


@pytest.mark.nightly
def test_tools_can_be_imported_without_hypothesis() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import cdc_views.testing"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_hand_clock_moves_only_by_hand() -> None:
    clock = HandClock(datetime(2026, 1, 1, tzinfo=UTC))
    clock.advance(5)
    clock.sleep(0.5)
    assert (clock.now(), clock.monotonic()) == (datetime(2026, 1, 1, 0, 0, 5, 500_000, UTC), 5.5)
