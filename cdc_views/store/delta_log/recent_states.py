"""The states of one table at the versions that were used last, so that lookups can ask for an older version.

A state is a few dicts of the table's files, which share their content with other states: a copy is cheap.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cdc_views.store.delta_log.state import TableState

# The published version, the newest one, and those of a fence and of upkeep between them.
_MOST_STATES: Final = 4


class RecentStates:
    """At most four states by version; the least recently used one goes first. Not for several threads at once."""

    def __init__(self) -> None:
        self._states: dict[int, TableState] = {}
        self._files: dict[str, None] = {}

    def keep(self, state: TableState) -> None:
        """Keep a copy of this state, which later changes of it do not affect."""
        if state.version not in self._states:
            self._add(state.copy())

    def at(self, table: Path, version: int) -> TableState | None:
        """The state at a version, read from the log if it is not kept; None if the log no longer has all of it."""
        state = self._states.pop(version, None)
        if state is not None:
            self._states[version] = state  # the dict is ordered by last use
        elif (state := TableState.of(table, version)) is not None:
            self._add(state)
        return state

    @property
    def files(self) -> dict[str, None]:
        """The paths of the files of all these states."""
        return self._files

    def _add(self, state: TableState) -> None:
        self._states[state.version] = state
        while len(self._states) > _MOST_STATES:
            del self._states[next(iter(self._states))]
        self._files = {path: None for kept in self._states.values() for path in kept.files}
