"""`cdc-views rebuild`."""

from __future__ import annotations

import json

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import print_rows
from cdc_views.cli.progress import ShownProgress
from cdc_views.engine.capture.captures import current_settings
from cdc_views.errors import BadReplay
from cdc_views.host.priority import let_others_go_first
from cdc_views.replay.diff_report import ShadowDifference
from cdc_views.replay.origin import parse_origin
from cdc_views.replay.rebuild import Outcome
from cdc_views.replay.rebuild import rebuild as rebuild_tables
from cdc_views.serve.values.json_value import json_value
from cdc_views.stack.fetch import delta_jars
from cdc_views.stack.java import java_command

COLUMNS = ("table", "only_old", "only_new", "different", "columns", "note")


@click.command()
@click.argument("names", nargs=-1, metavar="[VIEW|TABLE]...")
@click.option("--all", "everything", is_flag=True, help="Rebuild every table and view of the project.")
@click.option("--from", "start", required=True, metavar="earliest|snapshot|epoch:N|offset:TOPIC/PARTITION/OFFSET")
@click.option("--onto", metavar="epoch:N", help="The epoch to replay --from offset:... on.")
@click.option("--swap", is_flag=True, help="Replace the live tables with the new ones.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
@click.pass_obj
@click.pass_context
def rebuild(
    ctx: click.Context,
    project: Project,
    names: tuple[str, ...],
    everything: bool,
    start: str,
    onto: str | None,
    swap: bool,
    as_json: bool,
) -> None:
    """Rebuild tables beside the live ones and report differences; --swap replaces them.

    The new tables come from the log or from a new snapshot, as --from says. The exit status is 1 if
    something differs and was not swapped.

    Example: cdc-views rebuild order_totals --from earliest --swap
    """
    if bool(names) == everything:
        raise BadReplay("name tables or views, or give --all", hint="docs/rebuild.md")
    origin = parse_origin(start, onto)
    settings = current_settings(project.settings())
    let_others_go_first(settings.engine.niceness)
    java_command()
    outcome = rebuild_tables(
        settings,
        delta_jars(),
        None if everything else names,
        origin,
        swap=swap,
        on_progress=ShownProgress("rebuild"),
        note=lambda text: click.echo(f"rebuild: {text}", err=True),
    )
    _print_json(outcome) if as_json else _print(outcome)
    ctx.exit(0 if outcome.is_equal or outcome.swapped is not None else 1)


def _print(outcome: Outcome) -> None:
    if outcome.differences is not None and outcome.compared_at is not None:
        print_rows([_row(difference) for difference in outcome.differences], COLUMNS, None)
        for difference in outcome.differences:
            for sample in difference.samples:
                click.echo(f"{difference.table}: {json.dumps(json_value(sample), ensure_ascii=False)}")
        click.echo(
            f"compared at epoch {outcome.compared_at.epoch}: {'equal' if outcome.is_equal else 'different'}", err=True
        )
    if outcome.swapped is not None:
        click.echo(f"swapped in epoch {outcome.swapped.epoch} at {outcome.swapped.position}", err=True)


def _print_json(outcome: Outcome) -> None:
    at, swapped = outcome.compared_at, outcome.swapped
    report = {
        "rebuild": outcome.id,
        "compared_at": None if at is None else {"epoch": at.epoch, "position": str(at.position)},
        "equal": outcome.is_equal if outcome.differences is not None else None,
        "swapped": None if swapped is None else {"epoch": swapped.epoch, "position": str(swapped.position)},
        "tables": [{**_row(each), "old": vars(each.old), "new": vars(each.new), "samples": each.samples}
                   for each in outcome.differences or ()],
    }  # fmt: skip
    click.echo(json.dumps(json_value(report), ensure_ascii=False))


def _row(difference: ShadowDifference) -> dict[str, object]:
    return {column: getattr(difference, column) for column in COLUMNS}
