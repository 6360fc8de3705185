"""How fast tables are rebuilt from their history in the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
import psycopg

from bench import command
from bench.filling import fill
from bench.rig import Rig, rig
from bench.systems import systems

TRANSACTION_CHANGES: Final = 500


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default=100_000, show_default=True, help="Initial rows of each of the three large tables.")
@click.option("--changes", default=1_000_000, show_default=True, help="Row changes after the snapshot.")
@command.baseline_option("textbook,deltars")
@command.stack_options
def main(rows: int, changes: int, baselines: list[str], state: Path | None, memory: str) -> None:
    """Measure a replay: everything a log holds, from its first offset to its last, into empty tables.

    The topics contain the snapshot and then the changes (60 % updates, 30 % inserts, 10 % deletes, some transfers). All
    are captured before anything is measured. Then each system starts with empty tables, alone on the machine except
    for the idle services: cdc_views with `run --until-caught-up`, the textbook job (trigger availableNow), the delta-rs
    loop.

    \b
    replay_changes_per_s             rows and changes per second of reading and writing, without the start
    replay_changes_with_start_per_s  the same with the start of the process and the JVM
    equal                            every row of every mirror equals Postgres

    baseline_* is the textbook job, deltars_* the delta-rs loop.

    Example: python -m bench.replay --changes 1000000
    """

    def measure() -> dict[str, Any]:
        with rig(state, rows, memory) as ready:
            command.tell(f"snapshot of {ready.contents.rows} rows and {changes} changes")
            ready.capture()
            made = _change(ready, changes)
            ready.wait_captured()
            figures: dict[str, Any] = {"rows": ready.contents.rows, "changes": made}
            for filling in map(fill, systems(ready, baselines)):
                figures |= filling.figures("replay_changes", ready.contents.rows + made)
            return figures

    command.run("replay", {"rows": rows, "changes": changes}, measure)


def _change(rig: Rig, changes: int) -> int:
    """Make about `changes` row changes in large transactions. Returns the exact number."""
    made, number = 0, 0
    with psycopg.connect(rig.dsn, autocommit=True) as connection:
        while made < changes:
            number += 1
            size = min(TRANSACTION_CHANGES, changes - made)
            row = connection.execute("SELECT bench.change(%s, %s)", (number, size)).fetchone()
            assert row is not None
            made += int(row[0])
    return made


if __name__ == "__main__":
    main()
