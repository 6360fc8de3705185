"""The demo as a user runs it, in the hardest of its forms."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_for

KILLS = 1  # more of them, and of other things, in test_soak.py
LAST_LINE = re.compile(
    r"demo: (\d+) changes in (\d+) epochs, 13 tables and views equal to Postgres at [0-9A-F]+/[0-9A-F]+"
)


def processes_of(state: Path) -> list[str]:
    """Command lines that name the state folder, and those of processes that stand in it."""
    others = [each.info for each in psutil.process_iter(["cmdline", "cwd"], ad_value="") if each.pid != os.getpid()]
    commands = [(" ".join(info["cmdline"]), info["cwd"]) for info in others]
    return [command for command, where in commands if str(state) in command or where.startswith(str(state))]


@pytest.fixture
def demo(state_folder: Path) -> Callable[..., subprocess.Popen[str]]:
    environment = {**os.environ, "CDC_VIEWS_STATE": str(state_folder)}

    def start(*options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "cdc_views.demo", *options],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    return start


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("seconds", "least"), [(20, 4_000), pytest.param(60, 20_000, marks=pytest.mark.nightly)], ids=["short", "whole"]
)
def test_demo_with_killed_engine_equals_postgres(
    demo: Callable[..., subprocess.Popen[str]], state_folder: Path, seconds: int, least: int
) -> None:
    process = demo("--kill-engine", str(KILLS), "--seconds", str(seconds))
    out, err = process.communicate(timeout=840)
    assert process.returncode == 0, out + err
    found = LAST_LINE.fullmatch(out.splitlines()[-1])
    assert found, out
    assert int(found[1]) >= least
    assert int(found[2]) > KILLS
    assert err.count("engine killed during attempt") == KILLS
    assert processes_of(state_folder) == []


@pytest.mark.parametrize(
    "step", ["1. stack", *(pytest.param(step, marks=pytest.mark.nightly) for step in ("4. connector", "5. engine"))]
)
def test_interrupted_demo_leaves_no_process(
    demo: Callable[..., subprocess.Popen[str]], state_folder: Path, step: str
) -> None:
    process = demo()
    assert process.stderr is not None
    for line in process.stderr:
        if step in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    wait_for(lambda: processes_of(state_folder) == [], 10)
