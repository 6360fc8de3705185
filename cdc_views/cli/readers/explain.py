"""`cdc-views explain`."""

from __future__ import annotations

import click

from cdc_views.cli.analysis import analyse
from cdc_views.cli.main import Project
from cdc_views.cli.readers.view_work import last_epochs
from cdc_views.engine.capture.captures import current_settings
from cdc_views.engine.capture.declared import declare
from cdc_views.errors import BadView, UnknownView
from cdc_views.plan.explain import explain as explained
from cdc_views.source.connection import connect
from cdc_views.store.control import read_control


@click.command()
@click.argument("view")
@click.pass_obj
def explain(project: Project, view: str) -> None:
    """Show how a view is maintained, and where its result differs from Postgres.

    Prints its strategy, key and inputs, what is looked up when they change, the SQL that runs, how to write it to get
    Postgres's result, and what the last epochs did for it.

    Example: cdc-views explain order_totals
    """
    settings = current_settings(project.settings())
    with connect(settings.source.dsn.get_secret_value()) as connection:
        records = read_control(settings.warehouse)
        declared = declare(settings, connection, records)
    views = {compiled.definition.name: compiled for level in declared.levels for compiled in level}
    if view not in views:
        hint = f"views are {', '.join(sorted(views))}" if views else 'no view file is there; see the setting "views"'
        raise UnknownView(f'no view "{view}" in "{settings.views}"', hint=hint)
    if view in declared.refused:
        raise declared.refused[view]
    analysed = next((found for compiled, found in analyse(settings.engine, declared) if compiled is views[view]), None)
    if analysed is None:
        raise BadView(
            f'view "{view}" reads a view that is refused', hint='run "cdc-views check" to see which one, and why'
        )
    if isinstance(analysed, BadView):
        raise analysed
    explanation = explained(views[view], analysed.maintenance, analysed.notes)
    internal = [name for name, _ in explanation.internal]
    click.echo("\n".join([*explanation.lines(), *last_epochs(records, view, internal)]))
