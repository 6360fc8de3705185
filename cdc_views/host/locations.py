"""The folders on this machine for downloads, for the data of the native stack, and for the demo's project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

DEMO: Final = "demo"
STATE_OF_ROOT: Final = "/var/lib/cdc-views"


def state_folder() -> Path:
    """Return the folder of service data, pid and port files, and logs: `$CDC_VIEWS_STATE`, else a system default."""
    return _folder("CDC_VIEWS_STATE", STATE_OF_ROOT, "XDG_STATE_HOME", ".local/state")


def cache_folder() -> Path:
    """Return the folder of downloads: `$CDC_VIEWS_CACHE`, else a system default."""
    return _folder("CDC_VIEWS_CACHE", "/var/cache/cdc-views", "XDG_CACHE_HOME", ".cache")


def demo_folder() -> Path:
    """Return the folder of the project that `./scripts/demo` creates."""
    return state_folder() / DEMO


def project_folder(given: Path) -> Path:
    """Return the folder that `-C` means: `demo` is the demo's project, unless there is a folder ./demo."""
    if given == Path(DEMO) and not given.is_dir() and demo_folder().is_dir():
        return demo_folder()
    return given


def _folder(variable: str, for_root: str, xdg: str, below_home: str) -> Path:
    # Root starts Postgres as another user, who cannot traverse /root.
    if chosen := os.environ.get(variable):
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path(for_root)
    return Path(os.environ.get(xdg) or Path.home() / below_home).absolute() / "cdc-views"
