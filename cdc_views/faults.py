"""Named fault points: places where a test can make the engine fail.

`CDC_VIEWS_FAULT="epoch.after_intent:kill"` kills the process at that point, `:stop` suspends it until it gets SIGCONT,
`:raise` raises InjectedFault, and `:raise@3` raises it the third time that the point is reached. Without the variable,
a point costs one comparison.
"""

from __future__ import annotations

import os
import signal
from typing import Final

VARIABLE: Final = "CDC_VIEWS_FAULT"

POINTS: Final = frozenset(
    {
        "takeover.after_record",
        "takeover.after_fence",
        "epoch.after_cut",
        "epoch.after_intent",
        "bulk.after_files",
        "read_ahead.after_piece",
        "index.after_first_file",
        "quarantine.after_commit",
        "mirrors.after_first_commit",
        "epoch.after_mirrors",
        "views.after_first_commit",
        "epoch.before_publish",
        "epoch.after_publish",
        "recovery.after_intent",
        "abandon.after_first_restore",
        "building.after_begin",
        "building.after_fill",
        "building.after_following",
        "building.before_join",
        "upkeep.after_data_file",
        "upkeep.after_compaction",
        "upkeep.after_checkpoint",
        "upkeep.after_first_log_file",
        "upkeep.after_first_removed_file",
        "upkeep.after_leftover_moved",
        "upkeep.after_control_file",
        "upkeep.after_control_record",
        "rebuild.after_plan",
        "rebuild.after_first_mirror",
        "rebuild.after_mirrors",
        "rebuild.after_catch_up",
        "rebuild.after_views",
        "rebuild.after_comparison",
        "reset.after_record",
        "reset.after_capture",
        "reset.after_publish",
        "removal.after_connector",
        "removal.after_slot",
        "removal.after_topics",
    }
)

_reached: dict[str, int] = {}


class InjectedFault(BaseException):
    """Raised at an armed point. It is not an Exception, so that no handler mistakes it for a real error."""


def point(name: str) -> None:
    """Fail here if the environment variable names this point."""
    armed = os.environ.get(VARIABLE)
    if armed:
        _reach(name, armed)


def _reach(name: str, armed: str) -> None:
    assert name in POINTS, f"unknown fault point {name}"
    wanted, _, action = armed.partition(":")
    if wanted != name:
        return
    how, _, count = action.partition("@")
    _reached[name] = _reached.get(name, 0) + 1
    if _reached[name] != int(count or 1):
        return
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
        return
    raise InjectedFault(name)


def forget() -> None:
    """Reset the counts of all points, for the next test in the same process."""
    _reached.clear()
