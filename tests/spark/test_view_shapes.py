"""Every named shape of views: its strategy as `explain` shows it, and random histories of its tables.

What `explain` shows of them is in tests/golden/shapes; `CDC_VIEWS_GOLDEN=write` writes it.

After every epoch, each view equals its SQL, run from scratch by Spark. Each run takes other histories; a failure names
the seed that gives the same ones again, the views that differ, and the changes that they saw. More: `just nightly`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Final

import pytest
from pyspark.sql import SparkSession

from cdc_views.errors import BadView
from cdc_views.testing import Explanation, ViewHarness
from tests.seed import SEED, naming_the_seed
from tests.view_shapes import DDL, SHAPES, VIEWS, Shape
from tests.view_shapes.changes import history
from tests.view_shapes.check import check_history, declare, without_readers

HISTORIES: Final = int(os.environ.get("CDC_VIEWS_SHAPE_HISTORIES", "1"))
EPOCHS: Final = 3 if HISTORIES == 1 else 5  # with the first, which fills the tables, and the last, which empties them
GOLDEN: Final = Path(__file__).parents[1] / "golden" / "shapes"
LATE: Final = 6  # views that are declared over tables with rows

# SQL of the list of shapes that is refused, and the message. The shapes are written in another way.
REFUSED: Final = {
    "stddev": (
        "SELECT user_id, stddev(id) AS s FROM orders GROUP BY user_id",
        "stddev.sql:1:52: stddev() adds floating-point numbers, so its last digits depend on the order of rows",
    ),
    "bare_window": (
        "SELECT window.start AS begin, count(*) AS n FROM events GROUP BY window(at, '5 minutes')",
        'bare_window.sql:1:115: syntax error at or near ",", wanted )',
    ),
}


class Declared:
    """A harness with every view, declared once for all tests, as that takes 0.3 s a view."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._resources = ExitStack()
        self._begin()

    def _begin(self) -> None:
        self.harness = self._resources.enter_context(ViewHarness(DDL, self._spark, partitions=1))
        self.explained: dict[str, Explanation] = declare(self.harness, VIEWS.values())

    def close(self) -> None:
        self._resources.close()

    @contextmanager
    def renewed_after_failure(self) -> Iterator[ViewHarness]:
        """The harness, which is replaced if the block fails: its tables may have rows then."""
        try:
            yield self.harness
        except BaseException:
            self.close()
            self._begin()
            raise


@pytest.fixture(scope="module")
def declared(spark: SparkSession) -> Iterator[Declared]:
    declared = Declared(spark)
    yield declared
    declared.close()


@pytest.mark.parametrize("name", VIEWS)
def test_strategy_is_what_the_list_wants(declared: Declared, name: str) -> None:
    found = declared.explained[name]
    assert VIEWS[name].is_satisfied_by(found), "\n".join(found.lines())


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.views], ids=lambda shape: shape.name)
def test_explanation_is_the_golden_one(declared: Declared, shape: Shape) -> None:
    found = "\n\n".join("\n".join(declared.explained[view.name].lines()) for view in shape.views) + "\n"
    file = GOLDEN / f"{shape.name}.txt"
    if os.environ.get("CDC_VIEWS_GOLDEN") == "write":
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8")


def test_every_golden_explanation_is_that_of_a_shape() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == {shape.name for shape in SHAPES if shape.views}


@pytest.mark.parametrize("name", VIEWS)
def test_inputs_are_the_names_in_the_sql(declared: Declared, name: str) -> None:
    inputs = {source.removeprefix("public.") for source in declared.explained[name].inputs}
    assert inputs == VIEWS[name].reads - {"paid", "tree"}  # which are CTEs


@pytest.mark.parametrize("name", REFUSED)
def test_sql_that_no_shape_may_use_is_refused(declared: Declared, name: str) -> None:
    sql, message = REFUSED[name]
    with pytest.raises(BadView) as refused:
        declared.harness.create_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
    assert refused.value.message == message


@pytest.mark.parametrize("number", range(HISTORIES))
def test_every_shape_equals_its_sql_after_every_epoch(declared: Declared, number: int) -> None:
    chance = Random(f"{SEED} {number}")
    late = chance.sample(without_readers(VIEWS), LATE)
    with naming_the_seed(f"CDC_VIEWS_SHAPE_HISTORIES={HISTORIES}"), declared.renewed_after_failure() as harness:
        check_history(harness, VIEWS, history(chance, EPOCHS), late)
