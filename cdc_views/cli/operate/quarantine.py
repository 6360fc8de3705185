"""`cdc-views quarantine`."""

from __future__ import annotations

from typing import Final

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.engine.capture.captures import current_settings
from cdc_views.errors.log_offset import LogOffset
from cdc_views.replay import bad_events
from cdc_views.stack.fetch import delta_jars
from cdc_views.stack.java import java_command
from cdc_views.store.control import ControlRecord, PublishedDetail

_DIGITS: Final = 18  # fewer than those of the largest offset of Kafka; more do not fit into a request
COLUMNS = ("table", "topic", "partition", "offset", "key", "state", "epoch", "reason")


@click.group()
def quarantine() -> None:
    """List events that could not be applied, retry them, or discard one.

    Example: cdc-views quarantine list
    """


@quarantine.command("list")
@output_options
@click.pass_obj
def list_events(project: Project, form: str | None) -> None:
    """List the events in quarantine, in the order of the log; works while the engine is down.

    The keys shown are values of your rows. The complete events are in the Delta table "_quarantine" of the warehouse.

    Example: cdc-views quarantine list --json
    """
    rows = [
        {"table": each.table, **each.place._asdict(), "key": _key(each.record.key()), "state": each.state,
         "epoch": each.epoch, "reason": each.reason}
        for each in bad_events.listed(project.warehouse())
    ]  # fmt: skip
    print_rows(rows, COLUMNS, form)


@quarantine.command()
@click.argument("place", nargs=-1, metavar="[TOPIC PARTITION OFFSET]")
@click.pass_obj
def retry(project: Project, place: tuple[str, ...]) -> None:
    """Apply parked events again: all, or those with the key of one event. An event that still fails stays parked.

    Example: cdc-views quarantine retry
    """
    event = _place(place) if place else None
    settings = current_settings(project.settings())
    java_command()
    _report(bad_events.retry(settings, delta_jars(), event))


@quarantine.command()
@click.argument("place", nargs=3, metavar="TOPIC PARTITION OFFSET")
@click.pass_obj
def discard(project: Project, place: tuple[str, ...]) -> None:
    """Drop one event and apply the later events of its key; a stopped engine then starts without it.

    Example: cdc-views quarantine discard app.public.orders 0 1234
    """
    event = _place(place)
    settings = current_settings(project.settings())
    java_command()
    _report(bad_events.discard(settings, delta_jars(), event))


def _place(words: tuple[str, ...]) -> LogOffset:
    if len(words) != 3 or not all(word.isdecimal() and len(word) <= _DIGITS for word in words[1:]):
        raise click.UsageError('name an event by TOPIC PARTITION OFFSET, as "cdc-views quarantine list" shows them')
    return LogOffset(words[0], int(words[1]), int(words[2]))


def _key(key: bytes | None) -> str | None:
    return None if key is None else key.decode(errors="backslashreplace")


def _report(record: ControlRecord) -> None:
    if record.published_at is None:
        click.echo("the engine continues without this event when it is started", err=True)
        return
    parked = sum(PublishedDetail.read(record).parked.values())
    click.echo(f"epoch {record.epoch} at {record.position}: {parked} keys are still parked", err=True)
