"""Creating folders of the cache and the state, with their permissions.

When we run as root, Postgres runs as another user. That user must be able to enter every folder above its binaries and
data, whatever the umask. Folders and files with rows or secrets are accessible to their owner only.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def make_shared(folder: Path) -> None:
    """Make a folder and its missing parents. If we are root, every user can enter them."""
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
    """Write a file that only its owner can read. It appears with its whole content."""
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)
    with open(new, "x", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
        out.write(text)
    new.replace(file)
