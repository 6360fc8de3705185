"""New and edited views are built beside the epochs, and join them at one.

groups.py  which views are built beside, and which of them belong together
build.py   brings the views of a group to the state of a published epoch
beside.py  does that in a thread, while the engine publishes epochs, and lets the views join
"""

from __future__ import annotations

from cdc_views.engine.building.beside import Beside
from cdc_views.engine.building.build import Build

__all__ = ["Beside", "Build"]
