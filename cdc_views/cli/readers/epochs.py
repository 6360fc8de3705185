"""`cdc-views epochs`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.metrics import Work
from cdc_views.serve.epochs.history import epoch_row
from cdc_views.store.control import PublishedDetail, read_control

COLUMNS = ("epoch", "kind", "attempt", "position", "committed_at", "published_at", "changes", "parked")
WAYS = "ways"
VIEW_WORK = "view_work"


@click.command()
@click.option("--last", type=click.IntRange(min=1), default=20, show_default=True, help="Show at most this many rows.")
@click.option("--all", "with_idle", is_flag=True, help="Also show epochs without changes.")
@click.option("--all-kinds", is_flag=True, help="Show all records: takeovers, intents and abandoned attempts, too.")
@click.option("--verbose", is_flag=True, help="Add the tables per execution path, and the work for all views.")
@output_options
@click.pass_obj
def epochs(project: Project, last: int, with_idle: bool, all_kinds: bool, verbose: bool, form: str | None) -> None:
    """List the published epochs, newest last.

    While nothing changes, the engine publishes an epoch without changes every few seconds. These are hidden.

    With --json and --csv, `ways` has the execution path of each table in each step: commit, lookup, view, read, diff;
    `view_work` has what the update of each view cost.

    Example: cdc-views epochs --last 5
    """
    known = [record for record in read_control(project.warehouse()) if all_kinds or record.published_at is not None]
    records = [record for record in known if with_idle or all_kinds or not record.is_idle]
    shown = records[-last:]
    rows = [epoch_row(record) for record in shown]
    if not form:
        rows = [
            row | {WAYS: _counted(row[WAYS]), VIEW_WORK: _sum(PublishedDetail.read(record))}
            for row, record in zip(rows, shown, strict=True)
        ]
    print_rows(rows, (*COLUMNS, WAYS, VIEW_WORK) if form or verbose else COLUMNS, form)
    first = shown[0].seq if len(records) > last else 0
    if hidden := sum(record.seq > first for record in known) - sum(record.seq > first for record in records):
        click.echo(f"{hidden} epochs without changes are hidden; --all shows them", err=True)


def _counted(ways: Mapping[str, Mapping[str, str]]) -> str:
    """Count the tables per step and execution path: `commit: 2 direct, 1 spark; lookup: 2 index`."""
    counts = {step: Counter(of_step.values()) for step, of_step in ways.items()}
    return "; ".join(
        f"{step}: {', '.join(f'{count} {way}' for way, count in sorted(of_step.items()))}"
        for step, of_step in counts.items()
    )


def _sum(detail: PublishedDetail) -> str:
    """The work for all views of an epoch: `12 keys looked up, 40 rows found, 9 computed, 3 written; full: 1 new view`.

    Each reason why views were computed in full follows the number of these views.
    """
    if not detail.view_work:
        return ""
    total = Work()
    for work in detail.view_work.values():
        total.add(work)
    sums = (
        f"{total.keys_looked_up} keys looked up, {total.rows_found} rows found, "
        f"{total.rows_recomputed} computed, {total.rows_written} written"
    )
    reasons = Counter(work.why_full for work in detail.view_work.values() if work.why_full is not None)
    in_full = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    return f"{sums}; full: {in_full}" if in_full else sums
