"""A copy of a version has its files and its log up to it, and nothing that is being made beside them."""

from __future__ import annotations

from pathlib import Path

from cdc_views.store.delta_log.entries import LOG_FOLDER, entry_file
from cdc_views.store.delta_log.operations.copying import copy_table


def test_copy_of_a_version_leaves_out_later_ones_and_drafts(tmp_path: Path) -> None:
    table = tmp_path / "t"
    draft = table / ".0.tmp" / LOG_FOLDER
    draft.mkdir(parents=True)
    (table / LOG_FOLDER).mkdir()
    for version in range(3):
        entry_file(table, version).write_text("{}")
    for file in (table / "a.parquet", table / LOG_FOLDER / "_last_checkpoint", draft / "b.json"):
        file.write_text("x")
    copy_table(tmp_path, "t", 1, "copy")
    copied = {str(file.relative_to(tmp_path / "copy")) for file in (tmp_path / "copy").rglob("*")}
    assert copied == {"a.parquet", LOG_FOLDER, *(f"{LOG_FOLDER}/{version:020d}.json" for version in range(2))}
