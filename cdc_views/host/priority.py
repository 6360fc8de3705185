"""The share of the processors that a process gets while others want them, too."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from cdc_views.host.waiting import wait_until

_SESSION: Final = Path("/proc/self/autogroup")
# In 0.1 s Linux takes one such change of all users but root.
_LIMIT_S: Final = 1.5
_PAUSE_S: Final = 0.15


def let_others_go_first(niceness: int) -> None:
    """Raise the niceness of this thread to at least this. Threads and processes that it starts get the same.

    Linux shares the processors among sessions first, and niceness only ranks the processes of one session (sched(7),
    "The autogroup feature"). So the first process of a session also sets the niceness of the session; any other one
    leaves it alone, since a terminal's session has more in it than this process.
    """
    os.nice(max(0, niceness - os.nice(0)))
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # not Linux, or a kernel without such groups
            _raise_session(niceness)


def _raise_session(niceness: int) -> None:
    if int(_SESSION.read_text().split()[-1]) >= niceness:
        return

    def is_raised() -> bool:
        try:
            _SESSION.write_text(str(niceness))
        except BlockingIOError:
            return False
        return True

    wait_until(is_raised, _LIMIT_S, _PAUSE_S)
