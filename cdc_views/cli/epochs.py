"""`cdc-views epochs`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.store.control.control_log import read_control

COLUMNS = ("epoch", "kind", "attempt", "position", "committed_at", "published_at", "changes", "parked")
WAYS = "ways"


@click.command()
@click.option("--last", default=20, show_default=True, help="How many records.")
@click.option("--all-kinds", is_flag=True, help="Also takeovers, intents and abandoned attempts.")
@click.option("--verbose", is_flag=True, help="In a table too: how many tables went which way in each step.")
@output_options
@click.pass_obj
def epochs(project: Project, last: int, all_kinds: bool, verbose: bool, form: str | None) -> None:
    """List the published epochs, newest last.

    With --json and --csv `ways` says which way each table went: committed, looked up, read by a view, compared.

    Example: cdc-views epochs --last 5
    """
    records = [r for r in read_control(project.warehouse()) if all_kinds or r.published_at is not None]
    rows = [
        {
            "epoch": record.epoch,
            "kind": record.kind,
            "attempt": record.attempt,
            "position": str(record.position) if record.position is not None else None,
            "committed_at": record.committed_at,
            "published_at": record.published_at,
            "changes": sum(record.detail.get("changes", {}).values()),
            "parked": sum(record.detail.get("parked", {}).values()),
            WAYS: ways if form else _counted(ways),
        }
        for record, ways in ((record, record.detail.get("ways", {})) for record in records[-last:])
    ]
    print_rows(rows, (*COLUMNS, WAYS) if form or verbose else COLUMNS, form)


def _counted(ways: Mapping[str, Mapping[str, str]]) -> str:
    """How many tables went which way, as `commit: 2 direct, 1 spark; lookup: 2 index`."""
    counts = {step: Counter(of_step.values()) for step, of_step in ways.items()}
    return "; ".join(
        f"{step}: {', '.join(f'{count} {way}' for way, count in sorted(of_step.items()))}"
        for step, of_step in counts.items()
    )
