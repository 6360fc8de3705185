"""What is left of a view that was built beside the epochs, once it has joined them; without a JVM."""

from __future__ import annotations

import math
import weakref
from types import SimpleNamespace
from typing import Any, cast

from cdc_views.engine.building.beside import Beside


class Joined:
    """A build that has reached the last epoch."""

    names = frozenset({"v"})
    at = SimpleNamespace(epoch=1)
    is_by_changes, fills = False, 1

    def __init__(self) -> None:
        self.specs: dict[str, object] = {}

    def bring_to(self, *_: object, **__: object) -> None:
        """Nothing is left to do."""


def test_build_that_has_joined_is_forgotten() -> None:
    tables = SimpleNamespace(published=SimpleNamespace(), building={"v": "filling"}, adopt=lambda *_: None)
    views = SimpleNamespace(admit=lambda _: None)
    beside = Beside(cast(Any, None), cast(Any, tables), cast(Any, views))
    beside._looked_at_s = math.inf
    build = Joined()
    beside._builds[0], beside._ended[0] = cast(Any, build), None
    kept = weakref.ref(build)
    del build
    beside.join()
    assert tables.building == {}
    assert kept() is None
