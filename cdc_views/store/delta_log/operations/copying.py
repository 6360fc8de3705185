"""A copy of one version of a table: its files, and its log up to that version."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

from cdc_views.store.delta_log.entries import LOG_FOLDER
from cdc_views.store.storage import durable

_VERSION: Final = re.compile(r"^(\d{20})\.")


def copy_table(root: Path, path: str, version: int, to: str) -> None:
    """Copy a version and all earlier ones to another path below the warehouse. The copy is complete or absent."""
    draft = root / f"{to}.draft"
    shutil.rmtree(draft, ignore_errors=True)

    def skipped(folder: str, names: list[str]) -> set[str]:
        if Path(folder).name != LOG_FOLDER:
            # The draft of a checkpoint that the engine is writing may be gone before it is copied.
            return {name for name in names if name.endswith(".tmp")}
        # `_last_checkpoint` may name a later version; without it readers list the log.
        return {name for name in names if not (found := _VERSION.match(name)) or int(found[1]) > version}

    shutil.copytree(root / path, draft, ignore=skipped)
    durable.sync_tree(draft)
    draft.rename(root / to)
    durable.sync((root / to).parent)
