"""How fast mirrors come out of the initial snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench import command
from bench.filling import fill
from bench.rig import rig


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default=200_000, show_default=True, help="Of each of the three large tables.")
@command.baseline_option("textbook,deltars")
@command.stack_options
def main(rows: int, baselines: list[str], state: Path | None, memory: str) -> None:
    """Measure the initial snapshot: rows of Postgres to rows of mirrors.

    Debezium fills the topics; then each system starts from nothing and mirrors what is in them, alone on the machine
    but for the idle services: cdc_views by `run --until-caught-up`, the baselines by the text-book job (available
    now) and the delta-rs loop. All read the same topics.

    \b
    debezium_rows_per_s         rows by the seconds from registering the connector to its notification of the end
    mirror_rows_per_s           rows by the seconds of the epochs, the engine's start not counted
    mirror_rows_with_start_per_s   the same with the start of process and JVM
    mirrors_after_topics_share  seconds from full topics to complete mirrors, start included, by Debezium's seconds
    equal                       every row of every mirror equals Postgres

    baseline_* is the text-book job, deltars_* the delta-rs loop.

    Example: python -m bench.snapshot --rows 1000000
    """

    def measure() -> dict[str, Any]:
        with rig(state, rows, memory) as ready:
            command.tell(f"snapshot of {ready.contents.rows} rows")
            debezium_s = ready.capture()
            fillings = fill(ready, baselines)
            figures: dict[str, Any] = {
                "rows": ready.contents.rows,
                "debezium_s": round(debezium_s, 2),
                "debezium_rows_per_s": round(ready.contents.rows / debezium_s),
                "mirrors_after_topics_share": round(fillings[0].total_s / debezium_s, 3),
            }
            for filling in fillings:
                figures |= filling.figures("mirror_rows", ready.contents.rows)
            return figures

    command.run("snapshot", {"rows": rows}, measure)


if __name__ == "__main__":
    main()
