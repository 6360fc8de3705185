"""Removes what a project has created in Connect, Kafka and Postgres. The warehouse stays as it is."""

from __future__ import annotations

from collections.abc import Callable

from cdc_views.config import Settings
from cdc_views.engine.capture.capture_removal import CaptureRemoval, remove_capture
from cdc_views.engine.capture.captures import all_captures, current_capture
from cdc_views.engine.service.lock import only_reset, require_no_engine
from cdc_views.source.connection import connect
from cdc_views.source.removal import remove_from_source


def destroy(base: Settings, tell: Callable[[str], None]) -> list[str]:
    """Remove everything; returns what could not be removed, which another call removes. `tell` gets each step.

    Raises WarehouseLocked while an engine or a reset runs.
    """
    with only_reset(base.warehouse):
        require_no_engine(base.warehouse)
        return _destroyed(base, tell)


def _destroyed(base: Settings, tell: Callable[[str], None]) -> list[str]:
    captures = all_captures(current_capture(base))
    removal = CaptureRemoval(tell)
    for capture in captures:
        remove_capture(base, capture, removal)
    with removal.trying("objects in Postgres"), connect(base.source.dsn.get_secret_value()) as connection:
        slots = [capture.slot for capture in captures]
        for each in remove_from_source(connection, base.source.publication, slots):
            tell(str(each))
    tell(f'kept the warehouse "{base.warehouse}": readers can go on; remove the folder if nobody needs it')
    if removal.left:
        tell(f'left {len(removal.left)}: run "cdc-views destroy" again once the services are there')
    return removal.left
