"""The share of the processors: which niceness a process and its session have afterwards."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_LOWERED = """
import json, os, pathlib
from cdc_views.host.priority import let_others_go_first

group = pathlib.Path("/proc/self/autogroup")
before = os.nice(0)
let_others_go_first({niceness})
print(json.dumps({{"raised": os.nice(0) - before, "session": group.read_text().split()[-1] if group.exists() else None}}))
"""


def _lowered(niceness: int, *, leads: bool) -> dict[str, Any]:
    """What a new process finds after it let others go first; it leads its session, or is one of another's."""
    command = [sys.executable, "-c", _LOWERED.format(niceness=niceness)]
    if not leads:
        command = ["sh", "-c", '"$@"; exit $?', "sh", *command]  # the shell leads
    done = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("niceness", [0, 7])
def test_a_process_raises_its_niceness(niceness: int) -> None:
    assert _lowered(niceness, leads=False)["raised"] == niceness


def test_only_the_first_process_of_a_session_raises_that_of_the_session() -> None:
    has_groups = Path("/proc/self/autogroup").exists()
    assert _lowered(7, leads=True)["session"] == (str(os.nice(0) + 7) if has_groups else None)
    assert _lowered(7, leads=False)["session"] == ("0" if has_groups else None)
