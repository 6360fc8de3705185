"""What the exit status of a process says."""

from __future__ import annotations

import signal
from typing import Final

# A JVM that has handled such a signal, and a shell whose child was ended by one, exit with 128 and its number.
_BY_NUMBER: Final = {128 + number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)}


def signal_of(status: int) -> str | None:
    """The name of the signal that has ended a process, from its status as `subprocess` has it; None if none did."""
    if status >= 0 and status not in _BY_NUMBER:
        return None
    number = -status if status < 0 else status - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
