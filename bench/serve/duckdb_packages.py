"""DuckDB's full-text search, which only a baseline needs: pinned packages of an earlier version, in the cache.

The extension of the DuckDB that readers use is not on PyPI, and DuckDB's own server cannot be reached everywhere.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from cdc_views.errors import DownloadFailed
from cdc_views.host.locations import cache_folder
from cdc_views.stack.folders import make_shared

LOCK: Final = Path(__file__).with_name("duckdb_packages.lock")


def duckdb_packages() -> Path:
    """The folder with the packages; they are installed once. Raises DownloadFailed."""
    kept = cache_folder() / "bench" / hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if not kept.exists():
        make_shared(kept.parent)
        with tempfile.TemporaryDirectory(dir=kept.parent) as made:
            folder = Path(made) / "packages"
            command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes", "--only-binary",
                       ":all:", "--target", str(folder), "-r", str(LOCK)]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise DownloadFailed(done.stderr.strip().splitlines()[-1])
            folder.rename(kept)
    return kept


def fts_extension(packages: Path) -> Path:
    """The extension in these packages."""
    [found] = packages.rglob("fts.duckdb_extension")
    return found
