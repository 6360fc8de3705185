"""Views that are built beside the epochs, without the thread: a test does what it would do, one step at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Self

import pytest

from cdc_views.engine.building import Beside, Build
from cdc_views.store.control import ControlRecord
from cdc_views.testing import ViewHarness


def without_thread(beside: Beside) -> Beside:
    """The same views, whose thread does nothing."""
    beside._thread = threading.Thread(target=lambda: None)
    return beside


def build_any_size(patched: pytest.MonkeyPatch) -> None:
    """Let views over small tables be built beside the epochs, too."""
    patched.setattr("cdc_views.engine.building.groups._is_large", lambda *_: True)


class BuildingHarness(ViewHarness):
    """Builds new and edited views beside its epochs from a restart on, as `cdc-views run` does.

    `built` has the tables that each start has begun to fill.
    """

    _beside: Beside

    def __enter__(self) -> Self:
        self.built: list[frozenset[str]] = []
        return super().__enter__()

    def follow(self, view: str) -> None:
        """Bring the group of a view to the last epoch, from the rows of an earlier one if it has them."""
        for _, build in self._building(view):
            self._beside._build(build)

    def end(self, view: str) -> None:
        """Let the group of a view join before the next epoch."""
        for number, _ in self._building(view):
            self._beside._ended[number] = None

    def _building(self, view: str) -> Iterator[tuple[int, Build]]:
        """The group of a view with its number; none if the view has joined."""
        if view in self._tables.building:
            yield from ((number, each) for number, each in self._beside._builds.items() if view in each.names)

    def run_epoch(self, idle_interval_s: float = 0) -> ControlRecord | None:
        """Run the next epoch, after the views that are ready have joined."""
        self._require_running()
        with self._writing():
            self._beside.join()
        return super().run_epoch(idle_interval_s)

    def drop_view(self, name: str) -> None:
        """Drop a view, which may be one that is being built."""
        for _, build in self._building(name):
            self._tables.take_back(build.specs.values())
        super().drop_view(name)

    def _begin(self, takeover: ControlRecord) -> None:
        self._beside = without_thread(Beside(self._spark, self._tables, self._writer.views))
        self._beside.begin(takeover)
        self.built.append(self._tables.built)

    def _build(self) -> None:
        if self._tables.building:
            self._require_running()
        else:
            super()._build()
