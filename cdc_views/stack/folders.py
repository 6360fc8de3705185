"""Folders of the cache and of the state.

As root Postgres runs as another user, who must be able to enter what lies above its binaries and
data, whatever the umask is. What holds rows or secrets is for the owner only.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def make_shared(folder: Path) -> None:
    """Make a folder and what is missing above it; as root every user can enter them."""
    if not folder.exists():
        make_shared(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            if os.geteuid() == 0:
                folder.chmod(0o755)


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can enter."""
    folder.mkdir(mode=0o700, exist_ok=True)


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read; it is never there in part."""
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)
    with open(new, "x", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
        out.write(text)
    new.replace(file)
