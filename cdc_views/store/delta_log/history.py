"""Who has written the versions of a table: we, an engine before or after us, upkeep, or a stranger.

Every version of ours carries a stamp. Attempts only grow, so a later one is of an engine that has taken over.
"""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Final

from deltalake import DeltaTable

from cdc_views.errors import Fenced, ForeignCommit, StoreError
from cdc_views.store.delta_log.entries import commit_info, entry_file, newest_version, read_entry
from cdc_views.store.delta_log.versions import Stamp, TableCommit

_REMEDY: Final = (
    "something else writes to the warehouse: stop it, then rebuild the table, "
    "or delete the folder of the table if the engine never published it"
)
_TAKEN_OVER: Final = "another engine has taken over; this one has stopped"


class History:
    """The versions of the tables below `root`; a `name` is what an error calls the table at `path`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def stamp_of(self, path: str, version: int) -> Stamp | None:
        """The stamp of a version; None if it has none. Raises TableUnavailable if its entry is gone."""
        return Stamp.parse(commit_info(read_entry(self._root / path, version)).get("userMetadata"))

    def commits_above(self, path: str, above: int, to: int | None = None) -> list[TableCommit]:
        """The versions above a given one and up to another, oldest first, as far as the log has their entries."""
        table = self._root / path
        wanted = range(above + 1, (newest_version(table) if to is None else to) + 1)
        return [
            TableCommit.of(version, read_entry(table, version))
            for version in wanted
            if entry_file(table, version).exists()
        ]

    def unknown_commits(
        self, path: str, above: int, attempts: Container[int] | None = None, to: int | None = None
    ) -> list[TableCommit]:
        """The versions above a given one, and up to another, that change content and are not of ours.

        Ours are those stamped with one of `attempts`, or with any if that is None. Versions that
        only rearrange files (upkeep) are known.
        """
        return [
            found
            for found in self.commits_above(path, above, to)
            if found.changes_content
            and (found.stamp is None or (attempts is not None and found.stamp.attempt not in attempts))
        ]

    def require_found(self, name: str, path: str, found: int, base: int, stamp: Stamp) -> None:
        """Raise Fenced or ForeignCommit if the newest version, which is `found`, is not `base`."""
        if found != base:
            by_later = self._by_later_attempt(name, path, stamp, base)
            raise by_later or foreign(name, f"found version {found}, wanted version {base}")

    def refuse_later_attempts(self, path: str, above: int, before: int, stamp: Stamp) -> None:
        """Raise Fenced if a version in between is of a later attempt, or gone: only a later engine removes those."""
        by_later = self._by_later_attempt(path, path, stamp, above)
        if by_later is not None:
            raise by_later
        for version in range(above + 1, before):
            if not entry_file(self._root / path, version).exists():
                raise Fenced(f'table "{path}": version {version} was removed already', hint=_TAKEN_OVER)

    def overtaken(self, name: str, path: str, stamp: Stamp, base: int) -> StoreError:
        """Make the error of a commit on top of `base` that did not become the next version."""
        table = self._root / path
        newest = newest_version(table)
        if newest == base:
            stored = DeltaTable(str(table)).transaction_version(path)
            return Fenced(
                f'table "{name}": version {base + 1} was not written: found transaction {stored}, '
                f"wanted one below attempt {stamp.attempt}",
                hint="the attempt was used before; start the engine again, which takes a new one",
            )
        by_later = self._by_later_attempt(name, path, stamp, base)
        wanted = f"wanted version {base + 1} with attempt {stamp.attempt}"
        return by_later or foreign(name, f"found version {newest}, {wanted}")

    def _by_later_attempt(self, name: str, path: str, stamp: Stamp, base: int) -> Fenced | None:
        """The error if one of the versions above `base` is of an attempt after the stamp's."""
        for other in self.commits_above(path, base):
            if other.stamp is not None and other.stamp.attempt > stamp.attempt:
                return Fenced(
                    f'table "{name}": version {other.version} has attempt {other.stamp.attempt}, '
                    f"wanted attempt {stamp.attempt}",
                    hint=_TAKEN_OVER,
                )
        return None


def foreign(name: str, what: str) -> ForeignCommit:
    """Make the error of a table in which somebody else has written."""
    return ForeignCommit(f'table "{name}": {what}', hint=_REMEDY)
