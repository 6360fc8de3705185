"""Controls when a signal may interrupt this process."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Deliver signals that would end this process at the end of the block.

    This uses handlers and not a mask: processes that are started meanwhile would inherit a mask.
    """
    pending: list[int] = []
    try:
        with _handlers({signum: lambda number, _: pending.append(number) for signum in _STOPPING}):
            yield
    finally:
        for number in dict.fromkeys(pending):
            os.kill(os.getpid(), number)


@contextlib.contextmanager
def interrupting() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt, as SIGINT does, so that the cleanup of open blocks runs.

    Of an error that leaves the block after a signal it makes the KeyboardInterrupt again: cleanup may fail because of
    the interrupt, and DuckDB raises a RuntimeError in place of what a handler of a signal raises during a query.
    """
    received: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        raise _interrupt(number)

    with _handlers(dict.fromkeys(_STOPPING, interrupt)):
        try:
            yield
        except Exception as error:
            if received:
                raise _interrupt(received[0]) from error
            raise


def signal_name(interrupt: KeyboardInterrupt) -> str:
    """Return the name of the signal that raised this exception."""
    return str(interrupt) or signal.SIGINT.name


def _interrupt(number: int) -> KeyboardInterrupt:
    return KeyboardInterrupt(signal.Signals(number).name)


@contextlib.contextmanager
def _handlers(handlers: dict[signal.Signals, signal._HANDLER]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread only
        return
    # None stands for a handler that was not set from Python and cannot be set again from it.
    former = {signum: signal.getsignal(signum) for signum in handlers}
    for signum, handler in handlers.items():
        if former[signum] not in (None, signal.SIG_IGN):  # ignored: nohup
            signal.signal(signum, handler)
    try:
        yield
    finally:
        for signum, handler in former.items():
            if handler is not None:
                signal.signal(signum, handler)
