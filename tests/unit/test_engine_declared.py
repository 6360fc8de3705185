"""The folder of views that is not there, and views that are published but no longer declared."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import pytest

from cdc_views.config import Settings
from cdc_views.engine.capture import declared as declaring
from cdc_views.engine.capture import readiness
from cdc_views.engine.capture.declared import Declared, declare, require_views_folder
from cdc_views.engine.capture.mirrored import Mirrored
from cdc_views.errors import BadView
from cdc_views.source.catalog import SourceIdentity
from cdc_views.source.connection import Connection
from cdc_views.store.control import ControlRecord, read_control
from cdc_views.testing.memory.ddl import read_tables
from tests.unit.published import ORDERS, TOTALS, Published
from tests.unit.test_engine_captures import settings

pytestmark = pytest.mark.usefixtures("without_fsync")

Checked = Callable[[], list[tuple[str, str, str]]]

TABLES = [table.source for table in read_tables("CREATE TABLE orders (id bigint PRIMARY KEY, note text)")]
NOTES = "CREATE MATERIALIZED VIEW notes AS SELECT id FROM orders"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A project whose source has one table, and whose folder of views does not exist yet."""
    monkeypatch.setattr(declaring, "read_mirrored", lambda *_: Mirrored(TABLES))
    monkeypatch.setattr(declaring, "read_identity", lambda _: SourceIdentity("1", 1, 17))
    return settings(tmp_path / "warehouse").model_copy(update={"views": tmp_path / "views"})


@pytest.fixture
def checked(project: Settings, monkeypatch: pytest.MonkeyPatch) -> Checked:
    """Of each finding about what is declared: severity, subject and problem."""
    monkeypatch.setattr(readiness, "connect", lambda _: nullcontext())
    return lambda: [(each.severity, each.subject, each.problem) for each in readiness._check_declared(project)]


def publish(project: Settings, *, with_view: bool = True) -> list[ControlRecord]:
    """Publish an epoch of a mirror and a view; returns the records of the control log."""
    published = Published(project.warehouse)
    published.write(ORDERS)
    if with_view:
        published.write(TOTALS)
    published.publish()
    return read_control(project.warehouse)


def declared(project: Settings, records: list[ControlRecord]) -> Declared:
    return declare(project, cast(Connection, None), records)


@pytest.mark.proves(
    wrong="The folder of views is missing at a start: its path has a typo, or its volume is not mounted",
    seen="`BadView` with the folder and the published views; the last epoch stays readable",
    do="correct the setting `views`, or mount the folder; to remove all views, leave the folder empty",
)
def test_missing_folder_of_published_views_is_refused(project: Settings) -> None:
    records = publish(project)
    with pytest.raises(BadView, match=r'no folder ".*/views" of views, and the last epoch has "totals"'):
        declared(project, records)


def test_missing_folder_of_views_is_refused_by_a_reset(project: Settings) -> None:
    records = publish(project)
    with pytest.raises(BadView, match="no folder"):
        require_views_folder(project.views, records)


@pytest.mark.parametrize("is_published", [True, False])
def test_project_with_mirrors_alone_needs_no_folder_of_views(project: Settings, *, is_published: bool) -> None:
    found = declared(project, publish(project, with_view=False) if is_published else [])
    assert (found.levels, found.removed) == ([], ())


def test_empty_folder_removes_all_views(project: Settings) -> None:
    project.views.mkdir()
    found = declared(project, publish(project))
    assert (found.levels, found.removed) == ([], ("totals",))


def test_view_whose_file_is_gone_is_removed(project: Settings) -> None:
    project.views.mkdir()
    (project.views / "notes.sql").write_text(NOTES)
    assert declared(project, publish(project)).removed == ("totals",)


def test_check_warns_of_a_view_that_a_run_removes(project: Settings, checked: Checked) -> None:
    project.views.mkdir()
    publish(project)
    problem = f'is in the last epoch, but "{project.views}" has no file for it; a run removes it'
    assert checked() == [("warning", 'view "totals"', problem)]


def test_check_says_that_the_folder_of_views_is_missing(project: Settings, checked: Checked) -> None:
    subject = f'views in "{project.views}"'
    assert checked() == [("info", subject, "there is no such folder: only mirrors are kept")]
    publish(project)
    problem = f'no folder "{project.views}" of views, and the last epoch has "totals"'
    assert checked() == [("error", subject, problem)]
