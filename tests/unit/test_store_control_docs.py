"""docs/control_log.md: its example runs, and its table of columns is the real one."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cdc_views.base.lsn import Lsn
from cdc_views.store.control.control_log import ControlLog, TableVersion
from cdc_views.store.control.records import SCHEMA

PAGE = (Path(__file__).parents[2] / "docs" / "control_log.md").read_text()


def test_example_of_the_page_reads_the_published_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for ids in ([1, 2], [3]):
        write_deltalake(str(tmp_path / "mirrors/orders"), pa.table({"id": ids}), mode="append")
    log = ControlLog.open(tmp_path, "engine")
    log.take_over()
    tables = {"public.orders": TableVersion("mirrors/orders", 0, "ok", "mirror")}
    log.append(kind="publish", epoch=1, attempt=2, position=Lsn.parse("0/16"), tables=tables)
    log.append(
        kind="intent", epoch=2, attempt=3, tables={"public.orders": TableVersion("mirrors/orders", 1, "ok", "mirror")}
    )
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], {"warehouse": str(tmp_path)})
    assert capsys.readouterr().out == "2 orders at 0/16\n"


def test_columns_of_the_page_are_those_of_the_table() -> None:
    assert re.findall(r"^\| (\w+) \| (?:long|string|timestamp|map)", PAGE, re.MULTILINE) == SCHEMA.names
