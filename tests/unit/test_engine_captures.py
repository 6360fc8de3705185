"""The captures of a project: their names, and which one the control log says is current."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from cdc_views.config import LogSettings, Settings, SourceSettings
from cdc_views.engine.capture.captures import Capture, Reset, capture_of, require_no_reset, reset_of
from cdc_views.engine.tables import as_published
from cdc_views.errors import BadConfig, ResetUnfinished
from cdc_views.store.control.control_log import ControlLog, read_control


def settings(warehouse: Path = Path("warehouse"), **names: str) -> Settings:
    """Settings of one table."""
    source = {"dsn": SecretStr("host=nowhere"), "tables": ["public.orders"], "slot": names.get("slot", "shop")}
    log = {"bootstrap_servers": "nowhere:1", "connect_url": "http://nowhere:1", "topic_prefix": "app",
           "connector": names.get("connector", "shop")}  # fmt: skip
    return Settings(
        warehouse=warehouse, source=SourceSettings.model_validate(source), log=LogSettings.model_validate(log)
    )


def test_first_capture_has_the_names_of_the_settings_and_others_their_number() -> None:
    first, second = (Capture.numbered(settings(), number) for number in (1, 2))
    assert (first.slot, first.topic_prefix, first.connector) == ("shop", "app", "shop")
    assert (second.slot, second.topic_prefix, second.connector) == ("shop_2", "app.2", "shop-2")
    changed = second.settings(settings())
    assert (changed.source.slot, changed.log.topic_prefix, changed.log.connector) == ("shop_2", "app.2", "shop-2")


@pytest.mark.parametrize("names", [{"slot": "s" * 62}, {"connector": "c" * 199}])
def test_names_that_would_become_too_long_are_refused(names: dict[str, str]) -> None:
    with pytest.raises(BadConfig, match="characters, wanted at most"):
        Capture.numbered(settings(**names), 2)


@pytest.fixture
def log(tmp_path: Path) -> ControlLog:
    """A control log with one published epoch of the first capture."""
    log = ControlLog.open(tmp_path, "engine")
    log.take_over(generation="g1", detail={"source": {"tables": {"public.orders": "f"}}})
    log.append(kind="publish", epoch=1, attempt=2, generation="g1")
    return log


def test_reset_is_recorded_in_the_form_of_earlier_versions() -> None:
    reset = Reset(Capture.numbered(settings(), 2), (Capture.numbered(settings(), 1),), {"tables": {"public.orders": 1}})
    names = {"number": 2, "slot": "shop_2", "topic_prefix": "app.2", "connector": "shop-2", "tables": ["public.orders"]}
    first = {"number": 1, "slot": "shop", "topic_prefix": "app", "connector": "shop", "tables": ["public.orders"]}
    facts = {"tables": {"public.orders": 1}}
    assert reset.detail() == {"capture": names, "left": [first], "facts": facts, "is_done": False}


def test_reset_of_a_record_is_the_one_that_was_written(log: ControlLog, tmp_path: Path) -> None:
    begin(log, tmp_path)
    base = settings(tmp_path)
    assert reset_of(read_control(tmp_path)) == Reset(
        Capture.numbered(base, 2), (Capture.numbered(base, 1),), {"tables": {}}
    )


def begin(log: ControlLog, root: Path) -> None:
    """Begin a reset to the second capture."""
    base = settings(root)
    reset = Reset(Capture.numbered(base, 2), (Capture.numbered(base, 1),), {"tables": {}})
    log.append(kind="reset", epoch=1, attempt=log.new_attempt(), generation="g1", detail=reset.detail())


def test_reset_that_has_begun_is_current_and_not_published(log: ControlLog, tmp_path: Path) -> None:
    begin(log, tmp_path)
    current = capture_of(settings(tmp_path), read_control(tmp_path))
    assert (current.capture.number, current.known, current.is_published, current.is_unfinished) == (
        2,
        None,
        False,
        True,
    )
    assert [each.slot for each in current.left] == ["shop"]
    with pytest.raises(ResetUnfinished):
        require_no_reset(tmp_path)


def test_takeover_of_the_old_capture_is_not_known_to_the_new_one(log: ControlLog, tmp_path: Path) -> None:
    begin(log, tmp_path)
    log.take_over(generation="g1", detail={"source": {"tables": {}}})
    assert capture_of(settings(tmp_path), log.records).known is None
    log.take_over(generation="g2", detail={"source": {"tables": {}}, "capture": 2})
    current = capture_of(settings(tmp_path), log.records)
    assert (current.known is not None, current.is_published) == (True, False)
    log.append(kind="publish", epoch=2, attempt=log.new_attempt(), generation="g2")
    assert capture_of(settings(tmp_path), log.records).is_published
    require_no_reset(tmp_path)
    assert (log.published_in("g1"), log.published_in("g2")) == (None, log.last_published)


def test_reset_stays_in_the_log_when_older_records_go(log: ControlLog, tmp_path: Path) -> None:
    begin(log, tmp_path)
    log.forget_before(log.version + 1)
    found = reset_of(log.records)
    assert found is not None
    assert found.capture.number == 2


def test_view_that_is_not_published_yet_is_placed_apart_after_a_reset() -> None:
    place = as_published(None, "-g2")
    assert place("totals", "views/totals/f") == "views/totals/f-g2"
    assert place("public.orders", "mirrors/public/orders/g2") == "mirrors/public/orders/g2"
    assert place("_quarantine", "_quarantine") == "_quarantine"
