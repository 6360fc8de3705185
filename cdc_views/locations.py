"""Where downloads and the data of the native stack lie on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> Path:
    """Service data, pid and port files, logs: `$CDC_VIEWS_STATE`, else the system's default place."""
    return _folder("CDC_VIEWS_STATE", "/var/lib/cdc-views", "XDG_STATE_HOME", ".local/state")


def cache_folder() -> Path:
    """Downloads: `$CDC_VIEWS_CACHE`, else the system's default place."""
    return _folder("CDC_VIEWS_CACHE", "/var/cache/cdc-views", "XDG_CACHE_HOME", ".cache")


def _folder(variable: str, for_root: str, xdg: str, below_home: str) -> Path:
    # As root Postgres runs as another user, who could not traverse /root.
    if chosen := os.environ.get(variable):
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path(for_root)
    return Path(os.environ.get(xdg) or Path.home() / below_home) / "cdc-views"
