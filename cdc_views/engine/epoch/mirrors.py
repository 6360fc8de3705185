"""Step 4: one Delta version per changed mirror, several at the same time.

Those through Spark take their turns (Warehouse); the others mostly wait for the disk, and do that together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from cdc_views import faults
from cdc_views.engine.epoch.parallel import in_parallel
from cdc_views.engine.epoch.tables import Tables
from cdc_views.engine.input.deltas import MirrorDelta
from cdc_views.engine.input.mirror_errors import naming_table

if TYPE_CHECKING:
    from cdc_views.engine.epoch.steps import Intent

AT_ONCE: Final = 16


def commit_mirrors(tables: Tables, deltas: Mapping[str, MirrorDelta], intent: Intent) -> dict[str, int]:
    """Commit every changed mirror; returns the new version of each, those done earlier included."""
    done = {name: version for name, version in intent.done.items() if name in tables.sources}

    def commit(name: str) -> int:
        changes = deltas[name].changes
        assert changes is not None
        with naming_table(name):
            version = tables.warehouse.commit(tables.specs[name], tables.version(name), changes, intent.stamp)
        faults.point("mirrors.after_first_commit")
        return version

    changed = [name for name, delta in deltas.items() if delta.changes is not None]
    return done | dict(zip(changed, in_parallel(commit, changed, AT_ONCE), strict=True))
