"""How fast mirrors come out of the initial snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench import command
from bench.filling import fill, fill_with_capture
from bench.rig import rig
from bench.systems import BASELINES


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default=200_000, show_default=True, help="Of each of the three large tables.")
@command.baseline_option("textbook,deltars")
@command.stack_options
def main(rows: int, baselines: list[str], state: Path | None, memory: str) -> None:
    """Measure the initial snapshot: rows of Postgres to rows of mirrors.

    cdc_views starts from nothing by `run --until-caught-up`, which registers the connector: Debezium fills the topics,
    of which much is read meanwhile, then the mirrors are made. After that the baselines make tables of their own from
    the full topics, alone on the machine but for the idle services: the text-book job (available now) and the delta-rs
    loop.

    \b
    debezium_rows_per_s         rows by the seconds from registering the connector to its notification of the end
    mirror_rows_per_s           rows by the seconds of the epochs, the engine's start not counted, nor what was read
                                before them
    mirror_rows_with_start_per_s   rows by the seconds from full topics to complete mirrors; of the baselines from
                                   the start of their process to its end
    mirrors_after_topics_share  seconds from full topics to complete mirrors by Debezium's seconds
    equal                       every row of every mirror equals Postgres

    baseline_* is the text-book job, deltars_* the delta-rs loop.

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
