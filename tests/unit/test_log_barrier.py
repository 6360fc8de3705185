"""When a marker says that everything before it can be read."""

from __future__ import annotations

from base64 import b64encode

import pytest

from cdc_views.base.captured import CapturedSet
from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.base.rendering import FRACTION, TIMES
from cdc_views.errors import BadEvent, PrintedOtherwise
from cdc_views.host.clock import SYSTEM_CLOCK
from cdc_views.log.cuts.barrier import Barrier
from cdc_views.log.kafka.record import Record
from tests.unit.log_records import PARTITION, change, log_settings


class Writer:
    """Counts the markers that it would write."""

    writer = "us"

    def __init__(self) -> None:
        self.written = 0

    def touch(self) -> int:
        """The next number."""
        self.written += 1
        return self.written

    def captured(self) -> CapturedSet:
        """Nothing is captured."""
        return CapturedSet(tables={})


def printed(times: str) -> str:
    """A multirange as Debezium writes it."""
    return b64encode(times.encode()).decode()


PROBES = {"times": printed(TIMES), "fraction": FRACTION}


def marker(number: int, commit: int | None = 500, writer: str = "us", **probes: object) -> Record:
    """A marker as it comes out of the log."""
    return change(number, commit, 501, **{"writer": writer, "number": number, **PROBES, **probes})


def touched() -> tuple[Barrier, Writer]:
    """A barrier that waits for its first marker."""
    writer = Writer()
    barrier = Barrier(log_settings(), writer, SYSTEM_CLOCK)
    barrier.touch()
    return barrier, writer


def test_marker_that_came_is_passed_with_its_position() -> None:
    barrier, _ = touched()
    assert barrier.passed() is None
    barrier.take(marker(1))
    passed = barrier.passed()
    assert passed is not None
    assert (passed.number, passed.position) == (1, Lsn(500))


def test_marker_of_another_writer_says_nothing() -> None:
    barrier, _ = touched()
    barrier.take(marker(1, writer="them"))
    assert barrier.passed() is None


def test_earlier_marker_says_nothing() -> None:
    barrier, _ = touched()
    barrier.touch()
    barrier.take(marker(1))
    assert barrier.passed() is None
    barrier.take(marker(2))
    assert barrier.passed() is not None


def test_marker_that_came_before_other_offsets_were_chosen_says_nothing() -> None:
    barrier, _ = touched()
    barrier.take(marker(1))
    barrier.forget()
    assert barrier.passed() is None


def test_marker_without_a_position_has_another_one_written() -> None:
    barrier, writer = touched()
    barrier.take(marker(1, commit=None))
    assert barrier.passed() is None
    assert writer.written == 2
    barrier.take(marker(2))
    assert barrier.passed() is not None


def test_probes_that_are_printed_in_another_form_are_told_of_every_writer() -> None:
    zoned = Barrier(log_settings(), Writer(), SYSTEM_CLOCK, [TableName("public", "trips")])
    berlin = printed(TIMES.replace("12:00:00+00", "13:00:00+01"))
    with pytest.raises(PrintedOtherwise, match=r'times as .*13:00:00\+01.*table "public\.trips"'):
        zoned.take(marker(1, writer="them", times=berlin))
    with pytest.raises(PrintedOtherwise, match=r"0\.30000000000000004 as 0\.3\n"):
        touched()[0].take(marker(1, fraction=0.3))
    with pytest.raises(BadEvent, match="is not a row of the heartbeat table"):
        touched()[0].take(marker(1, times=5))


def test_zone_matters_only_to_tables_that_print_times() -> None:
    barrier, _ = touched()
    barrier.take(marker(1, times=printed("{}")))
    assert barrier.passed() is not None


def test_wait_in_vain_names_the_marker_and_a_transaction_that_nobody_ends() -> None:
    barrier, _ = touched()
    assert str(barrier.timeout({})).startswith("marker 1 did not come through the log in ")
    error = barrier.timeout({PARTITION: 17})
    assert "has a transaction from offset 17 on that is still open" in error.message
    assert error.hint is not None
    assert f"abort --topic {PARTITION.topic} --partition 0 --start-offset 17" in error.hint
