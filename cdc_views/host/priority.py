"""The share of the processors that a process gets while others want them, too."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_SESSION: Final = Path("/proc/self/autogroup")


def let_others_go_first(niceness: int) -> None:
    """Raise the niceness of this thread to this at least, and so that of all threads and processes that it starts.

    Linux shares the processors among sessions first, and niceness only ranks the processes of one session (sched(7),
    "The autogroup feature"). So the first process of a session also sets the niceness of the session; any other one
    leaves it alone, since a terminal's session has more in it than this process.
    """
    os.nice(max(0, niceness - os.nice(0)))
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # not Linux, or a kernel without such groups
            _SESSION.write_text(str(niceness))
