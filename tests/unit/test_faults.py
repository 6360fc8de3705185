"""Fault points in processes of their own: killed, stopped, and let go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from cdc_views.faults import VARIABLE
from tests.stopped import LIMIT_S, is_stopped
from tests.waiting import wait_for

PROGRAM = """
from cdc_views import faults
for number in range(3):
    faults.point("epoch.after_cut")
    print(number, flush=True)
"""


def start(fault: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env={**os.environ, VARIABLE: fault}, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize(("count", "before"), [("", ""), ("@2", "0\n")])
def test_stop_stands_still_at_the_point_and_goes_on_when_let(count: str, before: str) -> None:
    with start(f"epoch.after_cut:stop{count}") as process:
        wait_for(lambda: is_stopped(process.pid), LIMIT_S)
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 2).decode() == before if before else True
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, before + out) == (0, "0\n1\n2\n")


def test_kill_ends_the_process_at_the_point() -> None:
    with start("epoch.after_cut:kill@3") as process:
        out, _ = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out) == (-signal.SIGKILL, "0\n1\n")


def test_point_that_is_not_the_one_does_nothing() -> None:
    with start("epoch.after_intent:kill") as process:
        out, _ = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out) == (0, "0\n1\n2\n")
