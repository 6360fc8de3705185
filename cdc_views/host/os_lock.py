"""The operating system's lock of an open file. It ends with its process, however that ends.

Python opens files close-on-exec, so no program that it starts inherits the lock. The library `filelock` has no shared
mode, so asking who holds a lock would take it for a moment; and without flock it uses files that outlive their process.
"""

from __future__ import annotations

import fcntl
from typing import IO, Any


def try_lock(file: int | IO[str]) -> bool:
    """Take the lock of an open file, or return False if another process has it. Closing the file releases it."""
    return _gets(file, fcntl.LOCK_EX)


def is_locked(file: int | IO[Any]) -> bool:
    """Whether another process has the lock of an open file. Asking takes the shared lock until the file is closed."""
    return not _gets(file, fcntl.LOCK_SH)


def _gets(file: int | IO[Any], mode: int) -> bool:
    try:
        fcntl.flock(file, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
