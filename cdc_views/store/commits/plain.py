"""Layout `plain`: a file that loses rows is replaced by a new one without them.

For readers that do not know deletion vectors. The cost of a commit follows the size of the files that it touches.
"""

from __future__ import annotations

from cdc_views.store.commits.committer import Committer, Removal, Target
from cdc_views.store.delta_log.deletion_vectors import StoredRows
from cdc_views.store.delta_log.entries import Action
from cdc_views.store.delta_log.versions import removal
from cdc_views.store.files.merged_file import rows_without, write_merged


class PlainCommitter(Committer):
    """Removes rows by replacing each file that loses some."""

    def remove_rows(self, target: Target, gone: StoredRows) -> Removal:
        folder, spec = target.folder, target.spec
        actions: list[Action] = [removal(target.state.files[path], data_change=True) for path in gone]
        # One new file for each: a single one would soon hold the whole table, and every change would rewrite it.
        for path, rows in gone.items():
            kept = write_merged(folder, spec, rows_without(folder, spec, path, rows))
            if kept is not None:
                actions.append({"add": {**kept, "dataChange": True}})
        return Removal(actions)
