"""Rows that a rebuild reads from Postgres pass the same door as those of the log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from cdc_views.errors import UnresolvedToast
from cdc_views.replay.snapshot_rows import snapshot_rows
from cdc_views.source.catalog import SourceTable
from cdc_views.source.reading.printing import TextRow
from tests.unit.capture_records import PLACEHOLDER, table


class Snapshot:
    """A snapshot of one row."""

    def __init__(self, *row: str) -> None:
        self._row = row

    def rows(self, table: SourceTable) -> Iterator[TextRow]:
        """The row."""
        return iter([self._row])


@pytest.mark.parametrize("name", ["plain", "a [b] {c} *?"])
def test_row_of_a_snapshot_is_what_postgres_printed(spark: SparkSession, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with snapshot_rows(cast(Any, Snapshot("1", "2", "text")), spark, table(), tmp_path / name) as rows:
        assert [tuple(row) for row in rows.collect()] == [(1, 2, "text")]


def test_row_of_a_snapshot_that_holds_the_placeholder_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    row = Snapshot("1", "2", f"not {PLACEHOLDER} again")
    refused = pytest.raises(UnresolvedToast, match='column "body" would hold the placeholder')
    with refused, snapshot_rows(cast(Any, row), spark, table(), tmp_path):
        pass
