"""Engines one after another: a run goes on with the views that it has started with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from cdc_views.config import Settings
from cdc_views.engine.capture import declared as declaring
from cdc_views.engine.capture.declared import declare
from cdc_views.engine.capture.mirrored import Mirrored
from cdc_views.engine.service import supervisor as supervising
from cdc_views.engine.service.supervisor import Supervisor
from cdc_views.errors import NotRunning, RequestFailed
from cdc_views.source.catalog import SourceIdentity
from cdc_views.source.connection import Connection
from cdc_views.testing.memory.ddl import read_tables
from tests.logged import logged
from tests.unit.test_engine_captures import settings

TABLES = [table.source for table in read_tables("CREATE TABLE orders (id bigint PRIMARY KEY, note text)")]
NOTES = "CREATE MATERIALIZED VIEW notes AS SELECT id FROM orders"


class Engines:
    """Each engine ends with the next of `errors`; the last one ends by itself. `views` are what each was to run."""

    def __init__(self, *errors: Exception) -> None:
        self.errors: Iterator[Exception] = iter(errors)
        self.views: list[dict[str, str]] = []
        self.between: Callable[[], object] = lambda: None

    def __call__(self, settings: Settings, spark: object, *, definitions: Any, **_: object) -> Self:
        found = declare(settings, cast(Connection, None), (), definitions)
        self.views.append({each.name: each.sql for each in found.definitions})
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, *, on_epoch: Callable[[object], None], **_: object) -> None:
        on_epoch(None)
        if (error := next(self.errors, None)) is not None:
            self.between()
            raise error

    def require_none_stopped(self) -> None:
        pass


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A project with one view, and no services."""
    project = settings(tmp_path / "warehouse").model_copy(update={"views": tmp_path / "views"})
    project.views.mkdir()
    (project.views / "notes.sql").write_text(NOTES)
    driver = SimpleNamespace(session=lambda: None, naming_lost=nullcontext)
    for name in ("require_ready", "connect", "only_run", "capture_or_resume", "resume_capture", "estimated_rows"):
        monkeypatch.setattr(supervising, name, lambda *_, **__: nullcontext())
    monkeypatch.setattr(supervising, "ReadAhead", lambda *_: SimpleNamespace(take=None))
    monkeypatch.setattr(supervising, "background_driver", lambda *_: nullcontext(driver))
    monkeypatch.setattr(declaring, "read_mirrored", lambda *_: Mirrored(TABLES))
    monkeypatch.setattr(declaring, "read_identity", lambda _: SourceIdentity("1", 1, 17))
    monkeypatch.setattr("cdc_views.engine.service.patience._PAUSE_S", 0)
    return project


def run(project: Settings, engines: Engines, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run the project with these engines; returns what is logged."""
    monkeypatch.setattr(supervising, "Engine", engines)
    shown = SimpleNamespace(reading=lambda _: None)
    with logged() as messages:
        Supervisor(project, tuple, cast(Any, shown), lambda *_: None).run(
            once=False, until_caught_up=False, on_epoch=lambda _: None
        )
    return messages


AS_STARTED = "the views of this run go on as they were at its start"


@pytest.mark.proves(
    wrong="A view file is edited, broken or removed while a run waits for a service that does not answer",
    seen="a warning with the file, or what is wrong with it; the run continues with the views of its start",
    do="correct the file, then start `cdc-views run` again if the edit is to take effect",
)
@pytest.mark.parametrize("error", [NotRunning("Kafka Connect does not answer"), RequestFailed("unexpected")])
@pytest.mark.parametrize(
    ("edit", "warning"),
    [
        (lambda file: file.write_text(NOTES[:20]), "notes.sql:1:20: found the end of the file, wanted VIEW"),
        (lambda file: file.write_text(NOTES.replace("id", "note")), 'views": notes.sql; '),
        (lambda file: file.unlink(), 'views": notes.sql; '),
        (lambda file: file.with_name("more.sql").write_text(NOTES.replace("notes", "more")), "more.sql"),
        (lambda file: file.rename(file.with_suffix(".old")), 'views": notes.sql; '),
    ],
)
def test_restart_after_an_outage_keeps_the_views_of_the_run(
    project: Settings,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    edit: Callable[[Path], object],
    warning: str,
) -> None:
    engines = Engines(error)
    engines.between = lambda: edit(project.views / "notes.sql")
    said = run(project, engines, monkeypatch)
    assert engines.views == [{"notes": "SELECT id FROM orders"}] * 2
    [line] = [each for each in said if AS_STARTED in each]
    assert warning in line


def test_restart_after_an_outage_says_nothing_of_files_that_are_the_same(
    project: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = Engines(NotRunning("Kafka does not answer"))
    engines.between = lambda: (project.views / "notes.sql").write_text(f"-- a comment\n{NOTES};\n")
    assert not [each for each in run(project, engines, monkeypatch) if AS_STARTED in each]
    assert len(engines.views) == 2
