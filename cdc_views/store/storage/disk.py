"""Errors of the operating system at the files of a warehouse, translated to ours.

Python has the number of such an error in a field. delta-rs, Arrow and Java have it in a message only; those messages
are parsed here and nowhere else.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake.exceptions import DeltaError

from cdc_views.errors import DiskFull, WarehouseUnusable

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# Other errors are not of a file system: a refused connection, a broken pipe.
_OF_FILES: Final = _NO_SPACE | {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ENAMETOOLONG, errno.EMFILE, errno.ENFILE, errno.ENOTDIR,
    errno.EISDIR, errno.ENOENT, errno.ESTALE, errno.ELOOP, errno.EFBIG, errno.ENODEV, errno.ENXIO, errno.EMLINK,
    errno.ENOTSUP, errno.ENOTEMPTY, errno.EBUSY,
}  # fmt: skip
_HINTS: Final = {
    errno.EACCES: "give the user of the engine the right to read and write it",
    errno.EPERM: "give the user of the engine the right to read and write it",
    errno.EROFS: "mount the file system for writing",
    errno.EIO: "look for errors of the disk in the log of the machine",
    errno.ENAMETOOLONG: "put the warehouse at a shorter path",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the limit of open files of the machine",
    errno.ENOTDIR: "the warehouse is a folder; something else is in its place",
    errno.ENOENT: "it was removed while it was in use: restore it, or rebuild the table",
    errno.ESTALE: "mount the file system again",
    errno.ENOTSUP: "the file system needs hard links and fsync",
}

# The forms of delta-rs (two, which Arrow and DuckDB repeat) and of Arrow.
_IN_TEXT: Final = re.compile(r"\(os error (\d+)\)|\bOs \{ code: (\d+)|\[Errno (\d+)\]")
_BY_TEXT: Final = {os.strerror(number): number for number in sorted(_OF_FILES)}
# As Java throws it, up to the end of the line: an error may quote a row value that contains the same text.
_OF_JAVA: Final = re.compile(
    r"java\.\S+Exception: (?:[^':]*[:(] ?)?(" + "|".join(map(re.escape, _BY_TEXT)) + r")\)?\s*$", re.MULTILINE
)
_JAVA_CLASSES: Final = {
    "java.nio.file.AccessDeniedException": errno.EACCES,
    "java.nio.file.ReadOnlyFileSystemException": errno.EROFS,
}
_OF_JAVA_CLASS: Final = re.compile(r"\b(" + "|".join(map(re.escape, _JAVA_CLASSES)) + r")\b")


@contextmanager
def touching(path: Path) -> Iterator[None]:
    """Translate errors of the operating system while files of a warehouse or table are used.

    Raises WarehouseUnusable, and DiskFull, which is one.
    """
    try:
        yield
    except (OSError, DeltaError, pa.ArrowException) as error:
        if (unusable := unusable_by(error, path)) is not None:
            raise unusable from error
        raise


def require_folder(path: Path) -> None:
    """Raise WarehouseUnusable if the path of a warehouse is not a folder, or is not accessible."""
    with touching(path):
        try:
            os.stat(f"{path}/.")  # pathlib drops the dot
        except FileNotFoundError:
            return  # the first writer creates it


def unusable_by(error: Exception, path: Path) -> WarehouseUnusable | None:
    """Our error for a file error of Python, delta-rs, Arrow or DuckDB; None if it is not a file error.

    `path` is what was being used. The message has the file that the error names, unless that file is gone.
    """
    number = errno_of(error)
    if number not in _OF_FILES:
        return None
    return unusable(number, path if number == errno.ENOENT else getattr(error, "filename", None) or path)


def errno_of(error: Exception) -> int | None:
    """The number of an error of the operating system; None if it has none."""
    number = getattr(error, "errno", None)
    if isinstance(number, int):
        return number
    found = _IN_TEXT.search(str(error))
    return next(int(digits) for digits in found.groups() if digits) if found else None


def unusable_by_java(trace: str, path: Path) -> WarehouseUnusable | None:
    """Our error for the text of a Java failure with all its causes; None if no cause is a file error."""
    if found := _OF_JAVA.search(trace):
        return unusable(_BY_TEXT[found[1]], path)
    if named := _OF_JAVA_CLASS.search(trace):
        return unusable(_JAVA_CLASSES[named[1]], path)
    return None


def unusable(number: int, path: Path | str | bytes) -> WarehouseUnusable:
    """Our error for an error number of the operating system at a path."""
    name = os.fsdecode(path)
    if number in _NO_SPACE:
        return DiskFull(
            f'no space left on the device of "{name}"',
            hint="free some space and start the engine again; nothing was published",
            path=name,
            errno=number,
        )
    return WarehouseUnusable(
        f'"{name}" cannot be used: {os.strerror(number)}',
        hint=_HINTS.get(number, "see the log of the machine"),
        path=name,
        errno=number,
    )
