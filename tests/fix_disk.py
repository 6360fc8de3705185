"""A disk that is really full: a small one of the test's own, or the small one that every container has."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

PAGE_BYTES: Final = 4096
_SIZE_BYTES: Final = 48 << 20
_SHARED: Final = Path("/dev/shm")
_MOST_FILLED_BYTES: Final = 256 << 20


class SmallDisk:
    """A folder on a disk of its own. A disk in memory gives each file whole pages, and names cost nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / f"filler-{uuid4().hex}"

    def fill(self, pages: int) -> None:
        """Leave so many pages free."""
        self.free()
        with self._filler.open("wb", buffering=0) as file:
            with suppress(OSError):
                while file.write(b"\0" * PAGE_BYTES):
                    pass
            size = file.tell()
            assert size > pages * PAGE_BYTES, f"the disk has only {size} bytes left"
            file.truncate(size - pages * PAGE_BYTES)

    def free(self) -> None:
        """Make room again."""
        self._filler.unlink(missing_ok=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A small disk. Where this process may not mount one, that which a container's processes share is filled."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE_BYTES}", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, text=True)
    if mounted.returncode == 0:
        yield SmallDisk(folder)
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        return
    free_bytes = shutil.disk_usage(_SHARED).free if os.path.ismount(_SHARED) else 0
    if not _SIZE_BYTES <= free_bytes <= _MOST_FILLED_BYTES:
        pytest.fail(
            f"no small disk to fill: {mounted.stderr.strip()}; {_SHARED} has {free_bytes >> 20} MiB free, wanted "
            f"{_SIZE_BYTES >> 20} to {_MOST_FILLED_BYTES >> 20}; run the tests as root"
        )
    shared = SmallDisk(_SHARED / f"cdc-views-{uuid4().hex}")
    shared.folder.mkdir()
    yield shared
    shutil.rmtree(shared.folder)
