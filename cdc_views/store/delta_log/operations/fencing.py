"""Fencing a table: an empty version that shuts out the commits of older attempts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cdc_views.errors import Fenced
from cdc_views.store.delta_log.entries import VersionTaken, newest_version, put_entry
from cdc_views.store.delta_log.history import History
from cdc_views.store.delta_log.versions import Stamp, fence

_TRIES: Final = 20


def fence_table(root: Path, path: str, stamp: Stamp, history: History, above: int | None = None) -> int:
    """Put an empty version that carries the attempt, and return its number.

    A commit through Spark that began before it then finds a concurrent transaction. One that begins after it with the
    same or a lower attempt is skipped by Spark, and reported when it is read back. `above` is a version that existed
    before the attempt was given out: later versions are of an older engine, which this shuts out, or of a later one.
    Raises Fenced if there is a later one, or if another writer keeps putting versions at the same time.
    """
    table = root / path
    for _ in range(_TRIES):
        version = newest_version(table) + 1
        if above is not None:
            history.refuse_later_attempts(path, above, version, stamp)
        try:
            put_entry(table, version, fence(path, version - 1, stamp))
            return version
        except VersionTaken:
            continue
    raise Fenced(f'table "{path}": version {version} was taken at every try', hint="another engine is writing")
