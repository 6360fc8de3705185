"""How often the position of an idle source is published, whatever happens to the clock."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.test_engine_maintenance import Engine

pytestmark = pytest.mark.usefixtures("without_fsync")

INTERVAL_S = 5


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def test_position_of_an_idle_source_is_published_once_an_interval(engine: Engine) -> None:
    assert engine.writer.run(INTERVAL_S) is None
    engine.clock.advance(INTERVAL_S)
    assert engine.writer.run(INTERVAL_S) is not None
    assert engine.writer.run(INTERVAL_S) is None


@pytest.mark.parametrize("interval_s", [0, INTERVAL_S])
def test_position_of_an_idle_source_is_published_after_the_clock_was_set_back(engine: Engine, interval_s: int) -> None:
    engine.clock._now -= timedelta(hours=1)
    record = engine.writer.run(interval_s)
    assert record is not None
    assert record.published_at == engine.clock.now()
    assert engine.writer.run(INTERVAL_S) is None
