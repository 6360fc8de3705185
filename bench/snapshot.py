"""How fast the initial snapshot becomes mirrors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench import command
from bench.filling import fill, fill_with_capture
from bench.rig import rig
from bench.systems import BASELINES


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default=200_000, show_default=True, help="Rows of each of the three large tables.")
@command.baseline_option("textbook,deltars")
@command.stack_options
def main(rows: int, baselines: list[str], state: Path | None, memory: str) -> None:
    """Measure the initial snapshot: rows of Postgres to rows of mirrors.

    cdc_views starts with `run --until-caught-up`, which registers the connector. Debezium fills the topics; much of
    them is read meanwhile; then the mirrors are completed. Afterwards the baselines fill their own tables from the full
    topics, alone on the machine except for the idle services: the textbook job (trigger availableNow) and the delta-rs
    loop.

    \b
    debezium_rows_per_s         rows per second, from the connector's registration to its notification of the end
    mirror_rows_per_s           rows per second of the epochs, without the engine's start and without what was read
                                before them
    mirror_rows_with_start_per_s   rows per second, from full topics to complete mirrors; for a baseline, from the
                                   start of its process to its end
    mirrors_after_topics_share  seconds from full topics to complete mirrors, divided by Debezium's seconds
    equal                       every row of every mirror equals Postgres

    baseline_* is the textbook job, deltars_* the delta-rs loop.

    Example: python -m bench.snapshot --rows 1000000
    """

    def measure() -> dict[str, Any]:
        with rig(state, rows, memory) as ready:
            command.tell(f"snapshot of {ready.contents.rows} rows")
            debezium_s, ours = fill_with_capture(ready)
            fillings = [ours, *(fill(BASELINES[name](ready)) for name in baselines)]
            figures: dict[str, Any] = {
                "rows": ready.contents.rows,
                "debezium_s": round(debezium_s, 2),
                "debezium_rows_per_s": round(ready.contents.rows / debezium_s),
                "mirrors_after_topics_share": round(ours.total_s / debezium_s, 3),
            }
            for filling in fillings:
                figures |= filling.figures("mirror_rows", ready.contents.rows)
            return figures

    command.run("snapshot", {"rows": rows}, measure)


if __name__ == "__main__":
    main()
