"""The meaning of a process's exit status."""

from __future__ import annotations

import signal
from typing import Final

# A JVM that handles such a signal exits with 128 plus the signal's number. So does a shell whose child was ended by it.
_BY_NUMBER: Final = {128 + number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)}


def signal_of(status: int) -> str | None:
    """Return the name of the signal that ended a process, or None. `status` is as `subprocess` gives it."""
    if status >= 0 and status not in _BY_NUMBER:
        return None
    number = -status if status < 0 else status - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
