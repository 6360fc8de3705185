"""Taking the warehouse over: from whatever the last writer left to a state that an epoch can start from.

1. A takeover record: from here on the old writer's next record finds its version taken.
2. A fence on every table, an empty version: from here on the old writer's commits fail. If a later engine has
   put its own there already, this one is the old writer.
3. Every version above the manifest's must be ours by its attempt, else somebody else wrote it.
4. An epoch that was intended and not published is finished under a new attempt, or, if its part of
   the log can no longer be read as it was, taken back and abandoned.

A crash in any of these steps leaves a state that the same steps start from again. After a loss of power an intended
epoch is also taken back if not all that it has committed is on the disk (store/delta_log/torn.py).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from cdc_views import faults
from cdc_views.engine.epoch.abandon import abandon, commits_since, committed_by
from cdc_views.engine.epoch.steps import RETRIES, SWAPS, Intent, finish_epoch, intend, read_intent
from cdc_views.engine.epoch.tables import Tables
from cdc_views.engine.input.quarantine import NAME, version_of
from cdc_views.engine.views.maintain import ViewRunner
from cdc_views.errors import ForeignCommit, LogGap, OffsetCompacted, TableUnavailable
from cdc_views.log.cut import CutLog
from cdc_views.metrics import Stages
from cdc_views.store.control.control_log import ControlLog, ControlRecord, known_attempts
from cdc_views.store.delta_log.versions import RESTORE
from cdc_views.store.warehouse import Stamp

TORN: Final = "not all that was committed had come to the disk"
UNREADABLE: Final = "the intended part of the log can no longer be read as it was"


def take_over(control: ControlLog, tables: Tables, detail: dict[str, object]) -> None:
    """Steps 1 to 3. Raises Fenced if another writer was faster, ForeignCommit for what is not ours."""
    published = control.published_in(tables.generation)
    takeover = control.take_over(generation=tables.generation, detail=detail)
    faults.point("takeover.after_record")
    if published is not None:
        tables.advance(published)
        _require_published_versions(tables, published)
    stamp = Stamp(takeover.epoch, takeover.attempt, str(tables.position or "0/0"))
    for name, spec in tables.specs.items():
        control.require_writer()  # what may be removed here is another engine's as soon as that one has taken over
        known = published.tables[name].version if published is not None and tables.is_published(name) else 0
        tables.warehouse.remove_torn_entries(spec.path, known)
    for name, spec in tables.specs.items():
        tables.stand_at({name: tables.warehouse.fence(spec.path, stamp, tables.version(name))})
    faults.point("takeover.after_fence")
    refuse_foreign_commits(control, tables)


def _require_published_versions(tables: Tables, published: ControlRecord) -> None:
    """A table that was removed was just made again, empty. Raises TableUnavailable."""
    for name, spec in tables.specs.items():
        if not tables.is_published(name):
            continue
        found, wanted = tables.warehouse.latest_version(spec.path), published.tables[name].version
        if found < wanted:
            raise TableUnavailable(
                f'table "{name}" ends at version {found}, wanted at least the published {wanted}',
                hint=f'the folder "{spec.path}" was removed or damaged: rebuild the table with --swap',
            )


def refuse_foreign_commits(control: ControlLog, tables: Tables) -> None:
    """Every version above the published one carries an attempt that the control log knows.

    One that changes rows is of an attempt since then; upkeep of any that was before.
    """
    published = tables.published
    ever = known_attempts(control.records)
    recent = {record.attempt for record in control.records if published is None or record.seq > published.seq}
    for name, spec in tables.specs.items():
        # Version 0 is the creation of the table; one that was dropped and declared again has all its versions.
        above: int = 0
        known: Container[int] = ever
        if published is not None and tables.is_published(name):
            above, known = published.tables[name].version, recent
        for commit in tables.warehouse.history.commits_above(spec.path, above):
            attempts = known if commit.changes_content else ever
            if commit.stamp is None or commit.stamp.attempt not in attempts:
                raise ForeignCommit(
                    f'table "{name}" has version {commit.version}, which this system did not write; '
                    f"wanted {above} and what was written since epoch {published.epoch if published else 0}",
                    hint=f'see DESCRIBE HISTORY of "{spec.path}"; '
                    f"RESTORE it to version {above} once it is clear who writes there",
                )


def recover(log: CutLog, tables: Tables, views: ViewRunner, control: ControlLog) -> ControlRecord | None:
    """Step 4: finish the epoch that was intended and not published, or abandon it; None if there is none."""
    record = control.open_intent
    if record is None:
        return None
    if record.generation != tables.generation:
        forsake(control, record)
        return None
    old = read_intent(record)
    # The fence lies above what was committed; its content is the same.
    done = {name: tables.version(name) for name in committed_by(old, tables)}
    if SWAPS in record.detail or RETRIES in record.detail or tables.standing_in:
        abandon(tables, control, old, done, "what was asked for is asked for again, and nothing is published before it")
        return None
    torn = {name for name in done if not tables.warehouse.is_whole(old.base[name].path, old.base[name].version)}
    if torn:
        abandon(tables, control, old, done, TORN, torn)
        return None
    if any(_was_restored(name, old, tables) for name in done):
        abandon(tables, control, old, done, UNREADABLE)
        return None
    try:
        log.require_repeatable(old.cut)
        return _finish(log, tables, views, control, old, done)
    except (LogGap, OffsetCompacted):
        abandon(tables, control, old, done, UNREADABLE)
        return None


def forsake(control: ControlLog, intent: ControlRecord) -> None:
    """Say that an epoch of a generation that a reset has replaced will never be published; nobody reads its tables."""
    control.append(
        kind="abandon",
        epoch=intent.epoch,
        attempt=control.new_attempt(),
        generation=intent.generation,
        position=intent.position,
        complete_to=intent.complete_to,
        committed_at=intent.committed_at,
        detail={"reason": "a reset has replaced its generation"},
    )


def _was_restored(name: str, intent: Intent, tables: Tables) -> bool:
    """Whether taking the attempt back was begun: then it must be ended, whatever the log holds today."""
    return any(commit.operation == RESTORE for commit in commits_since(name, intent, tables))


def _finish(
    log: CutLog, tables: Tables, views: ViewRunner, control: ControlLog, old: Intent, done: dict[str, int]
) -> ControlRecord:
    # Where the attempt has committed its part of the quarantine, what it had found there is in an earlier version.
    start = old.quarantine if NAME in done else version_of(tables)
    intent = intend(control, old.cut, tables, done=done, epoch=old.epoch, quarantine=start)
    faults.point("recovery.after_intent")
    return finish_epoch(log, tables, views, control, intent, Stages())
