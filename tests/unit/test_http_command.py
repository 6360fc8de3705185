"""`cdc-views serve`: what it refuses, how it ends, and what it costs those who do not use it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from cdc_views.cli.main import main
from cdc_views.config import FILE_NAME, load_http
from cdc_views.errors import BadConfig
from tests.unit.fix_http import TIMEOUT_S, TOKEN
from tests.unit.published import ORDERS, Published

SETTINGS = "http: {host: 0.0.0.0, tokens: ['${env:SHOP_TOKEN}', '${file:old}']}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without the settings of a source: `serve` needs the warehouse only."""
    (tmp_path / FILE_NAME).write_text("stack: native\n")
    shop = Published(tmp_path / "warehouse")
    shop.write(ORDERS, [(1, "a")])
    shop.publish()
    return tmp_path


def test_serve_answers_until_it_is_terminated(project: Path) -> None:
    command = [sys.executable, "-m", "cdc_views.cli.main", "-C", str(project), "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr
        url = json.loads(running.stderr.readline())["message"].removeprefix("serving at ")
        assert requests.get(f"{url}/views/public.orders/rows/1", timeout=TIMEOUT_S).json() == {"id": 1, "note": "a"}
        running.send_signal(signal.SIGTERM)
        assert running.wait(TIMEOUT_S) == 130
        assert running.stderr.read() == "interrupted by SIGTERM; exit status 130\n"


def test_serve_for_others_without_tokens_exits_with_2(project: Path) -> None:
    shown = CliRunner().invoke(main, ["-C", str(project), "serve", "--host", "0.0.0.0", "--port", "0"])
    assert shown.exit_code == 2
    assert shown.stderr.startswith('BadConfig: http.host is "0.0.0.0"')


def test_tokens_are_references_and_never_shown(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / FILE_NAME).write_text(SETTINGS)
    (project / "old").write_text("an old token of enough characters\n")
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    settings = load_http(project)
    assert [token.get_secret_value() for token in settings.tokens] == [TOKEN, "an old token of enough characters"]
    assert TOKEN not in repr(settings)
    monkeypatch.setenv("SHOP_TOKEN", "too short")
    with pytest.raises(BadConfig, match=r"http\.tokens: a token has less than 16 characters") as raised:
        load_http(project)
    assert "too short" not in str(raised.value)
    monkeypatch.delenv("SHOP_TOKEN")
    with pytest.raises(BadConfig, match='environment variable "SHOP_TOKEN"'):
        load_http(project)


def test_commands_do_not_load_the_server() -> None:
    code = "import sys, cdc_views.cli.readers.serve; print([n for n in ('fastapi', 'uvicorn') if n in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
