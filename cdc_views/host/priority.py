"""The share of the processors that a process gets while others want them, too."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_AUTOGROUP = Path("/proc/self/autogroup")


def let_others_go_first(niceness: int) -> None:
    """Raise the niceness of this thread, and of all threads and processes that it starts later.

    Linux shares the processors among sessions first, and niceness only ranks the processes of one session (sched(7),
    "The autogroup feature"). So the first process of a session also raises the niceness of the session; any other one
    leaves it alone, since a terminal's session has more in it than this process.
    """
    if niceness == 0:
        return
    total = os.nice(niceness)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # not Linux, or a kernel without such groups
            _AUTOGROUP.write_text(str(total))
