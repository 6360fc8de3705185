"""docs/readers.md: the lines for Spark read the published version of a table, and refuse one that is not right."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from cdc_views import spark_tables
from cdc_views.base.lsn import Lsn
from cdc_views.store.control.control_log import ControlLog, TableVersion

PAGE = Path(__file__).parents[2] / "docs" / "readers.md"


def lines_of_the_page(marker: str = "pyspark") -> str:
    found = re.search(rf"<!-- {marker}:.*?-->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1]


def publish(root: Path, status: str) -> None:
    """Two versions of a table; the first is published, the second is intended."""
    for ids in ([1, 2], [3]):
        write_deltalake(str(root / "mirrors/orders"), pa.table({"id": ids}), mode="append")
    log = ControlLog.open(root, "engine")
    log.take_over()
    tables = {"public.orders": TableVersion("mirrors/orders", 0, status, "mirror")}
    log.append(kind="publish", epoch=1, attempt=2, position=Lsn.parse("0/16"), tables=tables)
    log.append(
        kind="intent", epoch=2, attempt=3, tables={"public.orders": TableVersion("mirrors/orders", 1, "live", "mirror")}
    )


def test_lines_of_the_page_read_the_published_version(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, "live")
    exec(lines_of_the_page(), {"spark": spark, "warehouse": str(tmp_path)})
    assert capsys.readouterr().out == "2 orders at 0/16\n"


def test_lines_of_the_page_refuse_a_stopped_table(spark: SparkSession, tmp_path: Path) -> None:
    publish(tmp_path, "stopped")
    with pytest.raises(RuntimeError, match=r"public\.orders is stopped in epoch 1"):
        exec(lines_of_the_page(), {"spark": spark, "warehouse": str(tmp_path)})


def test_lines_with_the_client_read_the_published_version(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, "live")
    exec(lines_of_the_page("spark"), {"spark": spark, "warehouse": str(tmp_path)})
    assert capsys.readouterr().out == "2 orders\n2 orders at 0/16\n"
    with pytest.raises(KeyError):
        spark_tables(spark, tmp_path)["nosuch"]
