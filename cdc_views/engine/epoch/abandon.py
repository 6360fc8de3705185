"""Rolling back what an attempt has committed. Its epoch will never be published."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cdc_views import faults
from cdc_views.engine.input.quarantine_entries import NAME as QUARANTINE
from cdc_views.engine.intent import Intent
from cdc_views.engine.tables import Tables
from cdc_views.store.control import ControlLog, last_takeover
from cdc_views.store.delta_log import Stamp, TableCommit


def committed_by(intent: Intent, tables: Tables) -> list[str]:
    """The tables whose part of the epoch is committed, by this attempt or an earlier one.

    Views that were changed or dropped since are not among them.
    """
    same = [name for name, base in intent.base.items()
            if name in tables.specs and tables.specs[name].path == base.path]  # fmt: skip
    return [name for name in same if _is_done(name, intent, tables)]


def commits_since(name: str, intent: Intent, tables: Tables) -> list[TableCommit]:
    """The commits to a table since the intent was recorded."""
    base = intent.base[name]
    return tables.warehouse.history.commits_above(base.path, base.version)


def abandon(
    tables: Tables, control: ControlLog, old: Intent, done: Iterable[str], reason: str, torn: Collection[str] = ()
) -> None:
    """Roll back what the attempts at an epoch committed, then record that it will never be published.

    `done` are the tables that earlier attempts committed; those of the last attempt are found here. A crash in between
    repeats both steps. A view that was never published is not rolled back: nobody reads it, and the next epoch
    compares it with its query, unless it is one of `torn`. Neither is a shadow table: its swap takes care of it.
    """
    takeover = last_takeover(control.records)
    assert takeover is not None
    # An attempt after that of the last published epoch.
    stamp = Stamp(old.epoch, max(takeover.attempt, old.attempt), str(tables.position or "0/0"))
    published = tables.published
    for name in {**dict.fromkeys(done), **_just_committed(tables, control)}:
        is_view = name not in tables.sources and name != QUARANTINE
        if name in tables.shadows or (is_view and not tables.is_published(name) and name not in torn):
            continue
        good = published.tables[name].version if published is not None and tables.is_published(name) else 0
        if name == QUARANTINE and old.quarantine is not None:
            good = old.quarantine  # events that were discarded since the last epoch stay discarded
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
    """The commits of the last attempt of this writer, if it was under way; the tables' base versions move to them."""
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
