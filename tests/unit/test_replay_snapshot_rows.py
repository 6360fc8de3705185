"""The file with the rows of a snapshot: on the disk of the warehouse, and never there for long; without a JVM."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from cdc_views.errors import DiskFull
from cdc_views.replay.snapshot_rows import snapshot_rows
from cdc_views.source.catalog import SourceTable
from cdc_views.source.reading.printing import TextRow
from cdc_views.store.upkeep.vacuum import sweep
from tests.unit.capture_records import table


class Snapshot:
    """A snapshot of one row."""

    def rows(self, table: SourceTable) -> Iterator[TextRow]:
        """The row."""
        return iter([("1", "2", "text")])


SNAPSHOT = cast(Any, Snapshot())
# Gives the path in place of a frame.
SPARK = cast(Any, SimpleNamespace(read=SimpleNamespace(schema=lambda _: SimpleNamespace(parquet=Path))))


def test_rows_are_in_the_folder_of_the_table_for_the_block_alone(tmp_path: Path) -> None:
    with snapshot_rows(SNAPSHOT, SPARK, table(), tmp_path) as frame:
        file = cast(Path, frame)
        assert pq.read_table(file).num_rows == 1
        assert file.is_relative_to(tmp_path)
    assert not list(tmp_path.iterdir())


def test_rows_that_a_killed_rebuild_left_are_swept(tmp_path: Path) -> None:
    with snapshot_rows(SNAPSHOT, SPARK, table(), tmp_path) as frame:
        sweep(tmp_path, [], cast(Path, frame).parent.stat().st_mtime - 1)
        assert cast(Path, frame).exists()
        sweep(tmp_path, [], cast(Path, frame).parent.stat().st_mtime)
        assert not list(tmp_path.iterdir())


def test_full_disk_is_that_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(DiskFull) as raised, snapshot_rows(SNAPSHOT, SPARK, table(), tmp_path):
        pass
    assert raised.value.path == str(tmp_path)


def test_folder_whose_name_looks_like_a_pattern_is_quoted_for_spark(tmp_path: Path) -> None:
    folder = tmp_path / "a[b]{c}"
    folder.mkdir()
    with snapshot_rows(SNAPSHOT, SPARK, table(), folder) as frame:
        assert str(tmp_path / "a\\[b\\]\\{c\\}") in str(frame)
