"""Waiting for a condition."""

from __future__ import annotations

from cdc_views.host.waiting import wait_until, wait_while


def test_wait_until_gives_the_first_true_value() -> None:
    values = iter([0, 0, 7, 8])
    assert wait_until(lambda: next(values), 10, 0) == 7


def test_wait_until_gives_the_last_value_after_the_limit() -> None:
    asked: list[int] = []
    assert wait_until(lambda: asked.append(1), 0.05, 0.01) is None
    assert len(asked) > 1


def test_wait_while_gives_what_ended_it() -> None:
    values = iter([[1, 2], [2], []])
    assert wait_while(lambda: next(values), 10, 0) == []


def test_wait_without_a_limit_asks_once() -> None:
    asked: list[int] = []
    assert wait_while(lambda: [asked.append(1)], 0) == [None]
    assert asked == [1]
