"""Where this machine keeps downloads and the data of the native stack."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> Path:
    """The folder of service data, pid files, port files and logs: `$CDC_VIEWS_STATE`, or the system's default."""
    return _folder("CDC_VIEWS_STATE", "/var/lib/cdc-views", "XDG_STATE_HOME", ".local/state")


def cache_folder() -> Path:
    """The folder of downloads: `$CDC_VIEWS_CACHE`, or the system's default."""
    return _folder("CDC_VIEWS_CACHE", "/var/cache/cdc-views", "XDG_CACHE_HOME", ".cache")


def _folder(variable: str, for_root: str, xdg: str, below_home: str) -> Path:
    # When we run as root, Postgres runs as another user, who cannot enter /root.
    if chosen := os.environ.get(variable):
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path(for_root)
    return Path(os.environ.get(xdg) or Path.home() / below_home) / "cdc-views"
