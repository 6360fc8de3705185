"""Taking back what an attempt has committed, after which its epoch will never be published."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from cdc_views import faults
from cdc_views.engine.epoch.tables import Tables
from cdc_views.engine.input import quarantine
from cdc_views.store.control.control_log import ControlLog, last_takeover
from cdc_views.store.delta_log.versions import Stamp, TableCommit

if TYPE_CHECKING:
    from cdc_views.engine.epoch.steps import Intent


def committed_by(intent: Intent, tables: Tables) -> list[str]:
    """The tables whose part of the epoch is committed, by this attempt or one before.

    Not among them are views that were changed or dropped since.
    """
    same = [name for name, base in intent.base.items()
            if name in tables.specs and tables.specs[name].path == base.path]  # fmt: skip
    return [name for name in same if _is_done(name, intent, tables)]


def commits_since(name: str, intent: Intent, tables: Tables) -> list[TableCommit]:
    """What was committed to a table since the intent was written down."""
    base = intent.base[name]
    return tables.warehouse.history.commits_above(base.path, base.version)


def abandon(
    tables: Tables, control: ControlLog, old: Intent, done: Iterable[str], reason: str, torn: Collection[str] = ()
) -> None:
    """Take back what the attempts at an epoch committed, then say that it will never be published.

    `done` are tables that earlier attempts committed; what the last one did is found here.

    A crash in between repeats both. A view that was never published is left: nobody reads it, and the next
    epoch compares it with its query, unless it is one of `torn`. So is a table that is to replace another: its swap
    sees to it.
    """
    takeover = last_takeover(control.records)
    assert takeover is not None
    # One that came after the last published epoch.
    stamp = Stamp(old.epoch, max(takeover.attempt, old.attempt), str(tables.position or "0/0"))
    published = tables.published
    for name in {**dict.fromkeys(done), **_just_committed(tables, control)}:
        is_view = name not in tables.sources and name != quarantine.NAME
        if name in tables.standing_in or (is_view and not tables.is_published(name) and name not in torn):
            continue
        good = published.tables[name].version if published is not None and tables.is_published(name) else 0
        if name == quarantine.NAME and old.quarantine is not None:
            good = old.quarantine  # what was discarded since the last epoch stays so
        base = tables.version(name)
        tables.stand_at({name: tables.warehouse.restore(tables.specs[name].path, good, stamp, base)})
        faults.point("abandon.after_first_restore")
    control.append(
        kind="abandon",
        epoch=old.epoch,
        attempt=control.new_attempt(),
        generation=tables.generation,
        position=old.cut.position,
        complete_to=old.cut.complete_to,
        committed_at=old.cut.committed_at,
        detail={"reason": reason},
    )


def _just_committed(tables: Tables, control: ControlLog) -> dict[str, int]:
    """What the last attempt of this writer has committed, if it was under way; the tables stand there from now on."""
    found = {}
    for name, spec in tables.specs.items():
        above = tables.warehouse.history.commits_above(spec.path, tables.version(name))
        if above and above[-1].stamp is not None and above[-1].stamp.attempt == control.last_attempt:
            found[name] = above[-1].version
    tables.stand_at(found)
    return found


def _is_done(name: str, intent: Intent, tables: Tables) -> bool:
    if name in intent.done:
        return True
    stamps = (commit.stamp for commit in commits_since(name, intent, tables))
    return any(stamp is not None and stamp.attempt == intent.attempt for stamp in stamps)
