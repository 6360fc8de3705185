"""Layout `vectors`: a file that loses rows stays, and a deletion vector hides them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from cdc_views.store.commits.committer import Committer, Removal, Target
from cdc_views.store.delta_log.deletion_vectors import RowNumbers, StoredRows, VectorFile
from cdc_views.store.delta_log.entries import Action, Add
from cdc_views.store.delta_log.versions import removal
from cdc_views.store.storage.port import STORAGE


class VectorCommitter(Committer):
    """Removes rows by a deletion vector for each file that loses some, all in one new vector file."""

    def remove_rows(self, target: Target, gone: StoredRows) -> Removal:
        state, vectors = target.state, VectorFile()
        dead = {path: state.dead_rows(target.folder, path) | rows for path, rows in gone.items()}
        is_empty = {path: len(rows) == state.rows_in(path) for path, rows in dead.items()}
        actions: list[Action] = []
        for path, rows in dead.items():
            actions.append(removal(state.files[path], data_change=True))
            if not is_empty[path]:
                actions.append({"add": _with_dead_rows(state.files[path], rows, vectors)})
        if vectors.holds_any:
            STORAGE.put(target.folder / vectors.name, vectors.content)
        return Removal(actions, {path: rows for path, rows in dead.items() if not is_empty[path]})


def _with_dead_rows(add: Add, dead: RowNumbers, vectors: VectorFile) -> Mapping[str, Any]:
    """The `add` action of a file with these dead rows, whose vector is appended to `vectors`."""
    stats = _exact(orjson.loads(add["stats"]))
    # With rows gone, minimum and maximum are bounds only.
    stats["tightBounds"] = False
    carried = {name: add[name] for name in ("path", "size", "tags") if add.get(name)}
    return {
        **carried,
        "partitionValues": add.get("partitionValues") or {},
        "stats": orjson.dumps(stats).decode(),
        "modificationTime": add["modificationTime"],
        "dataChange": True,
        "deletionVector": vectors.add(dead),
    }


def _exact(stats: dict[str, Any]) -> dict[str, Any]:
    """The statistics of a file that Spark wrote, without bounds that lose digits when JSON numbers are read again."""
    for bound in ("minValues", "maxValues"):
        stats[bound] = {name: value for name, value in stats.get(bound, {}).items() if type(value) is int}
    return stats
