"""The share of the processors: which niceness a process and its session have afterwards."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_LOWERED = """
import json, os, pathlib, sys
from cdc_views.host.priority import let_others_go_first

group = pathlib.Path("/proc/self/autogroup")
for each in sys.argv[1:]:
    let_others_go_first(int(each))
print(json.dumps({"own": os.nice(0), "session": group.read_text().split()[-1] if group.exists() else None}))
"""


def _niceness(*wanted: int, leads: bool = False) -> dict[str, Any]:
    """The niceness of a new process that has asked for these; it leads its session, or is one of another's."""
    command = [sys.executable, "-c", _LOWERED, *map(str, wanted)]
    if not leads:
        command = ["sh", "-c", '"$@"; exit $?', "sh", *command]  # the shell leads
    done = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_niceness_is_raised_and_never_lowered() -> None:
    here = os.nice(0)
    assert [_niceness(*wanted)["own"] for wanted in [(), (17,), (17, 17), (17, 3)]] == [here, 17, 17, 17]


def test_only_the_first_process_of_a_session_raises_that_of_the_session() -> None:
    has_groups = Path("/proc/self/autogroup").exists()
    assert _niceness(17, leads=True)["session"] == ("17" if has_groups else None)
    assert _niceness(17)["session"] == ("0" if has_groups else None)
