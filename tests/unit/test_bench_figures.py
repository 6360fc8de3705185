"""What the benchmarks compute of what they measured, from figures written by hand."""

from __future__ import annotations

import importlib
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from click.testing import CliRunner

from bench.figures import Sample, backlog_slope, latency_figures, quantile
from bench.flatness import Growing
from bench.load import Due, poisson
from bench.machine import spent_s
from bench.picture import line_chart
from bench.reader import PLACES, Sighting, first_with
from bench.throughput import Trial, search


def test_quantile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [quantile(values, part) for part in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert quantile([7.0], 0.99) == 7
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)


def test_latency_figures_have_their_unit_in_the_name() -> None:
    samples = [Sample(due_s, 0.1) for due_s in range(99)] + [Sample(99, 9)]
    assert latency_figures("mirror_", samples) == {
        "mirror_p50_s": 0.1, "mirror_p95_s": 0.1, "mirror_p99_s": 0.1, "mirror_max_s": 9,
    }  # fmt: skip


def test_backlog_slope_is_latency_gained_per_second() -> None:
    assert backlog_slope([Sample(1000 + second, 0.5) for second in range(10)]) == 0
    assert backlog_slope([Sample(1000 + second, 0.5 + 0.25 * second) for second in range(10)]) == 0.25
    assert backlog_slope([Sample(3, 0.5)]) == 0


def test_poisson_times_are_the_seeds_and_do_not_wait_for_anybody() -> None:
    times = list(poisson(50, 100, seed=3, first=7))
    assert times == list(poisson(50, 100, seed=3, first=7))
    assert [due.number for due in times[:3]] == [7, 8, 9]
    assert 4_700 < len(times) < 5_300
    gaps = [after.due_s - before.due_s for before, after in pairwise(times)]
    # Of a Poisson process: as many gaps below the mean as 1 - 1/e.
    assert 0.60 < sum(gap < 1 / 50 for gap in gaps) / len(gaps) < 0.66
    assert list(poisson(0, 100, seed=3)) == []
    assert isinstance(times[0], Due)


def test_probe_is_seen_when_every_table_has_it() -> None:
    tables = list(PLACES)
    whole = [Sighting(at, dict.fromkeys(tables, number), None) for at, number in ((1.0, 3), (3.0, 5))]
    torn = Sighting(2.0, dict.fromkeys(tables, 4) | {tables[0]: 5}, None)
    sightings = [whole[0], torn, whole[1]]
    assert [sighting.is_torn for sighting in sightings] == [False, True, False]
    assert [found and found.at for found in (first_with(sightings, number) for number in (2, 4, 5, 6))] == [
        1,
        2,
        3,
        None,
    ]


@pytest.mark.parametrize(("limit", "tried"), [(3_500, [1000, 2000, 4000, 3000, 3500]), (100, [1000]),
                                              (99_000, [1000, 2000, 4000, 8000])])  # fmt: skip
def test_throughput_is_looked_for_between_the_last_good_and_the_first_bad_rate(
    limit: float, tried: list[float]
) -> None:
    class Known(Trial):
        @property
        def is_sustained(self) -> bool:
            return self.rate <= limit

    trials = search(lambda rate: Known(rate, None), 1000, 8000)  # type: ignore[arg-type]
    assert [trial.rate for trial in trials] == tried


def test_changes_of_flatness_touch_a_key_once_an_epoch_and_know_what_it_was() -> None:
    growing = Growing(1_000, Random(1))
    for _ in range(5):
        before = dict(growing.touched)
        made = list(growing.changes(100))
        assert len({key for key, _, _ in made}) == 100
        for key, old, _ in made:
            assert old == before.get(key, key % 10_000 if key < 1_000 else None)
        kinds = Counter((old is None, new is None) for _, old, new in made)
        assert kinds[True, False] >= 20
        assert kinds[False, True] > 0
        assert kinds[True, True] == 0


def test_chart_is_a_picture_with_a_point_for_each_figure() -> None:
    text = line_chart(
        "cost & size", "rows", "ms", {"ours": [(0, 3), (1e5, 4), (1e7, 5)], "theirs": [(1e5, 30)]}, log_x=True
    )
    picture = ET.fromstring(text)
    circles = picture.findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 4
    across = [float(circle.attrib["cx"]) for circle in circles[:3]]
    assert across == sorted(across)
    heights = [float(circle.attrib["cy"]) for circle in circles]
    assert heights[3] < heights[2] < heights[0]  # larger values are higher up
    assert "cost &amp; size" in text
    assert "100,000" in {element.text for element in picture}


def test_logarithmic_chart_has_a_decade_per_tick_up_and_across() -> None:
    text = line_chart("cost", "rows", "ms", {"ours": [(1e5, 30), (1e7, 3000)]}, log_x=True, log_y=True)
    picture = ET.fromstring(text)
    assert {"10", "1,000", "10,000", "10,000,000"} <= {element.text for element in picture}
    low, high = (float(circle.attrib["cy"]) for circle in picture.findall("{http://www.w3.org/2000/svg}circle"))
    floor, *_, ceiling = (
        float(path.attrib["d"].split("H")[0].split()[1])
        for path in picture.findall("{http://www.w3.org/2000/svg}path")
        if path.attrib.get("stroke") == "#ddd"
    )
    assert ceiling < high < low < floor


@pytest.mark.parametrize(
    "module", ["freshness", "throughput", "snapshot", "replay", "flatness", "views.__main__", "serve.__main__"]
)
def test_help_says_what_is_measured_and_gives_an_example(module: str) -> None:
    shown = CliRunner().invoke(importlib.import_module(f"bench.{module}").main, ["--help"]).output
    assert "Measure" in shown
    assert f"python -m bench.{module.removesuffix('.__main__')}" in shown
    assert "equal" in shown


def test_cores_of_a_process_that_has_ended_are_not_taken_off() -> None:
    assert spent_s({1: 5.0, 2: 3.0}, {1: 7.0, 3: 0.5}) == 2.5
