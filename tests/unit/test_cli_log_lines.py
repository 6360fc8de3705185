"""How lines of the log look on a terminal and elsewhere."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import re
import sys

import pytest

from cdc_views.cli.log_lines import show_dated_lines, show_lines

LOGGER = logging.getLogger("cdc_views.engine.patience")


def test_lines_of_a_command_are_the_messages_alone(capsys: pytest.CaptureFixture[str]) -> None:
    show_lines()
    LOGGER.info('removed topic "%s"', "a")
    LOGGER.debug("no more than that")
    assert capsys.readouterr().err == 'removed topic "a"\n'


def test_lines_of_run_are_json_with_time_level_and_fields(capsys: pytest.CaptureFixture[str]) -> None:
    show_dated_lines()
    LOGGER.warning('view "%s"\nhas failed', "ü", extra={"fields": {"epoch": 7, "stage_ms": {"cut": 1}}})
    shown = capsys.readouterr().err
    line = json.loads(shown)
    assert shown.count("\n") == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\+00:00", line.pop("time"))
    assert line == {"level": "WARNING", "message": 'view "ü"\nhas failed', "epoch": 7, "stage_ms": {"cut": 1}}


def test_json_line_of_an_error_has_its_cause_without_its_message(capsys: pytest.CaptureFixture[str]) -> None:
    show_dated_lines()
    try:
        raise ValueError("secret")
    except ValueError:
        LOGGER.exception("its metrics failed")
    shown = capsys.readouterr().err
    assert json.loads(shown)["cause"] == "ValueError"
    assert "secret" not in shown


def test_json_line_with_a_path_that_is_not_utf_8_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    show_dated_lines()
    (handler,) = logging.getLogger("cdc_views").handlers  # alone: pytest cannot report such a text
    handler.handle(logging.makeLogRecord({"msg": '"' + os.fsdecode(b"\xff") + '" is gone'}))
    assert json.loads(capsys.readouterr().err)["message"] == '"\udcff" is gone'


def test_line_that_cannot_be_written_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", Full())
        show_dated_lines()
        LOGGER.info("lost")


def test_lines_of_run_on_a_terminal_are_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    show_dated_lines()
    LOGGER.info("engine: running")
    line = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO engine: running\n"
    assert re.fullmatch(line, capsys.readouterr().err)
