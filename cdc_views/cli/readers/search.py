"""`cdc-views search`."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import asdict, fields
from typing import Any

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.cli.readers.moments import ReadCommand, moment_options, show_epoch
from cdc_views.search import ScorePart
from cdc_views.search.columns import Condition
from cdc_views.serve.epochs.moment import Moment, choose
from cdc_views.serve.kinds.search import Hit, SearchIndex, SearchRequest
from cdc_views.serve.kinds.search import search as answered
from cdc_views.store.reading import StoredTables


@click.command(cls=ReadCommand)
@click.argument("index")
@click.argument("text")
@click.option("--limit", default=10, show_default=True, help="How many documents to print.")
@click.option(
    "--filter", "filters", multiple=True, metavar="COLUMN=VALUE", help="Also !=, <, <=, > and >=; repeatable."
)
@click.option("--sort", "sort", multiple=True, metavar="COLUMN", help="Sort by COLUMN, or -COLUMN for descending.")
@click.option("--cursor", help="Print the page after the one that gave this cursor.")
@click.option("--explain", is_flag=True, help="Print what each score is the sum of.")
@moment_options
@output_options
@click.pass_obj
def search(
    project: Project,
    index: str,
    text: str,
    limit: int,
    filters: tuple[str, ...],
    sort: tuple[str, ...],
    cursor: str | None,
    explain: bool,
    moment: Moment,
    form: str | None,
) -> None:
    """Print the documents of a search index that match a text, best first.

    Works while the engine is down. The text has words, "phrases", prefix*, +must, -not and column:word. Write "--"
    before a text that begins with "-", as in: search post_search -- '-spark delta'.

    Example: cdc-views search post_search '+delta "exactly once" -spark'
    """
    conditions = [Condition.parse(each) for each in filters]
    given = [(each.column, each.operator, each.value) for each in conditions]
    request = SearchRequest.of(index, text, limit=limit, filter=given, sort=sort, cursor=cursor, explain=explain)
    warehouse = project.warehouse()
    epoch = choose(warehouse, request.moment(moment))
    stored = StoredTables(warehouse)
    result = answered(epoch, stored, request)
    rows = [row for hit in result.hits for row in (_parts(hit) if explain else [_row(hit, form)])]
    if rows:
        print_rows(rows, list(rows[0]), form)
    elif form is not None:
        names = SearchIndex(epoch, index, stored).schema.names
        columns = ["key", *(each.name for each in fields(ScorePart))] if explain else [_score(names), *names]
        print_rows([], columns, form)
    show_epoch(epoch)
    click.echo(f"{len(result.hits)} of {result.total} documents", err=True)
    if result.cursor is not None:
        click.echo(f"next page: --cursor {result.cursor}", err=True)


def _row(hit: Hit, form: str | None) -> dict[str, Any]:
    """The score and the columns of a document; people see the matching part of its texts instead."""
    score = _score(hit.document)
    if form is not None:
        return {score: hit.score, **hit.document}
    return {score: f"{hit.score:.3f}", **hit.document, **{name: str(each) for name, each in hit.snippets.items()}}


def _score(columns: Container[str]) -> str:
    """The name of the column with the score."""
    return "_score" if "score" in columns else "score"


def _parts(hit: Hit) -> list[dict[str, Any]]:
    return [{"key": hit.key, **asdict(part)} for part in hit.explanation]
