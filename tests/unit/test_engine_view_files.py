"""An error of a view file is not one of the warehouse; without a JVM."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import SecretStr

from cdc_views.engine.service import engine as engine_module
from cdc_views.engine.service.engine import Engine
from cdc_views.replay import rebuild as rebuild_module
from cdc_views.replay.origin import Origin
from cdc_views.replay.rebuild import rebuild


def start(settings: Any) -> None:
    with Engine(settings, cast(Any, None)):
        pass


def begin_rebuild(settings: Any) -> None:
    rebuild(settings, [], None, Origin("earliest"), swap=False, on_progress=lambda _: None, note=lambda _: None)


@pytest.mark.parametrize(("module", "command"), [(engine_module, start), (rebuild_module, begin_rebuild)])
def test_error_of_a_view_file_names_no_warehouse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, command: Callable[[Any], None]
) -> None:
    def fail(*_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "views/a.sql")

    monkeypatch.setattr(module, "connect", nullcontext)
    monkeypatch.setattr(module, "declare", fail)
    settings = SimpleNamespace(
        warehouse=tmp_path,
        source=SimpleNamespace(dsn=SecretStr("host=nowhere")),
        engine=SimpleNamespace(lock_timeout_s=0),
    )
    with pytest.raises(FileNotFoundError):
        command(settings)
