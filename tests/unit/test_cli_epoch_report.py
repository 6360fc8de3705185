"""The log lines of epochs: what is wrong is said once, and once more when it is over."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cdc_views.cli.epoch_report import EpochReport
from cdc_views.cli.log_lines import show_dated_lines
from tests.unit.watched import EPOCH

STOPPED = {
    "public.t": {"error": "SchemaChanged", "message": "column dropped", "hint": None, "position": "0/1"},
}  # fmt: skip


def test_troubles_of_tables_are_logged_when_they_begin_change_and_end(capsys: pytest.CaptureFixture[str]) -> None:
    show_dated_lines()
    report = EpochReport()
    report(EPOCH)
    report(EPOCH)
    report(replace(EPOCH, detail={**EPOCH.detail, "failures": {"v": "OTHER", "_cv_w_1": "hidden"}}))
    report(replace(EPOCH, epoch=9, detail={"stopped": STOPPED, "parked": {"public.u": 2}}))
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    epochs = [line for line in lines if line["message"].startswith("epoch")]
    assert [line["epoch"] for line in epochs] == [7, 7, 7, 9]
    assert epochs[0]["stage_ms"] == {"cut": 250, "views": 750}
    shown = [(line["epoch"], line["level"], line["table"], line.get("error"), line["message"])
             for line in lines if line not in epochs]  # fmt: skip
    assert shown == [
        (7, "WARNING", "v", "ViewFailed", 'view "v" has failed: DIVIDE_BY_ZERO'),
        (7, "WARNING", "v", "ViewFailed", 'view "v" has failed: OTHER'),
        (9, "WARNING", "public.t", "SchemaChanged", 'table "public.t" is stopped: SchemaChanged: column dropped'),
        (9, "WARNING", "public.u", None, 'table "public.u" has 2 parked keys: see "cdc-views quarantine list"'),
        (9, "INFO", "v", None, '"v" is well again'),
    ]
