"""`python -m bench.views`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click
from pyspark.sql import SparkSession

from bench import command
from bench.views import baselines
from bench.views.baselines import Recomputed
from bench.views.figures import Measured, draw, figures
from bench.views.stage import OWN_VIEWS, Stage
from cdc_views.config import EngineSettings
from cdc_views.demo.project import VIEWS
from cdc_views.engine.spark.session import session_for
from cdc_views.stack.fetch import delta_jars

NAMES: Final = ("spark", "duckdb", "postgres")
FOLDERS: Final = {"all": (VIEWS, OWN_VIEWS), "demo": (VIEWS,)}
LEAST_WARM_UP_CHANGES: Final = 100
"""Enough to reach every view: a view that runs for the first time compiles code and builds indexes."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--sizes", default="100000,1000000,10000000", show_default=True, help="Rows of all base tables together.")
@click.option("--changes", default="1,100,10000", show_default=True, help="Changes in an epoch.")
@click.option("--samples", default=8, show_default=True, help="Epochs for each median. Single changes need 8: a table "
              "each.")  # fmt: skip
@click.option("--warm-up", default=10, show_default=True, help="Epochs before these that do not count.")
@click.option(
    "--views",
    "which",
    default="all",
    show_default=True,
    type=click.Choice([*FOLDERS]),
    help="Five views of the demo, or all ten.",
)
@click.option("--pictures", type=click.Path(path_type=Path), help="Folder for the SVG file.")
@command.baseline_option(",".join(NAMES), NAMES)
@command.stack_options
def main(sizes: str, changes: str, samples: int, warm_up: int, which: str, pictures: Path | None,
         baselines: list[str], state: Path | None, memory: str) -> None:  # fmt: skip
    """Measure the views stage of an epoch: ten views over eight tables, by rows and by changes.

    The tables are those of the demo, with generated rows; groups do not grow with the tables: a user has the same
    number of orders, posts and follows at every size. The views are five of the demo and five of bench/views/sql.
    The changes (70 % updates, 20 % inserts, 10 % deletes) are spread evenly over the tables, and reach the engine
    through a log in memory. Single changes go to one table after the other.

    The baselines recompute the views in full on the same data, one view after the other: `spark` is the engine's FULL
    strategy, `duckdb` creates tables from a copy of the base tables in its own file, `postgres` refreshes materialized
    views. From 10 million rows on they are measured once, else three times after one that does not count.

    \b
    views_<rows>_changes_<changes>_ms    median time of the views stage
    <baseline>_<rows>_changes_<changes>_ms
                              median time for the views above the tables that these epochs have changed
    <baseline>_<rows>_changes_<changes>_ratio
                              this time divided by that of the views stage; above 1, incremental is faster
    <baseline>_<rows>_all_ms  time for all views
    build_<rows>_ms           views stage of the first epoch, which builds all views
    flat_changes_<changes>_ratio    the views stage at the most rows divided by that at the fewest
    views                     by rows and view: rows, time of each baseline, and what the engine recorded of an epoch
    equal                     after the epochs every view had the rows that Spark computes for its SQL, and every
                              baseline got as many rows

    Example: python -m bench.views --sizes 20000 --changes 1,100 --samples 2 --pictures bench/pictures
    """
    options = {"sizes": sizes, "changes": changes, "samples": samples, "warm_up": warm_up, "views": which}

    def measure() -> dict[str, Any]:
        is_equal, found = True, []
        with session_for(EngineSettings(driver_memory=memory), delta_jars()) as spark:
            for rows in _numbers(sizes):
                with tempfile.TemporaryDirectory(prefix="cdc-views-bench-") as folder:
                    run = _Run(spark, Path(folder), rows, FOLDERS[which], state, memory)
                    found.append(run.measure(_numbers(changes), samples, warm_up, baselines))
                    is_equal &= run.is_equal
        if pictures is not None:
            draw(found, pictures)
        return {**figures(found), "equal": is_equal}

    command.run("views", options, measure)


class _Run:
    """The measurements over one number of base rows."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int, views: Sequence[Path], state: Path | None,
                 memory: str) -> None:  # fmt: skip
        self.is_equal = True
        self._views = views
        self._spark = spark
        self._folder = folder
        self._rows = rows
        self._state = state
        self._memory = memory

    def measure(self, changes: Sequence[int], samples: int, warm_up: int, names: Sequence[str]) -> Measured:
        """Build the views, run the epochs, compare every view with its SQL, and then measure the baselines."""
        self._tell("creating the tables")
        warehouse = self._folder / "warehouse"
        warehouse.mkdir()
        with closing(Stage(warehouse, self._spark, self._rows, self._views)) as stage:
            build_ms = stage.epoch(0).views_ms
            self._tell(f"built in {build_ms:.0f} ms")
            epochs = {}
            for count in changes:
                for _ in range(warm_up):
                    stage.epoch(max(count, LEAST_WARM_UP_CHANGES))
                epochs[count] = [stage.epoch(count) for _ in range(samples)]
                self._tell(f"changes {count:,}: {', '.join(f'{epoch.views_ms:.0f}' for epoch in epochs[count])} ms")
            self._require_none("not equal to its SQL", stage.differing())
            view_rows = {name: stage.rows(name) for name in stage.views}
            return Measured(self._rows, build_ms, epochs, view_rows, self._baselines(stage, view_rows, names))

    def _baselines(self, stage: Stage, view_rows: dict[str, int], names: Sequence[str]) -> dict[str, Recomputed]:
        found: dict[str, Recomputed] = {}
        if {"duckdb", "postgres"} & set(names):
            with baselines.copied(stage, self._folder, self._memory) as copy:
                if "duckdb" in names:
                    found["duckdb"] = baselines.by_duckdb(copy, stage.views, self._rows)
                if "postgres" in names:
                    with baselines.loaded(copy, self._folder, self._state) as dsn:
                        found["postgres"] = baselines.by_postgres(dsn, stage.views, self._rows)
        if "spark" in names:  # the last one, since it changes the tables
            found["spark"] = baselines.by_spark(stage, self._rows)
        for name, recomputed in found.items():
            self._tell(f"{name}: {sum(recomputed.took_ms.values()):.0f} ms")
            odd = [view for view, rows in recomputed.rows.items() if rows != view_rows[view]]
            self._require_none(f"has another number of rows by {name}", odd)
        return {name: found[name] for name in names}

    def _require_none(self, problem: str, views: Sequence[str]) -> None:
        for view in views:
            self.is_equal = False
            self._tell(f'view "{view}" {problem}')

    def _tell(self, text: str) -> None:
        command.tell(f"{self._rows:,} rows: {text}")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


if __name__ == "__main__":
    main()
