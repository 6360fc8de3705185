"""Which epoch a read is of: an earlier one, one that holds a position, one that is not too old."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import cdc_views
from cdc_views.config import UpkeepSettings
from cdc_views.errors import BadLsn, BadMoment, CdcViewsError, EpochNotRetained, EpochTooOld, NotPublishedYet
from cdc_views.serve.epochs.moment import Moment, choose
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from tests.unit.published import BEGIN, ORDERS, Published

pytestmark = pytest.mark.usefixtures("without_fsync")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """Epochs 1 to 3; order n is of epoch n."""
    shop = Published(tmp_path_factory.mktemp("moments"))
    for number in (1, 2, 3):
        shop.write(ORDERS, [(number, None)])
        shop.publish()
    return shop


@pytest.mark.parametrize(
    ("at", "epoch"),
    [
        (1, 1),
        (3, 3),
        ("0/200", 2),
        ("0/2FF", 2),
        ("0/310", 3),  # complete up to there
        (BEGIN + timedelta(seconds=2), 2),
        (BEGIN + timedelta(seconds=2.9), 2),
        (BEGIN + timedelta(seconds=3), 3),
    ],
)
def test_read_of_the_past_is_of_the_last_epoch_up_to_there(shop: Published, at: Any, epoch: int) -> None:
    wh = cdc_views.open(shop.root)
    assert wh.query("SELECT max(id) AS last FROM orders", at=at).to_pylist() == [{"last": epoch}]
    assert wh.epoch(at=at).number == epoch


@pytest.mark.proves(
    wrong="A read wants an epoch, a time or a position that no epoch has reached, and it does not come in time.",
    seen="`NotPublishedYet`. It says how far behind the last epoch is, in bytes of the WAL and in seconds.",
    do="Wait longer, or see with `cdc-views status` whether the engine runs.",
)
@pytest.mark.parametrize(
    "moment",
    [{"at": 4}, {"at": "0/311"}, {"at": BEGIN + timedelta(seconds=3.1)}, {"at_least": "0/311", "timeout_s": 0}],
)
def test_read_of_the_future_is_an_error(shop: Published, moment: Mapping[str, Any]) -> None:
    with pytest.raises(NotPublishedYet, match="is not published"):
        cdc_views.open(shop.root).epoch(**moment)


def test_read_at_a_position_that_is_not_reached_in_time_says_how_far_it_is(shop: Published) -> None:
    with pytest.raises(NotPublishedYet) as raised:
        choose(shop.root, Moment(at_least="0/400", timeout_s=0.01))
    assert raised.value.behind_bytes == 0xF0
    assert raised.value.message.startswith(
        "position 0/400 is not published after 0.01 s: epoch 3 holds everything up to 0/310, which is 240 bytes "
    )


def test_read_at_least_at_a_position_waits_until_it_is_published(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(ORDERS, [(1, None)])
    shop.publish()
    found: list[int] = []
    reading = threading.Thread(target=lambda: found.append(choose(tmp_path, Moment(at_least="0/201")).number))
    reading.start()
    assert reading.is_alive()
    shop.publish()
    reading.join(10)
    assert found == [2]


@pytest.mark.proves(
    wrong="A read accepts an age up to `max_age`, and the last epoch is older.",
    seen="`EpochTooOld`",
    do="See with `cdc-views status` whether the engine runs; or read without the limit.",
)
def test_read_with_a_limit_of_age_answers_or_raises(shop: Published) -> None:
    wh = cdc_views.open(shop.root)
    age_s = (datetime.now(UTC) - BEGIN).total_seconds()
    assert wh.epoch(max_age=age_s + 60).number == 3
    with pytest.raises(EpochTooOld, match=r"epoch 3 is .* s old, wanted at most 5 s") as raised:
        wh.epoch(max_age=timedelta(seconds=5))
    assert raised.value.age_s == pytest.approx(age_s, abs=60)


def test_positions_of_another_history_do_not_count(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(ORDERS, [(1, None)])
    shop.publish()
    shop.generation = "after a reset"
    shop.publish()
    with pytest.raises(EpochNotRetained) as raised:
        choose(tmp_path, Moment(at="0/100"))
    assert raised.value.oldest == 2


@pytest.mark.proves(
    wrong="A read wants an epoch of the past whose files were removed by upkeep.",
    seen="`EpochNotRetained`. It names the oldest epoch that can be read.",
    do="Read that one or a later one. `upkeep.keep_hours` and `upkeep.keep_epochs` keep more ([upkeep.md](upkeep.md)).",
)
def test_epoch_that_is_no_longer_retained_names_the_oldest_that_is(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    upkeep = TableUpkeep(tmp_path, ORDERS, UpkeepSettings(keep_hours=0))
    for number in range(1, 6):
        shop.write(ORDERS, [(number, None)])
        shop.publish()
        assert upkeep.catch_up(number)
        if number == 4:
            upkeep.checkpoint()
    for wanted in (2, BEGIN + timedelta(seconds=2.5), "0/200"):
        assert choose(tmp_path, Moment(at=wanted)).number == 2
    upkeep.sweep(4)
    for wanted in (2, BEGIN + timedelta(seconds=2.5), "0/200"):
        with pytest.raises(EpochNotRetained, match="the oldest epoch that can be read is 4, at 0/400") as raised:
            choose(tmp_path, Moment(at=wanted))
        assert raised.value.oldest == 4
    assert choose(tmp_path, Moment(at=4)).number == 4
    with pytest.raises(EpochNotRetained):
        choose(tmp_path, Moment(at=BEGIN))


@pytest.mark.parametrize(
    ("moment", "error"),
    [
        ({"at": datetime(2026, 1, 2)}, BadMoment),  # noqa: DTZ001 (what is tested)
        ({"at": True}, BadMoment),
        ({"at": 1.5}, BadMoment),
        ({"at": 1, "at_least": "0/1"}, BadMoment),
        ({"at": 1, "max_age": 1}, BadMoment),
        ({"timeout_s": -1}, BadMoment),
        ({"max_age": float("nan")}, BadMoment),
        ({"at": "yesterday"}, BadLsn),
        ({"at_least": "5"}, BadLsn),
    ],
)
def test_moment_that_is_none_is_refused(moment: Mapping[str, Any], error: type[CdcViewsError]) -> None:
    with pytest.raises(error):
        Moment(**moment)


def test_hint_of_a_moment_has_the_forms_of_python() -> None:
    with pytest.raises(BadMoment) as caught:
        Moment(at=1.5)  # type: ignore[arg-type]
    assert "datetime" in str(caught.value.hint)


def test_moment_of_a_command_line_is_a_number_a_position_or_a_time() -> None:
    assert Moment.parse_at("17") == 17
    assert Moment.parse_at("16/B374D848") == "16/B374D848"
    assert Moment.parse_at("2026-11-26T08:00:00Z") == datetime(2026, 11, 26, 8, tzinfo=UTC)
    with pytest.raises(BadMoment):
        Moment.parse_at("yesterday")


def test_positions_of_the_client_are_moments(shop: Published) -> None:
    warehouse = cdc_views.open(shop.root)
    second = warehouse.epoch(at=2)
    assert warehouse.epoch(at=second.position).number == 2
    assert warehouse.epoch(at_least=second.position).number == 3
    with pytest.raises(BadMoment, match="at_least is of type int, wanted a position"):
        Moment(at_least=5)  # type: ignore[arg-type]
