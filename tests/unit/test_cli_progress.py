"""The lines that tell how a long reading and the initial snapshot get on; the clock is moved by hand."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.progress import Progress as Bars

from cdc_views.cli import progress
from cdc_views.cli.log_lines import show_lines
from cdc_views.cli.progress import ShownProgress, ShownSnapshot
from cdc_views.engine.input.bulk import Progress
from cdc_views.log.debezium.snapshot import SnapshotProgress


class Clock:
    """Stands still until a test moves it."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    show_lines()
    clock = Clock()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=clock))
    return clock


def test_reading_is_told_with_its_rate_and_the_time_left(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    show = ShownProgress("reading ahead")
    show(Progress("public.t", 0, 0, 0))
    show(Progress("public.t", 2000, 10_000, 0.5))
    show(Progress("public.t", 2500, 10_000, 0.6))  # too soon after the last line
    clock.now_s += 1
    show(Progress("public.t", 4000, 10_000, 1))
    show(Progress("public.t", 10_000, 10_000, 2))
    show(Progress("public.t", 10_000, 10_000, 3))
    assert capsys.readouterr().err.splitlines() == [
        "reading ahead: public.t: 2000 of 10000 offsets, 4000 a second, 2 s left",
        "reading ahead: public.t: 4000 of 10000 offsets, 4000 a second, 2 s left",
        "reading ahead: public.t: 10000 of 10000 offsets, 5000 a second",
    ]


def test_table_that_is_read_on_is_told_again(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    show = ShownProgress("reading ahead")
    for done in (1000, 3000):
        show(Progress("public.t", done, done, 1))
    assert [line.split()[3] for line in capsys.readouterr().err.splitlines()] == ["1000", "3000"]


def test_snapshot_is_told_with_its_rate_and_the_time_left(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    show = ShownSnapshot(expected=10_000)
    show(SnapshotProgress(started=True))
    show(SnapshotProgress(started=True, rows_in_log=2000, rows_per_second=1000))
    clock.now_s += 1  # too soon, but a table is done
    show(SnapshotProgress(1, 4000, started=True, rows_in_log=3900, rows_per_second=1000))
    clock.now_s += 5
    show(SnapshotProgress(1, 4000, started=True, rows_in_log=9000, rows_per_second=1500))
    clock.now_s += 5  # nothing has come
    show(SnapshotProgress(1, 4000, started=True, rows_in_log=9000, rows_per_second=800))
    show(SnapshotProgress(2, 10_000, started=True, rows_in_log=10_007, rows_per_second=1500))
    show(SnapshotProgress(2, 10_000, started=True, completed=True, rows_in_log=10_007, rows_per_second=1500))
    assert capsys.readouterr().err.splitlines() == [
        "snapshot: 0 tables done, 2000 of about 10000 rows, 1000 a second, 8 s left",
        "snapshot: 1 tables done, 4000 of about 10000 rows, 1000 a second, 6 s left",
        "snapshot: 1 tables done, 9000 of about 10000 rows, 1500 a second, 1 s left",
        "snapshot: 2 tables done, 10007 rows, 1500 a second",
    ]


def test_snapshot_of_tables_without_statistics_is_told_with_its_rate_alone(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    show = ShownSnapshot(expected=None)
    show(SnapshotProgress(started=True, rows_in_log=2000))  # the first look has no rate
    clock.now_s += 5
    show(SnapshotProgress(started=True, rows_in_log=4000, rows_per_second=400))
    assert capsys.readouterr().err.splitlines() == [
        "snapshot: 0 tables done, 2000 rows",
        "snapshot: 0 tables done, 4000 rows, 400 a second",
    ]


def test_reading_on_a_terminal_is_a_bar_that_goes_when_it_is_over(
    clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_BARS", Bars(*progress._BARS.columns, console=Console(stderr=True)))
    show = ShownProgress("reading")
    show(Progress("public.t", 2000, 10_000, 0.5))
    progress.close_bars()
    bar = capsys.readouterr().err
    assert "━" in bar
    assert "reading: public.t: 2000 of 10000 offsets" in bar
    show(Progress("public.t", 10_000, 10_000, 2))
    assert capsys.readouterr().err.splitlines()[0] == "reading: public.t: 10000 of 10000 offsets, 5000 a second"
